"""A tree that was saved and restored goes on as if nothing had happened, and counts only what came since."""

from typing import Any

import numpy as np
import pytest
from support.published import published_tree

from quercus.belief.frame import Frame
from quercus.specification.attributes import Nominal, Numeric
from quercus.specification.model import Specification
from quercus.trees.ask.query import QueryPosition
from quercus.trees.growth.incremental.growing import GrowingTree
from quercus.trees.growth.saved import SavedEvidence, restored_state, saved_evidence
from quercus.trees.growth.stream import Answered, Corrected, GrowthState, Observed, grow

ASKED = QueryPosition((), None, None, ())
ROWS, MORE = 600, 40


def specification(**changes: Any) -> Specification:
    attributes = (Numeric("x"), Numeric("y"), Nominal("colour", ("red", "blue", "green")))
    return published_tree(attributes, Frame(("a", "b", "c")), budget=50, warmup_rows=50, **changes)


def rows(count: int, seed: int) -> Observed:
    rng = np.random.default_rng(seed)
    values = np.column_stack([rng.random((count, 2)), rng.integers(0, 3, count)])
    klass = (values[:, 0] > 0.5).astype(int) + (values[:, 1] > 0.6)
    klass = np.where(rng.random(count) < 0.1, rng.integers(0, 3, count), klass)
    contours = np.eye(3)[klass]
    contours[rng.random(count) < 0.3] = 1.0
    contours[rng.random(count) < 0.1] = (1.0, 0.4, 0.2)
    return Observed(values, contours)


def changes(seed: int) -> list[Any]:
    """Labels for existing rows, and more rows."""
    told = [Answered(row, np.eye(3)[row % 3], 0.9, ASKED) for row in range(seed, ROWS, 97)]
    return [*told, rows(MORE, seed), Corrected(seed, None), rows(MORE, seed + 1)]


def restored(state: GrowthState, spec: Specification) -> GrowthState:
    saved = saved_evidence(state)
    copied = {name: np.array(column) for name, column in saved.columns.items()}
    return restored_state(spec, SavedEvidence(saved.answers, saved.asked, copied))


def assert_same(one: GrowthState, other: GrowthState) -> None:
    for name, column in (
        (name, getattr(one.unpruned_tree, name)) for name in one.unpruned_tree.__dataclass_fields__
    ):
        np.testing.assert_array_equal(column, getattr(other.unpruned_tree, name), err_msg=name)
    assert one.agenda(20) == other.agenda(20)


@pytest.mark.parametrize("depth", [None, 0, 3])
@pytest.mark.parametrize("alpha", [0.9, 1.0])
def test_a_restored_tree_goes_on_as_the_one_that_was_saved(depth: int | None, alpha: float) -> None:
    spec = specification(max_depth=depth, alpha=alpha)
    state = grow(GrowthState.initial(spec), [rows(ROWS, 0)])
    state.agenda(5)
    state = grow(state, changes(1))
    again = restored(state, spec)  # with changes that the tree has not taken up
    assert_same(state, again)
    for turn in (2, 3):
        state, again = grow(state, changes(turn)), grow(again, changes(turn))
        assert_same(state, again)
        again = restored(again, spec)
    fresh = GrowthState.initial(spec)
    for step in ([rows(ROWS, 0)], changes(1), changes(2), changes(3)):
        fresh = grow(fresh, step)
    assert_same(fresh, again)


def test_only_what_came_since_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = specification()
    state = grow(GrowthState.initial(spec), [rows(ROWS, 0)])
    before = state.unpruned_tree
    counted, take_up = [], GrowingTree.take_up

    def noted(self: GrowingTree, taken: Any, *more: Any) -> None:
        counted.append(taken.size)
        take_up(self, taken, *more)

    monkeypatch.setattr(GrowingTree, "take_up", noted)
    again = restored(state, spec)
    assert again.unpruned_tree.count.tolist() == before.count.tolist()
    again = grow(again, [rows(MORE, 1), Answered(0, np.eye(3)[0], 1.0, ASKED)])
    assert again.unpruned_tree.count[0] == ROWS + MORE
    assert counted == [0, MORE + 1]


def test_evidence_without_a_tree_grows_one() -> None:
    spec = specification()
    state = grow(GrowthState.initial(spec), [rows(ROWS, 0)])
    again = restored(state, spec)  # nobody has looked at the tree
    assert again._live._tree is None
    assert_same(state, again)


@pytest.mark.parametrize(
    ("name", "place", "number"),
    [
        ("after", 0, ROWS),
        ("first", -1, -2),
        ("above", 1, 1),
        ("attribute", 0, -1),
        ("code", 1, 99),
        ("used", 0, 99),
        ("taken", 0, ROWS + 1),
        ("kept", 0, 0),
    ],
)
def test_columns_that_do_not_fit_are_refused(name: str, place: int, number: int) -> None:
    spec = specification()
    state = grow(GrowthState.initial(spec), [rows(ROWS, 0)])
    assert state.unpruned_tree.count.size > 1
    saved = saved_evidence(state)
    columns = {key: np.array(column) for key, column in saved.columns.items()}
    columns[f"tree.{name}"][place] = number
    with pytest.raises(ValueError, match=r"column|fit|order|child"):
        restored_state(spec, SavedEvidence(saved.answers, saved.asked, columns))
