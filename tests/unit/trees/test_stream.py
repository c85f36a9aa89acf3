from dataclasses import replace

import numpy as np
import pytest
from support.published import published_tree

from quercus.belief.errors import InvalidInput
from quercus.belief.frame import Frame
from quercus.specification.attributes import Nominal, Numeric
from quercus.trees.ask.query import QueryPosition
from quercus.trees.growth.incremental.growing import GrowingTree
from quercus.trees.growth.stream import (
    Answered,
    Corrected,
    GrowthState,
    Observed,
    Refused,
    Respecified,
    SpentStateError,
    grow,
)
from quercus.trees.tree.node import Stop

NAN = float("nan")
SPEC = published_tree(
    (Numeric("size"), Nominal("colour", ("red", "blue"))), Frame(("yes", "no")), budget=3, warmup_rows=4
)
ASKED = QueryPosition((), 1, 0, (0, 1))
ASKED_ROOT = QueryPosition((), None, None, ())


def observed(*rows: tuple[float, float], contour: tuple[float, float] = (1.0, 1.0)) -> Observed:
    return Observed(np.array(rows, dtype=float), np.array([contour] * len(rows)))


def state(*events: object) -> GrowthState:
    return grow(GrowthState.initial(SPEC), events)


def test_an_empty_log_grows_a_root() -> None:
    tree = state().tree
    assert (tree.count, tree.stop, tree.theta, tree.klass) == (0, Stop.FEW_INSTANCES, (0.5, 0.5), 0)
    assert (tree.belief, tree.plausibility) == ((0.0, 0.0), (1.0, 1.0))
    assert state().agenda(5) == ()


def test_an_empty_push_changes_nothing() -> None:
    empty = Observed(np.empty((0, 2)), np.empty((0, 2)))
    assert state(empty).instance_count == 0
    assert state(observed((1, 0), (2, 1)), empty).tree == state(observed((1, 0), (2, 1))).tree


def test_bins_move_until_the_warm_up_is_over() -> None:
    short = state(observed((0, 0), (4, 0)))
    assert short.edges[0] == pytest.approx((1, 2, 3))
    longer = grow(short, [observed((8, 0))])
    assert longer.edges[0] == pytest.approx((2, 4, 6))
    assert longer.evidence.codes[:, 0].tolist() == [0, 2, 3]
    full = grow(longer, [observed((8, 0), (100, 0))])
    assert full.edges[0] == pytest.approx((2, 4, 6))
    assert full.evidence.codes[:, 0].tolist() == [0, 2, 3, 3, 3]
    assert grow(full, [observed((-9, 0), (NAN, 0))]).evidence.codes[-2:, 0].tolist() == [0, 4]


def test_learned_values_are_branches_after_the_missing_one() -> None:
    grown = state(observed((1, 0), (1, NAN), (1, 3)))
    assert grown.evidence.codes[:, 1].tolist() == [0, 2, 4]
    assert grown.branch_names[1] == ("red", "blue", "?", "learned value 0", "learned value 1")
    assert grown.names({1: ("green", "pink")})[1] == ("red", "blue", "?", "green", "pink")
    assert list(grown.tree.children) == [0, 2, 4]


def test_a_learned_value_does_not_move_an_open_round() -> None:
    twins = tuple(Nominal(name, ("red", "blue")) for name in ("hat", "coat"))
    spec = published_tree(twins, Frame(("yes", "no")), budget=9, strategy="published")
    grown = grow(GrowthState.initial(spec), [observed((0, 0), (1, 1), (NAN, NAN), (NAN, NAN))])
    asked = grown.agenda(4)
    assert [(q.attribute, q.code, q.instance) for q in asked] == [(0, 0, 0), (0, 1, 1), (0, 2, 2), (1, 2, 3)]
    grown = grow(grown, [Refused(q.instance, q.asked) for q in asked[:3]])
    grown = grow(grown, [observed((2, 2))])
    assert [(q.attribute, q.code, q.instance) for q in grown.agenda(2)] == [(0, 3, 4), (1, 2, 3)]


def test_a_certain_answer_replaces_and_an_uncertain_one_multiplies() -> None:
    first = observed((1, 0), contour=(0.5, 1.0))
    assert state(first, Answered(0, np.array([1.0, 0.0]), 1.0, ASKED)).contour(0).tolist() == [1, 0]
    assert state(first, Answered(0, np.array([1.0, 0.0]), 0.5, ASKED)).contour(0).tolist() == [1, 1]
    assert state(first, Answered(0, np.array([1.0, 0.5]), 1.0, ASKED)).contour(0).tolist() == [1, 1]
    assert state(first, Refused(0, ASKED)).contour(0).tolist() == [0.5, 1]


