import re

import numpy as np
import pytest
from support.checkout import ROOT
from support.published import published_tree

from quercus.belief.errors import InvalidInput
from quercus.belief.frame import Frame
from quercus.specification.attributes import Nominal, Numeric
from quercus.specification.strategies import MARGIN, RECOMMENDED, chosen_strategy, strategies
from quercus.trees.ask.reasons import CHILD
from quercus.trees.growth.abc45 import induce
from quercus.trees.growth.stream import Answered, Event, GrowthState, Observed, Refused, Respecified, grow

ATTRIBUTES = (Numeric("size"), Nominal("colour", ("red", "blue", "green")), Numeric("age", bins=3))
FRAME = Frame(("x", "y", "z"))


def rows(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Values, some missing, and the class of each row."""
    rng = np.random.default_rng(seed)
    values = np.stack([rng.random(count), rng.integers(3, size=count), rng.random(count)], axis=1)
    classes = np.minimum((values[:, 0] * 2 + (values[:, 1] == 1)).astype(int), 2)
    values[rng.random(count) < 0.05, 0] = np.nan
    return values, classes


def state(strategy: str, contours: np.ndarray, values: np.ndarray, **options: float) -> GrowthState:
    given = {"budget": 100} | options
    spec = published_tree(ATTRIBUTES, FRAME, strategy=strategy, **given)
    return grow(GrowthState.initial(spec), [Observed(values, contours)])


def partly(classes: np.ndarray, seed: int = 1) -> np.ndarray:
    """Labels of which a third is precise, a third says something, and a third nothing."""
    contours = np.ones((len(classes), 3))
    rng = np.random.default_rng(seed)
    kind = rng.integers(3, size=len(classes))
    contours[kind == 0] = np.eye(3)[classes[kind == 0]]
    contours[kind == 1] = np.round(rng.uniform(0.1, 0.9, (len(classes), 3)), 1)[kind == 1]
    contours[kind == 1, classes[kind == 1]] = 1.0
    return contours


def test_every_strategy_is_installed_by_its_own_name() -> None:
    for asks in ("tree", "forest"):
        for name in strategies(asks):
            assert chosen_strategy(name, asks).name == name


def test_a_strategy_that_does_not_exist_is_named() -> None:
    with pytest.raises(
        InvalidInput, match=r"strategy: is 'guess', must be one of covering-committee, .*published, "
    ):
        published_tree(ATTRIBUTES, FRAME, strategy="guess")
    with pytest.raises(
        InvalidInput, match=r"strategy: is 'guess', must be one of covering-committee, .*published, "
    ):
        chosen_strategy("guess", "tree")


@pytest.mark.parametrize("strategy", strategies("tree"))
@pytest.mark.parametrize("known", ["nothing", "something"])
def test_an_agenda_lists_what_is_asked_while_nobody_answers(strategy: str, known: str) -> None:
    """A row that is being asked about is one that is not asked about: as if it had been refused."""
    values, classes = rows(60)
    contours = np.ones((60, 3)) if known == "nothing" else partly(classes)
    listed = state(strategy, contours, values).agenda(12)
    assert len({query.instance for query in listed}) == 12
    one = state(strategy, contours, values)
    for query in listed:
        (now,) = one.agenda(1)
        assert now == query
        one = grow(one, [Refused(now.instance, now.asked)])


@pytest.mark.parametrize("strategy", strategies("tree"))
@pytest.mark.parametrize("known", ["nothing", "something"])
def test_every_query_has_a_plain_sentence(strategy: str, known: str) -> None:
    """Or it has a guess, which is one."""
    values, classes = rows(60)
    contours = np.ones((60, 3)) if known == "nothing" else partly(classes)
    for query in state(strategy, contours, values).agenda(12):
        said, facts = query.reason.sentence, query.reason.facts
        assert re.fullmatch(r"[A-Z0-9].*\.", said) or (not said and facts)
        assert strategy not in said.split()  # its name explains nothing
        assert "score" not in said
        assert (CHILD in said) <= (query.attribute is not None)


@pytest.mark.parametrize("strategy", strategies("tree"))
def test_only_rows_that_may_be_asked_about_are_asked_about(strategy: str) -> None:
    values, classes = rows(40)
    contours = partly(classes)
    grown = state(strategy, contours, values)
    open_rows = np.flatnonzero((contours > 0).sum(axis=1) > 1)
    refused = int(open_rows[0])
    first = grown.agenda(1)[0]
    grown = grow(grown, [Refused(refused, first.asked)])
    asked = {query.instance for query in grown.agenda(100)}
    assert asked
    assert asked <= set(open_rows.tolist()) - {refused}


@pytest.mark.parametrize("strategy", strategies("tree"))
def test_an_agenda_is_a_function_of_the_evidence(strategy: str) -> None:
    """The same rows one by one, or at once: the same questions."""
    values, classes = rows(50)
    contours = partly(classes)
    at_once = state(strategy, contours, values)
    piecewise = state(strategy, contours[:7], values[:7])
    for cut in range(7, 50, 9):
        piecewise.agenda(3)
        piecewise = grow(piecewise, [Observed(values[cut : cut + 9], contours[cut : cut + 9])])
    assert piecewise.agenda(10) == at_once.agenda(10)


@pytest.mark.parametrize("strategy", strategies("tree"))
def test_the_budget_holds(strategy: str) -> None:
    values, classes = rows(30)
    grown = state(strategy, np.ones((30, 3)), values, budget=4)
    for left in (4, 3, 2, 1):
        queries = grown.agenda(9)
        assert len(queries) == left
        query = queries[0]
        grown = grow(grown, [Answered(query.instance, np.eye(3)[classes[query.instance]], 1.0, query.asked)])
    assert grown.agenda(9) == ()


@pytest.mark.parametrize("strategy", strategies("tree"))
def test_a_query_names_a_node_of_the_tree(strategy: str) -> None:
    values, classes = rows(80)
    grown = state(strategy, partly(classes), values)
    codes, flat = grown.evidence.codes, grown.flat
    queries = grown.agenda(10)
    assert len(queries) == 10
    for query in queries:
        assert all(codes[query.instance, k] == code for k, code in query.path)
        node = next(i for i in range(flat.size) if flat.path(i) == query.path)
        assert flat.count[node] == query.node_count
        if query.attribute is None:
            assert flat.attribute[node] == -1
            assert query.rivals == ()
        else:
            assert codes[query.instance, query.attribute] == query.code
            assert query.attribute in [k for k, _, _ in query.rivals]


@pytest.mark.parametrize("strategy", [name for name in strategies("tree") if name != "published"])
def test_a_model_may_change_its_strategy(strategy: str) -> None:
    """The next query is that of the new strategy, whichever asked before; a round that was open is over."""
    values, classes = rows(40)
    contours = np.ones((40, 3))
    grown = state("published", contours, values)
    for _ in range(2):
        query = grown.agenda(1)[0]
        answer = Answered(query.instance, np.eye(3)[classes[query.instance]], 1.0, query.asked)
        contours[query.instance] = answer.contour
        grown = grow(grown, [answer])
    changed = grow(grown, [Respecified(state(strategy, contours, values).specification)])
    said = changed.agenda(5)
    other = state(strategy, contours, values)
    assert [query.instance for query in said] == [query.instance for query in other.agenda(5)]
    query = said[0]
    answer = Answered(query.instance, np.eye(3)[classes[query.instance]], 1.0, query.asked)
    back = grow(changed, [answer, Respecified(grown.specification)])
    assert back.agenda(3)[0].asked.rivals


CUT = (Numeric("size", cuts=6), Nominal("colour", ("red", "blue", "green")), Numeric("age", cuts=3))


@pytest.mark.parametrize("strategy", strategies("tree"))
def test_models_that_split_numbers_at_cuts_are_asked_about(strategy: str) -> None:
    """A query names a node of the tree and a row in it, and what is asked follows from the evidence alone."""
    values, classes = rows(70)
    contours = np.ones((70, 3))
    contours[:5] = np.eye(3)[classes[:5]]
    spec = published_tree(CUT, FRAME, strategy=strategy, budget=100, warmup_rows=70)
    grown = grow(GrowthState.initial(spec), [Observed(values, contours)])
    events: list[Event] = []
    for _ in range(12):
        for query in grown.agenda(1):
            split = grown.evidence.splits
            codes = grown.evidence.codes[query.instance]
            where = query.path if query.attribute is None else (*query.path, (query.attribute, query.code))
            assert all(split.branches_of(at, codes[split.attribute[at]]) == branch for at, branch in where)
            contour = np.eye(3)[classes[query.instance]]
            events.append(Answered(query.instance, contour, 1.0, query.asked))
            grown = grow(grown, events[-1:])
    asked = [event.instance for event in events if isinstance(event, Answered)]
    assert len(set(asked)) == len(asked) >= (1 if strategy == "small-regret" else 12)
    assert not set(asked) & set(range(5))
    again = grow(GrowthState.initial(spec), [Observed(values, contours), *events])
    assert again.agenda(6) == grown.agenda(6)
    assert again.tree == grown.tree


@pytest.mark.parametrize("strategy", strategies("tree"))
def test_induction_asks_what_the_service_asks(strategy: str) -> None:
    values, classes = rows(50)
    values[np.isnan(values)] = 0.5
    grown = state(strategy, np.ones((50, 3)), values, warmup_rows=50, budget=12)
    codes = grown.evidence.codes.astype(int)
    ordered, arities = (4, 0, 3), [5, 4, 4]
    offline = induce(
        codes, arities, np.ones((50, 3)), budget=12, oracle=lambda row: np.eye(3)[classes[row]],
        strategy=strategy, ordered=ordered,
    )  # fmt: skip
    asked = []
    while queries := grown.agenda(1):
        asked.append(queries[0].instance)
        answer = Answered(asked[-1], np.eye(3)[classes[asked[-1]]], 1.0, queries[0].asked)
        grown = grow(grown, [answer])
    assert asked == [query.instance for query in offline.queries]
    assert offline.tree.children.keys() == grown.tree.children.keys()


def test_nobody_is_asked_about_no_rows() -> None:
    for strategy in strategies("tree"):
        assert state(strategy, np.empty((0, 3)), np.empty((0, 3))).agenda(5) == ()


@pytest.mark.parametrize("strategy", [name for name in strategies("tree") if name != "published"])
def test_a_file_sorted_by_class_locks_nobody_out(strategy: str) -> None:
    """If nothing is known, the first answers may all be of one class; the strategy must find other classes."""
    values, classes = rows(90)
    order = np.argsort(classes, kind="stable")
    values, classes = values[order], classes[order]
    grown, heard = state(strategy, np.ones((90, 3)), values), []
    for _ in range(25):
        for query in grown.agenda(1):
            heard.append(int(classes[query.instance]))
            told = Answered(query.instance, np.eye(3)[classes[query.instance]], 1.0, query.asked)
            grown = grow(grown, [told])
    assert set(heard) == {0, 1, 2}
    assert len(heard) == 25 or strategy == "small-regret"


def test_the_docs_name_the_default_of_the_service() -> None:
    text = (ROOT / "docs" / "strategies.md").read_text(encoding="utf-8")
    assert f"The default for trees is `{RECOMMENDED}`" in text
    assert f"| `{MARGIN}` (the default) |" in text


def test_of_two_rivals_the_first_is_as_far_from_their_mean() -> None:
    """An answer moves both as far from it: rounding must not say which child the row stands for."""
    values, classes = rows(60)
    queries = state("split-change", partly(classes), values).agenda(40)
    two = [query for query in queries if len(query.rivals) == 2]
    assert len(two) > 3
    assert [query.attribute for query in two] == [min(k for k, _, _ in query.rivals) for query in two]
