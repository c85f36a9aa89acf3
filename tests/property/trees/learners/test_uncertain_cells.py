"""Rows to learn from whose cells are sets or ranges (theory §14): learners against plain computations."""

from fractions import Fraction

import numpy as np
import pytest
from support.plain_shared_cells import PlainNode, divide, is_open, plain_tree

from quercus.belief.errors import InvalidInput
from quercus.specification.attributes import Nominal, Numeric
from quercus.trees import Abc45, BeliefEntropy, Between, E2m, Forest, UncertainValues, fit
from quercus.trees.growth.batch import SplitChoice
from quercus.trees.learners.averaging import Averaging
from quercus.trees.learners.c45 import C45
from quercus.trees.learners.gain_rules import code_branches
from quercus.trees.learners.id3 import Id3
from quercus.trees.learners.learner import Learner
from quercus.trees.learners.predicting import TreeModel
from quercus.trees.learners.splits import root_node
from quercus.trees.learners.table import Table
from quercus.trees.learners.total_uncertainty import TotalUncertainty
from quercus.trees.tree.node import Node

ATTRIBUTES = (Nominal("a", ("x", "y", "z")), Numeric("n"), Nominal("b", ("p", "q")))
ARITIES = (3, None, 2)
LEARNERS: list[Learner] = [
    Id3(),
    C45(),
    C45(confidence=0.25, min_branch=1),
    Averaging(),
    TotalUncertainty(lam=0.5),
    TotalUncertainty(),
    E2m(),
    Abc45(alpha=0.8),
]


def random_rows(seed: int, count: int = 24, *, missing: bool = True) -> list[list[object]]:
    """Return rows of known values, sets, ranges, and missing names."""
    rng = np.random.default_rng(seed)
    rows: list[list[object]] = []
    for _ in range(count):
        a, n, b = int(rng.integers(3)), float(rng.integers(8)), int(rng.integers(2))
        row: list[object] = [a, n, b]
        if rng.random() < 0.3:
            row[0] = frozenset({a, (a + 1 + int(rng.integers(2))) % 3})
        if rng.random() < 0.3:
            row[1] = (n - float(rng.integers(3)), n + 1.0 + float(rng.integers(3)))
        if rng.random() < 0.2:
            row[2] = frozenset({0, 1}) if rng.random() < 0.5 or not missing else None
        rows.append(row)
    return rows


def cells_of(rows: list[list[object]]) -> UncertainValues:
    given = [[Between(*cell) if isinstance(cell, tuple) else cell for cell in row] for row in rows]
    return UncertainValues.of_rows(given, ATTRIBUTES)


def assert_same(tree: Node, plain: PlainNode) -> None:
    assert tree.attribute == plain.attribute
    assert tree.threshold == pytest.approx(plain.threshold)
    weight = sum(plain.sums)
    assert tree.size == pytest.approx(weight, abs=1e-9)
    assert np.array(tree.theta) * weight == pytest.approx(plain.sums, abs=1e-9)
    assert tree.children.keys() == plain.children.keys()
    for code, child in tree.children.items():
        assert_same(child, plain.children[code])


@pytest.mark.parametrize("seed", range(12))
def test_an_id3_tree_is_the_plain_one(seed: int):
    rows, classes = random_rows(seed), np.random.default_rng(seed + 99).integers(2, size=24)
    model = fit(Id3(), Table.of_classes(cells_of(rows), ATTRIBUTES, classes, 2))
    assert isinstance(model, TreeModel)
    (tree,) = model.trees
    plain = [((row, np.eye(2)[c].tolist()), Fraction(1)) for row, c in zip(rows, classes, strict=True)]
    assert_same(tree, plain_tree(plain, ARITIES, [0, 1, 2]))


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("attribute", [0, 1])
def test_the_gains_of_a_root_are_those_of_rows_divided_by_hand(learner: Learner, attribute: int):
    """An uncertain row of one attribute is one of several rows with known values, whose weights sum to its own."""
    rows = [[row[attribute]] for row in random_rows(3)]
    if attribute == 1:  # at one threshold
        rows = [[row[0] if is_open(row[0]) else float(row[0] >= 4) * 8.0] for row in rows]
    classes = np.random.default_rng(5).integers(2, size=len(rows))
    contours = np.where(np.eye(2)[classes] > 0, 1.0, 0.25 if learner.name in {"abc45", "e2m"} else 0.0)
    shown = (ATTRIBUTES[attribute],)
    given = [[Between(*c) if isinstance(c, tuple) else c for c in row] for row in rows]
    one = fit(learner, Table.of_contours(UncertainValues.of_rows(given, shown), shown, contours))
    places = [((row, [float(i)]), Fraction(1)) for i, row in enumerate(rows)]
    parts = divide(places, 0, 4.0 if attribute else None, 3)
    if learner.name == "c45":  # what may go down several branches counts in a gain as missing
        values = [row if not is_open(row[0]) else [None] for row in rows]
        if attribute:
            values = [[None if is_open(r[0]) and r[0][0] < 4 <= r[0][1] else v(r[0])] for r in rows]
        other = Table.of_contours(np.array(values, dtype=float), shown, contours)
    else:
        value = (lambda code: code * 8.0) if attribute else float
        index = [
            (int(row[1][0]), value(code), float(part)) for code, some in parts.items() for row, part in some
        ]
        which, values, weights = zip(*index, strict=True)
        other = Table.of_contours(np.array(values)[:, np.newaxis], shown, contours[list(which)], weights)
    two = fit(learner, other)
    (first, *_), (second, *_) = one.flat_trees, two.flat_trees
    assert first.attribute[0] == second.attribute[0]
    assert first.interval_lower[:1] == pytest.approx(second.interval_lower[:1], abs=1e-9)
    assert first.interval_upper[:1] == pytest.approx(second.interval_upper[:1], abs=1e-9)


