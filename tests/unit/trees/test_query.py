import numpy as np
import pytest
from support.plain_growth import open_context

from quercus.belief.errors import InvalidInput
from quercus.trees.ask.agenda import agenda_of
from quercus.trees.ask.query import QueryPosition
from quercus.trees.growth.abc45 import induce
from quercus.trees.growth.sample import ContourTable, Sample
from quercus.trees.tree.node import Stop

EVERYTHING = (1.0, 1.0)


def sample(contours: object, codes: object = None) -> Sample:
    labels = np.array(contours, dtype=float)
    values = np.zeros((len(labels), 1), dtype=np.int16) if codes is None else np.array(codes, dtype=np.int16)
    table = ContourTable(labels.shape[1])
    arities = tuple((values.max(axis=0) + 1).tolist())
    return Sample(values, arities, table.intern(labels), np.ones(len(labels), dtype=bool), table)


def overlapping() -> Sample:
    """Two attributes that nobody can choose between."""
    codes = [(i % 2, i // 2 % 2) for i in range(8)]
    return sample([EVERYTHING] * 8, codes)


def test_a_round_visits_every_child_of_every_rival() -> None:
    context = open_context(overlapping(), 0.8, 2, None)
    asked = [(q.attribute, q.code, q.instance) for q in agenda_of(context, None, 5)]
    assert asked == [(0, 0, 0), (0, 1, 1), (1, 0, 4), (1, 1, 2), (0, 0, 6)]


def test_a_round_goes_on_where_the_log_left_it() -> None:
    context = open_context(overlapping(), 0.8, 2, None)
    last = QueryPosition((), 0, 1, (0, 1))
    assert [(q.attribute, q.code) for q in agenda_of(context, last, 3)] == [(1, 0), (1, 1), (0, 0)]


def test_a_round_keeps_the_rivals_it_began_with() -> None:
    context = open_context(overlapping(), 0.8, 2, None)
    queries = agenda_of(context, QueryPosition((), 0, 0, (0,)), 2)
    assert [q.asked for q in queries] == [QueryPosition((), 0, 1, (0,)), QueryPosition((), 0, 0, (0, 1))]


def test_a_round_ends_when_its_node_is_gone() -> None:
    context = open_context(overlapping(), 0.8, 2, None)
    gone = QueryPosition(((0, 7), (1, 0)), 0, 0, (0, 1))
    assert agenda_of(context, gone, 3) == agenda_of(context, None, 3)


def test_a_round_outlives_the_split_of_its_node() -> None:
    """All is told of row 0; the node is a leaf now, but its round is not over."""
    rows = sample([(1.0, 0.0), (1.0, 0.9), (1.0, 0.9)], [(0,), (1,), (1,)])
    context = open_context(rows, 1.0, 2, None)
    assert context.growth.tree().stop is Stop.PURE
    assert agenda_of(context, None, 1) == ()
    (left,) = agenda_of(context, QueryPosition((), 0, 0, (0,)), 5)
    assert (left.instance, left.code, left.node_count) == (1, 1, 3)
    assert left.rivals == ((0, 0.0, 0.0),)


def test_nobody_is_asked_where_nothing_can_be_gained() -> None:
    labels = [(1.0, 0.2), (0.2, 1.0)] * 4
    context = open_context(sample(labels, [(i // 2 % 2, i // 4) for i in range(8)]), 1.0, 2, None)
    assert context.growth.tree().stop is Stop.NO_GAIN
    assert agenda_of(context, None, 5) == ()


def test_nobody_is_asked_twice() -> None:
    context = open_context(overlapping(), 0.8, 2, None)
    assert sorted(q.instance for q in agenda_of(context, None, 100)) == list(range(8))
    assert context.sample.askable.all()


def test_induce_without_an_oracle_asks_nobody() -> None:
    assert induce([[0], [1]], [2], [[1, 1], [1, 1]], budget=5).queries == ()


def test_a_query_stands_for_a_child_of_a_rival() -> None:
    with pytest.raises(InvalidInput, match="rivals: are \\(0, 1\\), must contain the attribute 2"):
        QueryPosition((), 2, 0, (0, 1))


GOOD = {"codes": [[0], [1]], "arities": [2], "contours": [[1, 0.5], [0, 1]]}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"codes": [[0], [2]]}, "codes[1][0]: is 2, must lie in [0, 2)"),
        ({"codes": [[0], [-1]]}, "codes[1][0]: is -1, must lie in [0, 2)"),
        ({"codes": [[0]]}, "codes: have shape (1, 1), must be (2, 1)"),
        ({"codes": [[0.5], [1]]}, "codes: must be whole numbers in 2 dimensions, have float64"),
        ({"codes": [0, 1]}, "codes: must be whole numbers in 2 dimensions, have int64"),
        ({"arities": [0]}, "arities: must lie in [1, 32767]"),
        ({"contours": [[1, 2], [0, 1]]}, "contours[0][1]: is 2.0, must lie in [0, 1]"),
        ({"contours": [[0, 0], [0, 1]]}, "contours[0]: is zero for every class"),
        ({"contours": [[1], [1]]}, "contours: is 1, must lie in [2, 64]"),
        ({"alpha": -0.1}, "alpha: is -0.1, must lie in [0, 1]"),
        ({"budget": -1}, "budget: is -1, must be a whole number in [0, 1000000]"),
        ({"min_instances": 0}, "min_instances: is 0, must be a whole number in [1, 1000000]"),
        ({"max_depth": -1}, "max_depth: is -1, must be a whole number in [0, 1000000]"),
    ],
)
def test_bad_arguments(given: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        induce(**(GOOD | given))
    assert message in str(caught.value)


def test_a_bad_answer_names_its_row() -> None:
    contours = [[1, 1]] * 8
    with pytest.raises(InvalidInput, match=r"answer for row 0\[1\]: is 3.0, must lie in \[0, 1\]"):
        induce([[i % 2] * 2 for i in range(8)], [2, 2], contours, budget=1, oracle=lambda _: [0, 3])
