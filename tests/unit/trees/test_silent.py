"""A branch without information predicts as its nearest informed ancestor, wherever the tree comes from."""

import numpy as np
import pytest
from support.growing import abc45
from support.published import published_tree

from quercus.belief.frame import Frame
from quercus.specification.attributes import Nominal
from quercus.specification.learners import Pruning
from quercus.trees import Abc45, E2m, Forest
from quercus.trees.ask.query import QueryPosition
from quercus.trees.growth.abc45 import induce
from quercus.trees.growth.stream import Answered, GrowthState, Observed, grow
from quercus.trees.learners.cells import Value
from quercus.trees.learners.learner import fit
from quercus.trees.learners.table import Table
from quercus.trees.tree.flat import FlatTree, nearest_speaking
from quercus.trees.tree.names import TreeNames
from quercus.trees.tree.node import Node
from quercus.view.trees.dot import to_dot
from quercus.view.trees.svg import to_svg
from quercus.view.trees.text import to_text

COLOUR = Nominal("colour", ("red", "green", "blue"), missing="reject")
NO, YES, ANY = (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)
HALF = (0.5, 0.5)  # says nothing either
# red is no, green is yes; of blue nothing is known
CODES = [0, 0, 0, 1, 1, 1, 1, 2, 2, 2]
LABELS = [NO, NO, NO, YES, YES, YES, YES, ANY, HALF, ANY]
ROOT = (3 / 7, 4 / 7)
NAMES = TreeNames(("no", "yes"), ("colour",), (("red", "green", "blue"),))


def table(codes: list[int], labels: list[tuple[float, float]]) -> Table:
    return Table.of_contours(np.array(codes, float)[:, np.newaxis], [COLOUR], labels)


def state(alpha: float, codes: list[int], labels: list[tuple[float, float]]) -> GrowthState:
    spec = published_tree((COLOUR,), Frame(("no", "yes")), alpha=alpha)
    rows = Observed(np.array(codes, float)[:, np.newaxis], np.array(labels))
    return grow(GrowthState.initial(spec), [rows])


def trees(alpha: float, codes: list[int], labels: list[tuple[float, float]]) -> list[Node]:
    offline = induce(np.array(codes)[:, np.newaxis], [3], labels, alpha=alpha).tree
    one_by_one = GrowthState.initial(published_tree((COLOUR,), Frame(("no", "yes")), alpha=alpha))
    for code, label in zip(codes, labels, strict=True):
        one_by_one = grow(one_by_one, [Observed(np.array([[float(code)]]), np.array([label]))])
        assert one_by_one.tree.count
    return [
        offline,
        one_by_one.tree,
        state(alpha, codes, labels).tree,
        abc45(table(codes, labels), alpha=alpha),
        FlatTree.of(offline).tree(),
    ]


@pytest.mark.parametrize("alpha", [0.0, 0.5, 0.9, 1.0])
def test_a_silent_branch_predicts_with_the_estimate_above(alpha: float) -> None:
    for tree in trees(alpha, CODES, LABELS):
        blue = tree.children[2]
        assert tree.theta == pytest.approx(ROOT)
        assert (blue.klass, blue.theta) == (1, tree.theta)
        assert (blue.belief, blue.plausibility) == ((0, 0), (1, 1))  # nothing is known, and it says so


def test_silence_is_passed_on_through_silent_nodes() -> None:
    parent, is_silent = np.array([-1, 0, 1, 2, 3, 0]), np.array([True, True, True, False, True, True])
    assert nearest_speaking(parent, is_silent).tolist() == [0, 0, 0, 3, 3, 0]
    two = Nominal("hat", ("a", "b")), Nominal("coat", ("a", "b"))
    values = [[0, 0], [0, 1]] * 4 + [[1, 0], [1, 1]] * 2
    rows = Table.of_contours(values, two, [YES] * 6 + [NO] * 2 + [ANY] * 4)
    grown = grow(
        GrowthState.initial(published_tree(two, Frame(("no", "yes")), alpha=0.5)),
        [Observed(rows.values, rows.contours)],
    )
    for tree in (grown.tree, abc45(rows, alpha=0.5)):
        assert tree.attribute == 0
        below = tree.children[1]
        assert list(below.children) == [0, 1]  # of an interval that is the whole one something may be gained
        assert [node.theta for node in (below, *below.children.values())] == [tree.theta] * 3
        assert tree.theta == pytest.approx((0.25, 0.75))