def test_answers_spend_the_budget_and_refusals_do_not() -> None:
    rows = observed(*((i, i % 2) for i in range(6)))
    assert len(state(rows).agenda(100)) == 3
    assert len(state(rows, Refused(0, ASKED)).agenda(100)) == 3
    assert len(state(rows, Answered(0, np.array([1.0, 1.0]), 1.0, ASKED)).agenda(100)) == 2
    answers = [Answered(i, np.array([1.0, 0.0]), 1.0, ASKED) for i in range(3)]
    assert state(rows, *answers).agenda(100) == ()
    assert len(state(rows, *answers, Respecified(replace(SPEC, budget=4))).agenda(100)) == 1


def test_whoever_answered_or_refused_is_not_asked_again() -> None:
    rows = observed(*((i, i % 2) for i in range(6)))
    grown = state(rows, Answered(1, np.array([1.0, 1.0]), 1.0, ASKED), Refused(2, ASKED))
    grown = grow(grown, [Respecified(replace(SPEC, budget=100))])
    assert sorted(query.instance for query in grown.agenda(100)) == [0, 3, 4, 5]


def test_a_state_that_was_grown_from_is_spent() -> None:
    before = state(observed((1, 0), (2, 1)))
    after = grow(before, [observed((3, 1)), Answered(0, np.array([1.0, 0.0]), 1.0, ASKED)])
    assert after.instance_count == 3
    for use in (
        lambda: before.tree,
        lambda: before.flat,
        lambda: before.agenda(1),
        lambda: before.contour(0),
        lambda: grow(before, []),
    ):
        with pytest.raises(SpentStateError, match="use the one that `grow` returned"):
            use()


def test_an_event_that_does_not_fit_leaves_the_state_as_it_was() -> None:
    before = state(observed((1, 0), (2, 1)))
    tree, contour = before.tree, before.contour(0).tolist()
    with pytest.raises(InvalidInput, match="instance: is 7, there are 3 instances"):
        grow(before, [observed((3, 1)), Answered(0, np.array([1.0, 0.0]), 1.0, ASKED), Refused(7, ASKED)])
    assert (before.instance_count, before.contour(0).tolist()) == (2, contour)
    assert before.tree == tree


def test_a_correction_stands_in_the_place_of_all_answers() -> None:
    pushed = (1.0, 0.6)
    told = Answered(0, np.array([0.2, 1.0]), 0.5, ASKED)
    grown = state(observed((1, 0), (2, 1), contour=pushed), told, told)
    corrected = grow(grown, [Corrected(0, np.array([1.0, 0.5]), 0.5)])
    assert corrected.contour(0).tolist() == pytest.approx([1.0, 0.45])
    assert (corrected.answers, corrected.asked) == (2, ASKED)
    assert not corrected.evidence.askable[0]
    undone = grow(corrected, [Corrected(0, None)])
    assert undone.contour(0).tolist() == list(pushed)
    assert undone.evidence.askable[0]


def test_a_new_level_grows_another_tree() -> None:
    rows = [observed((1, 0), (1, 1), contour=(1.0, 0.3)), observed((1, 1), (1, 1), contour=(0.2, 1.0))]
    one, other = state(*rows), state(*rows, Respecified(replace(SPEC, alpha=0.1)))
    assert one.tree.intervals[1][0] > other.tree.intervals[1][0]
    assert grow(other, [Respecified(SPEC)]).tree == one.tree


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (observed((1, -1)), "values[0].colour: is -1.0, must be a whole number in [0, 1001)"),
        (Observed(np.zeros((1, 2)), np.array([[0.0, 0.0]])), "contours[0]: is zero for every class"),
        (Observed(np.zeros((2, 2)), np.ones((1, 2))), "contours: are 1, must be one for each of 2 rows"),
        (Refused(1, ASKED), "instance: is 1, there are 1 instances"),
        (Refused(-1, ASKED), "instance: is -1, there are 1 instances"),
        (
            Respecified(replace(SPEC, frame=Frame(("a", "b")))),
            "frame: cannot change once the model exists",
        ),
        (
            Respecified(replace(SPEC, attributes=SPEC.attributes[:1])),
            "attributes: cannot change once the model exists",
        ),
    ],
)
def test_events_that_do_not_fit(event: object, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        state(observed((1, 0)), event)
    assert message in str(caught.value)


def test_a_sweep_cut_short_is_begun_again(monkeypatch: pytest.MonkeyPatch) -> None:
    grown = state(observed((1, 0), (2, 1), (3, 0), contour=(1.0, 0.2)))
    grown.agenda(1)
    grown = grow(grown, [observed((4, 1), (2, 0), contour=(0.1, 1.0))])
    with monkeypatch.context() as patch:
        patch.setattr(GrowingTree, "_apply_splits", lambda *_: (_ for _ in ()).throw(MemoryError))
        with pytest.raises(MemoryError):
            grown.flat  # noqa: B018
    assert (
        grown.tree
        == state(
            observed((1, 0), (2, 1), (3, 0), contour=(1.0, 0.2)), observed((4, 1), (2, 0), contour=(0.1, 1.0))
        ).tree
    )
