"""The contest above a node is that of the deepest undecided node on the way to it, found by a walk through the tree."""

import numpy as np
import pytest
from support.published import published_tree

from quercus.belief.frame import Frame
from quercus.specification.attributes import Nominal
from quercus.trees.ask.query import Contest, QueryableTree
from quercus.trees.growth.stream import Corrected, GrowthState, Observed, grow
from quercus.trees.tree.node import Node, Path

ROWS, NAMES = 120, 3


def grown(seed: int, *, uncertain: bool) -> GrowthState:
    """A tree of names that tell the class often, and of labels that tell nothing or half of it often."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(NAMES, size=ROWS)
    values = np.where(
        rng.random((ROWS, 4)) < [0.85, 0.75, 0.6, 0.4],
        truth[:, np.newaxis],
        rng.integers(NAMES, size=(ROWS, 4)),
    ).astype(float)
    parts: dict[tuple[int, int], tuple[tuple[float, float], ...]] = {}
    if uncertain:
        for row in range(0, ROWS, 5):
            parts[row, 1] = ((0.0, 0.0), (2.0, 2.0))
            values[row, 1] = np.nan
    contours = np.eye(NAMES)[truth]
    vague = rng.random(ROWS) < 0.5
    contours[vague] = np.maximum(contours[vague], rng.choice([0.2, 0.7, 1.0], (int(vague.sum()), NAMES)))
    spec = published_tree(
        tuple(Nominal(f"a{k}", tuple("uvw")) for k in range(4)),
        Frame(("a", "b", "c")),
        alpha=0.6,
        budget=50,
        min_instances=2,
        warmup_rows=ROWS,
        strategy="published",
        split_significance=0.0,
    )
    state = grow(GrowthState.initial(spec), [Observed(values, contours, parts)])
    state.context().growth.contests_above([()])  # what changes later may not be remembered
    return grow(state, [Corrected(row, np.eye(NAMES)[truth[row]], 0.9) for row in range(0, ROWS, 11)])


def nodes_of(tree: Node) -> dict[Path, Node]:
    """Return all nodes by their paths."""
    found: dict[Path, Node] = {}
    waiting: list[tuple[Path, Node]] = [((), tree)]
    while waiting:
        path, node = waiting.pop()
        found[path] = node
        if node.attribute is not None:
            waiting += [((*path, (node.attribute, code)), child) for code, child in node.children.items()]
    return found


def undecided_above(nodes: dict[Path, Node], path: Path) -> Path | None:
    """Return the path of the deepest undecided node on the way to a node."""
    on_the_way = [path[:depth] for depth in range(len(path) + 1) if nodes[path[:depth]].undecided]
    return on_the_way[-1] if on_the_way else None


@pytest.mark.parametrize("uncertain", [False, True], ids=["whole", "uncertain"])
@pytest.mark.parametrize("seed", range(4))
def test_it_is_that_of_the_deepest_undecided_node(seed: int, uncertain: bool) -> None:
    """All nodes at once, in any order and twice; after labels changed, those of the tree as it is now."""
    state = grown(seed, uncertain=uncertain)
    tree: QueryableTree = state.context().growth
    nodes = nodes_of(state.tree)
    paths = list(nodes)
    order = np.random.default_rng(seed).permutation(len(paths) * 2) % len(paths)
    found = dict(zip((paths[k] for k in order), tree.contests_above([paths[k] for k in order]), strict=True))
    assert found == dict(zip(paths, tree.contests_above(paths), strict=True))
    rivals = {place.path: rivals for place, rivals in tree.contested_nodes()}
    below = 0
    for path, contest in found.items():
        above = undecided_above(nodes, path)
        below += above not in (None, (), path)
        assert (None if contest is None else contest.path) == above
        if above is None:
            continue
        assert isinstance(contest, Contest)
        (place,) = [each for each, _ in tree.contested_nodes() if each.path == above]
        standing = (
            place.rows.size if uncertain else nodes[above].count
        )  # a row with a set may reach several nodes
        assert contest.node_count == standing
        assert [k for k, _, _ in contest.rivals] == list(rivals[above])
        gains = tree.gain_intervals(place)
        np.testing.assert_allclose([each[1:] for each in contest.rivals], [gains[k] for k in rivals[above]])
    assert below, "no node stands below an undecided one"
    assert tree.contests_above([]) == []