def test_at_the_root_every_class_is_as_likely() -> None:
    for tree in trees(0.8, [0, 1, 2], [ANY, HALF, ANY]):
        assert all((node.klass, node.theta) == (0, (0.5, 0.5)) for node, _, _ in tree.preorder())


def test_ties_of_labels_that_say_something_are_left() -> None:
    """{no, yes} of three classes rules one out: the branch has an opinion, though many estimates fit it."""
    labels = [(1.0, 0, 0)] * 3 + [(0, 0, 1.0)] * 4 + [(1.0, 1, 0)]
    for grown in (
        induce(np.array([[0]] * 3 + [[1]] * 4 + [[2]]), [3], labels).tree,
        abc45(Table.of_contours([[c] for c in [0] * 3 + [1] * 4 + [2]], [COLOUR], labels)),
    ):
        assert grown.children[2].theta[2] == pytest.approx(0, abs=1e-6)


def test_an_answer_elsewhere_changes_what_a_silent_branch_predicts() -> None:
    codes, labels = [*CODES, 0, 0, 0], [*LABELS, ANY, ANY, ANY]
    grown = state(0.9, codes, labels)
    assert grown.flat.klass[grown.flat.route(np.array([[2]]))].tolist() == [1]
    for instance in (10, 11, 12):
        told = Answered(instance, np.array(NO), 1.0, QueryPosition((), 0, 0, (0,)))
        grown = grow(grown, [told])
    assert grown.tree.children[2].theta == pytest.approx((0.6, 0.4))
    assert grown.flat.klass[grown.flat.route(np.array([[2]]))].tolist() == [0]
    assert grown.tree == state(0.9, codes, [*LABELS, NO, NO, NO]).tree


@pytest.mark.parametrize("kind", ["likelihood", "chi-square"])
def test_pruning_keeps_it(kind: str) -> None:
    pruning = Pruning(kind, 0.05)  # type: ignore[arg-type]
    spec = published_tree((COLOUR,), Frame(("no", "yes")), alpha=0.9, pruning=pruning)
    rows = Observed(np.array(CODES, float)[:, np.newaxis], np.array(LABELS))
    for tree in (
        grow(GrowthState.initial(spec), [rows]).tree,
        abc45(table(CODES, LABELS), alpha=0.9, pruning=pruning),
    ):
        assert tree.children[2].theta == tree.theta


def test_every_prediction_says_so() -> None:
    for learner in (Abc45(alpha=0.9), E2m()):
        model = fit(learner, table(CODES, LABELS))
        said = model.predict([[2.0]])
        assert (said.klass[0], said.theta[0].tolist()) == (1, pytest.approx(ROOT))
        open_: list[list[Value]] = [[frozenset({0, 2})], [None]]
        halves, unknown = model.predict_rows(open_).theta
        assert halves[0] == pytest.approx((3 * 1 + 3 * ROOT[0]) / 6)  # by the weight of the branches
        assert unknown[0] == pytest.approx((3 + 3 * ROOT[0]) / 10)


def test_so_do_the_trees_of_a_forest() -> None:
    few_no = [NO, ANY, ANY, *LABELS[3:]]
    model = fit(Forest(E2m(), 5), table(CODES * 3, few_no * 3))
    silent = 0
    for flat in model.flat_trees:
        told = flat.route(np.array([[2]]))
        silent += int(flat.as_parent[told].sum())
        assert (flat.theta[told] == flat.theta[np.maximum(flat.parent[told], 0)]).all()
    assert silent > 0
    assert model.predict([[2.0]]).klass.tolist() == [1]


def test_drawings_say_as_its_parent() -> None:
    tree = state(0.9, CODES, LABELS).flat
    assert tree.as_parent.tolist() == [False, False, False, True]
    last = to_text(tree, NAMES).splitlines()[-1]
    assert last == "└── blue: yes  n=3  (no 0.43  yes 0.57, as its parent)"
    assert to_dot(tree, NAMES).count("as its parent") == 1
    assert to_svg(tree, NAMES).count("as its parent") == 2  # in the node, and in its title