def v(cell: object) -> float:
    """Return a number on the same side of 4 as the whole of a range."""
    return (0.0 if cell[1] < 4 else 8.0) if isinstance(cell, tuple) else float(cell)  # type: ignore[arg-type, index]


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda each: type(each).__name__)
def test_the_weight_of_the_rows_is_that_of_the_leaves(learner: Learner):
    rows, classes = random_rows(7, 60), np.random.default_rng(1).integers(2, size=60)
    model = fit(learner, Table.of_classes(cells_of(rows), ATTRIBUTES, classes, 2))
    for flat in model.flat_trees:
        tree = flat.tree()
        leaves = [node.size for node, _, _ in tree.preorder() if node.is_leaf]
        assert sum(leaves) == pytest.approx(60)


@pytest.mark.parametrize("learner", [*LEARNERS, Forest(Id3(), trees=3)], ids=lambda each: type(each).__name__)
def test_a_set_of_one_value_is_the_value(learner: Learner):
    rows, classes = random_rows(2), np.random.default_rng(1).integers(2, size=24)
    known = [[min(r[0]) if is_open(r[0]) else r[0], r[1][0] if is_open(r[1]) else r[1], 0] for r in rows]
    single = [[frozenset({r[0]}), Between(r[1], r[1]), r[2]] for r in known]
    cells = UncertainValues.of_rows(single, ATTRIBUTES)
    assert not cells.parts
    one = fit(learner, Table.of_classes(cells, ATTRIBUTES, classes, 2))
    two = fit(learner, Table.of_classes(np.array(known, dtype=float), ATTRIBUTES, classes, 2))
    for a, b in zip(one.flat_trees, two.flat_trees, strict=True):
        assert a.tree() == b.tree()


def test_c45_takes_the_whole_domain_for_a_missing_value():
    rows, classes = random_rows(4), np.random.default_rng(1).integers(2, size=24)
    whole = [[frozenset({0, 1, 2}) if is_open(r[0]) else r[0], 1.0, 0] for r in rows]
    lost = [[None if is_open(r[0]) else r[0], 1.0, 0] for r in rows]
    one, two = (
        fit(C45(), Table.of_classes(cells_of(some), ATTRIBUTES, classes, 2)) for some in (whole, lost)
    )
    (a,), (b,) = one.flat_trees, two.flat_trees
    assert a.theta == pytest.approx(b.theta)
    assert a.branch.tolist() == b.branch.tolist()


def test_small_parts_are_not_divided_further():
    """Twelve cells of two values each: 4,096 leaves a row, were it divided at each."""
    attributes = [Nominal(f"a{k}", ("p", "q")) for k in range(12)]
    rng = np.random.default_rng(0)
    known = rng.integers(2, size=(40, 12)).astype(float)
    rows = [*known.tolist(), *([[frozenset({0, 1})] * 12] * 3)]
    table = Table.of_classes(
        UncertainValues.of_rows(rows, attributes), attributes, rng.integers(2, size=43), 2
    )
    place, count = root_node(table), []
    for k in range(12):
        places = code_branches(table, place, SplitChoice(k, {}))
        place = max(places, key=lambda each: each.rows.size)
        count.append(float(np.min(place.weights)))
    assert min(count) >= 2.0**-12
    assert (
        sum(float(each.weights.sum()) for each in code_branches(table, root_node(table), SplitChoice(0, {})))
        == 43
    )


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([frozenset({0, 3}), 1.0, 0], r"values\[0\].a: is a set with 3, must be whole numbers in \[0, 3\)"),
        ([0, Between(-np.inf, 2.0), 0], r"values\[0\].n: is the range -inf to 2, must have finite ends"),
        ([0, Between(0.0, np.inf), 0], r"values\[0\].n: is the range 0 to inf, must have finite ends"),
    ],
)
def test_what_no_row_can_have_is_refused(row: list[object], message: str):
    cells = UncertainValues.of_rows([row], ATTRIBUTES)
    with pytest.raises(InvalidInput, match=message):
        Table.of_classes(cells, ATTRIBUTES, [0], 2)


def test_a_learner_of_known_values_says_so():
    table = Table.of_classes(cells_of(random_rows(0)), ATTRIBUTES, np.arange(24) % 2, 2)
    for learner in (BeliefEntropy(), Forest()):
        with pytest.raises(
            InvalidInput, match="belief-entropy learns from known values alone, as its densities"
        ):
            fit(learner, table)
