"""Subtrees that were overtaken and come back: the tree is batch induction's, and nothing is lost or kept for ever.

Labels and values know nothing of each other here, so that splits overtake each other all the time.
"""

from collections import Counter

import numpy as np
import pytest
from support.batch import Evidence
from support.logs import answer, correction, elsewhere, label
from support.published import published_tree
from support.sameness import Tally, assert_same

from quercus.belief.frame import Frame
from quercus.specification.attributes import Nominal
from quercus.specification.model import Specification
from quercus.trees.growth.incremental import growing, shelves
from quercus.trees.growth.incremental.growing import GrowingTree
from quercus.trees.growth.stream import Answered, Event, GrowthState, Observed, Refused, grow

ARITIES = [2, 3, 2, 2]
CLASSES = 3
LOOKS = 50
PRECISE, MIXED = np.eye(5)[0], np.array([0.4, 0.3, 0.2, 0.1, 0.0])
SLOW = pytest.mark.slow
ALL, FEW, NONE = (4096, 2), (12, 0), (0, 0)
"""Room on the shelves, as `LEAST_ROOM` and `SHELVED`: for all subtrees, for a few of them, for none."""


def specification(alpha: float, max_depth: int | None) -> Specification:
    attributes = tuple(
        Nominal(f"a{k}", tuple(f"v{i}" for i in range(arity)), "reject") for k, arity in enumerate(ARITIES)
    )
    frame = Frame(tuple(f"c{j}" for j in range(CLASSES)))
    return published_tree(
        attributes,
        frame,
        alpha=alpha,
        budget=1000,
        min_instances=4,
        max_depth=max_depth,
        strategy="published",
    )


def noise(rng: np.random.Generator, count: int, kinds: np.ndarray) -> Observed:
    values = np.column_stack([rng.integers(0, arity, count) for arity in ARITIES]).astype(float)
    labels = [label(rng, CLASSES, int(klass), kinds) for klass in rng.integers(0, CLASSES, count)]
    return Observed(values, np.array(labels))


def said(rng: np.random.Generator, instance: int) -> Event:
    klass = int(rng.integers(0, CLASSES))
    kind = rng.integers(0, 3)
    if kind == 0:
        return Refused(instance, elsewhere(rng, ARITIES))
    if kind == 1:
        return correction(rng, instance, CLASSES, klass)
    return Answered(instance, *answer(rng, CLASSES, klass), elsewhere(rng, ARITIES))


def audit(tree: GrowingTree, rows: int) -> None:
    """Every row is in one list; what nodes, blocks and shelves are taken is what the tree and its shelves hold."""
    nodes = tree.nodes
    live, _ = nodes.preorder(tree.root)
    put_by = [live[:0]]
    size = 0
    for node, shelf in tree._shelves._of.items():
        assert nodes.shelf[node]
        assert nodes.attribute[node] not in shelf
        for attribute, subtree in shelf.items():
            roots = nodes.at_place(subtree.place, attribute)
            inner, leaves, _, _ = nodes.nodes_below(roots)
            held = np.unique(np.concatenate([roots, inner, leaves]))
            assert (nodes.first[held] < 0).all()
            assert held.size == subtree.size
            size += held.size
            put_by.append(held)
    taken = np.concatenate([live, *put_by])
    assert np.unique(taken).size == taken.size == nodes.used_count
    assert size == tree._shelves.size <= max(growing.LEAST_ROOM, growing.SHELVED * live.size)
    assert len(tree._shelves._age) == sum(len(shelf) for shelf in tree._shelves._of.values())
    deep = nodes.depth[taken] >= tree._deepest
    counted = nodes.block[taken] >= 0
    for tally, of in ((tree._tally, counted & ~deep), (tree._deep_tally, counted & deep)):
        blocks = nodes.block[taken[of]]
        assert np.unique(blocks).size == blocks.size == tally.used_count
    leaves = live[nodes.attribute[live] < 0]
    lists = [tree.rows_of_node(int(leaf)) for leaf in leaves]
    assert [len(found) for found in lists] == nodes.count[leaves].tolist()
    assert sorted(np.concatenate(lists).tolist()) == list(range(rows))


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts what the shelves do."""
    counter: Counter[str] = Counter()
    take, remove = shelves.SubtreeShelves.restore_subtree, shelves.SubtreeShelves._remove_subtree

    def taking(self: shelves.SubtreeShelves, node: int, attribute: int) -> int | None:
        found = take(self, node, attribute)
        counter["first time" if found is None else "back"] += 1
        return found

    def removing(self: shelves.SubtreeShelves, node: int, attribute: int) -> shelves.ShelvedSubtree:
        counter["off the shelf"] += 1
        return remove(self, node, attribute)

    monkeypatch.setattr(shelves.SubtreeShelves, "restore_subtree", taking)
    monkeypatch.setattr(shelves.SubtreeShelves, "_remove_subtree", removing)
    return counter


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("alpha", "kinds", "max_depth", "room"),
    [
        (1.0, PRECISE, None, FEW),
        pytest.param(1.0, PRECISE, None, ALL, marks=SLOW),
        pytest.param(1.0, MIXED, 2, NONE, marks=SLOW),
        pytest.param(0.8, PRECISE, 3, FEW, marks=SLOW),
        pytest.param(0.8, MIXED, None, ALL, marks=pytest.mark.release),
    ],
)
def test_what_comes_back_is_batch_induction(
    alpha: float, kinds: np.ndarray, max_depth: int | None, room: tuple[int, int],
    seen: Counter[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    least_room, shelved = room
    monkeypatch.setattr(growing, "LEAST_ROOM", least_room)
    monkeypatch.setattr(growing, "SHELVED", shelved)
    rng = np.random.default_rng([int(10 * alpha), max_depth or 0])
    spec, tally = specification(alpha, max_depth), Tally()
    evidence, state = Evidence(spec), GrowthState(spec, small=6)
    for look in range(LOOKS):
        events: list[Event] = [noise(rng, int(rng.choice([1, 3, 8, 20])), kinds)]
        if look % 5 == 4:
            known = evidence.size + len(events[0].values)
            events += [said(rng, int(rng.integers(0, known))) for _ in range(int(rng.integers(1, 4)))]
        for event in events:
            evidence.take(event)
        state = grow(state, events)
        assert_same(state, evidence, 3, tally)
        audit(state._live._grown_tree(), evidence.size)
    assert len(tally.excused) <= 1, tally.excused
    assert seen["first time"] >= 10
    if least_room == 4096:
        assert seen["back"] >= 5
        assert seen["off the shelf"] > seen["back"]  # cleared where something else was known of a row
    elif least_room:
        assert seen["off the shelf"] > seen["back"] > 0
    else:
        assert seen["back"] == 0


def test_shelves_are_bounded_in_bytes(seen: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes with many counts leave their shelves although many more nodes might be there, and the tree is the same."""
    rng, kinds = np.random.default_rng(3), PRECISE
    spec, tally = specification(1.0, None), Tally()
    evidence, state = Evidence(spec), GrowthState(spec, small=6)
    for _ in range(LOOKS // 2):
        event = noise(rng, 20, kinds)
        evidence.take(event)
        state = grow(state, [event])
        tree = state._live._grown_tree()
        bytes_of_node = tree._tally.held_bytes / tree.nodes.used_count
        monkeypatch.setattr(growing, "SHELF_BYTES", int(20 * bytes_of_node))  # from the next look on
        assert_same(state, evidence, 3, tally)
        audit(tree, evidence.size)
        assert tree._shelves.size <= 40, "twenty nodes of the look before, and what they have grown since"
    assert seen["off the shelf"] > seen["back"] > 0
