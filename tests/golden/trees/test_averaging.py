"""The worked case of Elouedi, Mellouli and Smets 2000 (theory §4)."""

import numpy as np
import pytest
from support.growing import averaging

from quercus.belief.mass import MassFunction
from quercus.specification.attributes import Nominal
from quercus.trees.growth.batch import OpenNode
from quercus.trees.learners.averaging import Averaging, AveragingRules, mean_mass
from quercus.trees.learners.cells import UncertainValues
from quercus.trees.learners.predicting import TreeModel
from quercus.trees.learners.splits import class_entropy
from quercus.trees.learners.table import Table
from quercus.trees.tree.node import Stop

EYES, HAIR, HEIGHT = 0, 1, 2
BROWN, BLUE, DARK, BLOND, SHORT, TALL = 0, 1, 0, 1, 0, 1
ATTRIBUTES = (
    Nominal("Eyes", ("Br", "Bl")),
    Nominal("Hair", ("Da", "Bo")),
    Nominal("Height", ("S", "T")),
)
VALUES = [
    [BROWN, DARK, SHORT],
    [BROWN, DARK, TALL],
    [BLUE, BLOND, TALL],
    [BLUE, DARK, TALL],
    [BLUE, DARK, SHORT],
]
C1, C2, C3, WHOLE = 1, 2, 4, 7
MASSES = [
    MassFunction.of(3, {C1: 0.3, C1 | C2: 0.4, WHOLE: 0.3}),
    MassFunction.of(3, {C2: 0.5, C1 | C2: 0.2, WHOLE: 0.3}),
    MassFunction.of(3, {C1: 0.8, WHOLE: 0.2}),
    MassFunction.of(3, {C2: 0.1, C3: 0.3, C2 | C3: 0.2, WHOLE: 0.4}),
    MassFunction.of(3, {C2: 0.7, WHOLE: 0.3}),
]
TABLE = Table.of_masses(VALUES, ATTRIBUTES, MASSES)


def near(values: object, tolerance: float = 1e-12) -> object:
    return pytest.approx(values, abs=tolerance)


def test_the_root_holds_the_mean_mass():
    root = averaging(TABLE)
    assert root.mass is not None
    assert dict(root.mass.focal) == near(
        {C1: 0.22, C2: 0.26, C3: 0.06, C1 | C2: 0.12, C2 | C3: 0.04, WHOLE: 0.3}
    )
    assert root.mass == mean_mass(dict.fromkeys(MASSES, 1.0))
    assert root.theta == near((0.38, 0.44, 0.18))
    assert root.belief == near((0.22, 0.26, 0.06))
    assert root.plausibility == near((0.64, 0.72, 0.4))
    assert root.klass == 1


def test_the_information_of_the_training_set():
    assert class_entropy(np.array([1.0, 0.38, 0.44, 0.18])) == near(1.496907, 5e-7)


def test_the_gains_at_the_root():
    gains = averaging(TABLE).intervals
    expected = {EYES: 0.022883, HAIR: 0.189270, HEIGHT: 0.032602}
    assert {k: low for k, (low, _) in gains.items()} == near(expected, 5e-7)
    assert all(low == high for low, high in gains.values())


def test_the_gains_among_dark_hair():
    place = OpenNode(((HAIR, DARK),), np.array([0, 1, 3, 4]), (EYES, HEIGHT))
    choice = AveragingRules(TABLE, TABLE.pignistic, Averaging()).choose_split(place)
    assert choice is not None
    assert choice.attribute == EYES
    assert {k: low for k, (low, _) in choice.intervals.items()} == near(
        {EYES: 0.103458, HEIGHT: 0.067058}, 5e-7
    )


def test_the_tree():
    root = averaging(TABLE)
    dark, blond = root.children[DARK], root.children[BLOND]
    assert (root.attribute, dark.attribute) == (HAIR, EYES)
    assert blond.mass == MASSES[2]
    assert blond.stop is Stop.FEW_INSTANCES
    for eyes, short, tall in ((BROWN, 0, 1), (BLUE, 4, 3)):
        node = dark.children[eyes]
        assert node.attribute == HEIGHT
        assert (node.children[SHORT].mass, node.children[TALL].mass) == (MASSES[short], MASSES[tall])
    assert not any(node.conflict for node, _, _ in root.preorder())


@pytest.mark.parametrize("eyes", [frozenset({BROWN, BLUE}), None, float("nan")])
def test_classification_with_uncertain_eyes(eyes):
    found = TreeModel.of(averaging(TABLE), ATTRIBUTES).predict_rows([(eyes, DARK, TALL)])
    assert found.masses is not None
    assert dict(found.masses[0].focal) == near({C2: 0.05, C1 | C2: 0.02, C2 | C3: 0.25, WHOLE: 0.68})
    assert found.theta[0] == near((0.236667, 0.411667, 0.351667), 5e-7)
    assert found.klass.tolist() == [1]
    assert found.belief[0] == near((0, 0.05, 0))
    assert found.plausibility[0] == near((0.70, 1.0, 0.93))


def test_classification_with_certain_values_is_the_leaf():
    found = TreeModel.of(averaging(TABLE), ATTRIBUTES).predict([(BLUE, DARK, SHORT)])
    assert found.masses is not None
    assert found.masses[0] == MASSES[4]


def test_a_row_of_uncertain_hair_goes_down_both_branches():
    """Extended by hand: row 5 is dark or blond. Of the four others three are dark, so it is dark by three quarters."""
    rows = [*VALUES[:4], [BLUE, frozenset({DARK, BLOND}), SHORT]]
    table = Table.of_masses(UncertainValues.of_rows(rows, ATTRIBUTES), ATTRIBUTES, MASSES)
    root = averaging(table)
    # Dark: (m1 + m2 + m4 + .75 m5) / 3.75; blond: (m3 + .25 m5) / 1.25
    betp = {c: np.array(p) for c, p in enumerate([
        [0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [13 / 15, 1 / 15, 1 / 15], [4 / 30, 1 / 3, 16 / 30], [0.1, 0.8, 0.1],
    ])}  # fmt: skip
    dark = (betp[0] + betp[1] + betp[3] + 0.75 * betp[4]) / 3.75
    blond = (betp[2] + 0.25 * betp[4]) / 1.25
    info = [float(-(p * np.log2(p)).sum()) for p in (sum(betp.values()) / 5, dark, blond)]
    assert dark == near([0.268889, 0.515556, 0.215556], 1e-6)
    assert blond == near([0.713333, 0.213333, 0.073333], 1e-6)
    assert info == near([1.496907, 1.479502, 1.099547], 1e-6)
    gains = {EYES: 0.022883, HAIR: 0.112394, HEIGHT: 0.032602}
    assert info[0] - 0.75 * info[1] - 0.25 * info[2] == near(gains[HAIR], 1e-6)
    assert root.attribute == HAIR
    assert {k: low for k, (low, _) in root.intervals.items()} == near(gains, 1e-6)
    assert root.children[DARK].size == near(3.75)
    assert root.children[BLOND].size == near(1.25)
    # The blond weigh less than two rows, and are a leaf: m3, and m5 discounted at a quarter, {2} .175, conflict .14
    leaf = root.children[BLOND]
    assert leaf.is_leaf
    assert dict(leaf.mass.focal) == near({C1: 0.66 / 0.86, C2: 0.035 / 0.86, WHOLE: 0.165 / 0.86})
