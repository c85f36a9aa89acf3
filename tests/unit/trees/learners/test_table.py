from itertools import pairwise

import numpy as np
import pytest

from quercus.belief.errors import InvalidInput
from quercus.belief.label import ClassSet, Masses, Plausibilities
from quercus.belief.mass import MassFunction, consonant_mass
from quercus.specification.attributes import Nominal, Numeric
from quercus.trees.learners.table import Table

COLOUR = Nominal("colour", ("red", "blue"))
SIZE = Numeric("size")
VALUES = [[0, 1.5], [1, -2.0], [np.nan, np.nan]]


def test_classes_become_precise_contours_masses_and_probabilities():
    table = Table.of_classes(VALUES, [COLOUR, SIZE], [2, 0, 2], 3)
    assert (len(table), table.size) == (3, 3)
    assert table.contours.tolist() == [[0, 0, 1], [1, 0, 0], [0, 0, 1]]
    assert [mass.focal for mass in table.masses] == [((4, 1.0),), ((1, 1.0),), ((4, 1.0),)]
    assert table.pignistic.tolist() == table.contours.tolist()
    assert table.precise.all()
    assert table.weights.tolist() == [1, 1, 1]


def test_labels_of_all_kinds_become_masses_where_one_is_a_mass_function_else_contours():
    mass = MassFunction.of(2, {1: 0.5, 3: 0.5})
    labels = [ClassSet(2), Plausibilities((0.5, 1.0)), Masses(mass)]
    table = Table.of_labels(VALUES, [COLOUR, SIZE], labels, 2)
    assert [m.focal for m in table.masses] == [((2, 1.0),), ((2, 0.5), (3, 0.5)), mass.focal]
    assert table.contours.tolist() == [[0, 1], [0.5, 1], [1, 0.5]]
    plain = Table.of_labels(VALUES[:2], [COLOUR, SIZE], labels[:2], 2, [1, 3])
    assert (plain.given, plain.contours.tolist()) == (None, [[0, 1], [0.5, 1]])
    assert plain.weights.tolist() == [1, 3]


def test_masses_stay_as_given_and_give_their_contours():
    masses = [MassFunction.of(2, {1: 0.5, 3: 0.5}), MassFunction.vacuous(2), MassFunction.of(2, {2: 1.0})]
    table = Table.of_masses(VALUES, [COLOUR, SIZE], masses)
    assert table.masses == tuple(masses)
    assert table.contours.tolist() == [[1, 0.5], [1, 1], [0, 1]]
    assert table.pignistic.tolist() == [[0.75, 0.25], [0.5, 0.5], [0, 1]]
    assert table.precise.tolist() == [False, False, True]


def test_a_contour_becomes_the_consonant_mass_function_with_that_contour():
    rng = np.random.default_rng(0)
    for _ in range(50):
        contour = rng.integers(0, 5, size=4) / 4.0
        contour[rng.integers(4)] = 0.5 + rng.random() / 2
        mass = consonant_mass(contour)
        np.testing.assert_allclose(mass.contour(), contour / contour.max(), atol=1e-12)
        sets = [focal for focal, _ in sorted(mass.focal, key=lambda pair: pair[0].bit_count())]
        assert all(small & large == small for small, large in pairwise(sets))


def test_tied_plausibilities_stand_in_one_focal_set():
    assert consonant_mass(np.array([1.0, 1.0, 0.0])).focal == ((3, 1.0),)
    assert consonant_mass(np.array([0.4, 0.4, 0.4])).focal == ((7, 1.0),)


def test_take_repeats_and_leaves_out_rows_with_all_that_belongs_to_them():
    table = Table.of_masses(
        VALUES,
        [COLOUR, SIZE],
        [MassFunction.of(2, {1: 1.0}), MassFunction.of(2, {2: 1.0}), MassFunction.vacuous(2)],
        [1, 2, 3],
    )
    taken = table.take([2, 0, 2])
    assert taken.weights.tolist() == [3, 1, 3]
    assert taken.contours.tolist() == [[1, 1], [1, 0], [1, 1]]
    assert taken.masses == (table.masses[2], table.masses[0], table.masses[2])
    np.testing.assert_array_equal(taken.values, table.values[[2, 0, 2]])
    assert len(table.take(table.precise)) == 2


def test_the_table_does_not_share_the_callers_values():
    values = np.zeros((2, 1))
    table = Table.of_classes(values, [SIZE], [0, 1], 2)
    values[:] = 7
    assert not table.values.any()


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (([[2, 0.0]], [COLOUR, SIZE], [0], 2), "values[0].colour"),
        (([[0.5, 0.0]], [COLOUR, SIZE], [0], 2), "values[0].colour"),
        (([[-1, 0.0]], [COLOUR, SIZE], [0], 2), "values[0].colour"),
        (([[0, np.inf]], [COLOUR, SIZE], [0], 2), "values[0].size"),
        (([[np.nan]], [Numeric("size", missing="reject")], [0], 2), "values[0].size"),
        (([[0, 0.0]], [COLOUR], [0], 2), "values"),
        (([["red"]], [COLOUR], [0], 2), "values"),
        (([[10**400]], [SIZE], [0], 2), "values"),
        (([[0], [0, 1]], [COLOUR], [0, 0], 2), "values"),
        ((np.empty((0, 1)), [COLOUR], np.empty(0, dtype=int), 2), "values"),
        (([[0]], [], [0], 2), "attributes"),
        (([[0]], [COLOUR], [0, 1], 2), "labels"),
        (([[0]], [COLOUR], [2], 2), "classes[0]"),
        (([[0]], [COLOUR], [0.0], 2), "classes"),
        (([[0]], [COLOUR], [0], 1), "size"),
        (([[0]], [COLOUR], [0], 2, [-1]), "weights[0]"),
        (([[0]], [COLOUR], [0], 2, [np.nan]), "weights[0]"),
        (([[0]], [COLOUR], [0], 2, [0]), "weights"),
        (([[0]], [COLOUR], [0], 2, [1, 1]), "weights"),
        (([[0]], [COLOUR], [0], 2, ["many"]), "weights"),
        (([[0]], [COLOUR], [0], 2, [10**400]), "weights"),
    ],
)
def test_bad_input_is_refused_by_name(arguments, field):
    with pytest.raises(InvalidInput) as caught:
        Table.of_classes(*arguments)
    assert caught.value.field == field


def test_bad_labels_are_refused_by_name():
    with pytest.raises(InvalidInput, match=r"contours\[0\]"):
        Table.of_contours([[0]], [COLOUR], [[0, 0]])
    with pytest.raises(InvalidInput, match="contours"):
        Table.of_contours([[0]], [COLOUR], [["o", "s"]])
    with pytest.raises(InvalidInput, match="masses"):
        Table.of_masses([], [COLOUR], [])
    with pytest.raises(InvalidInput, match="masses"):
        Table.of_masses([[0], [1]], [COLOUR], [MassFunction.vacuous(2), MassFunction.vacuous(3)])
    with pytest.raises(InvalidInput, match=r"masses\[0\]"):
        Table.of_masses([[0]], [COLOUR], [MassFunction(2, ((0, 0.5), (1, 0.5)), allow_empty=True)])
