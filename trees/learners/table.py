"""The training table of the learners: raw values, and labels that may be uncertain."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quercus.belief.arrays import Floats
from quercus.belief.contour import check_contours, is_precise, largest_one
from quercus.belief.errors import InvalidInput, shown
from quercus.belief.frame import check_size
from quercus.belief.label import ClassSet, Label, Masses
from quercus.belief.label import contour as contour_of
from quercus.belief.mass import MassFunction, consonant_mass
from quercus.belief.measures import pignistic
from quercus.specification.attributes import Attribute, Nominal
from quercus.specification.parameters import MAX_ATTRIBUTES
from quercus.trees.learners.cells import ColumnParts, UncertainValues, columns_of
from quercus.trees.tree.encoding import Parts, check_parts

MAX_WEIGHT = 1e100  # greatest weight of a row, so that products of sums of weights do not overflow


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of attribute values with labels; created by `of_classes`, `of_contours`, `of_masses` or `of_labels`.

    Parameters
    ----------
    values
        (n, K) numbers of numeric attributes, indices of the values of nominal ones; NaN means missing.
    attributes
        Declarations of the columns. The bins of a `Numeric` are ignored.
    contours
        (n, l) plausibility of each class.
    weights
        (n,) weights of the rows, in [0, 1e100], not all 0.
    given
        The labels as mass functions; None if they were given as contours.
    parts
        Ranges of uncertain values, by row and attribute; `values` has NaN there.

    Raises
    ------
    InvalidInput
        If there is no row, a value is impossible, or the arguments do not match.
    """

    values: Floats
    attributes: tuple[Attribute, ...]
    contours: Floats
    weights: Floats
    given: tuple[MassFunction, ...] | None = field(default=None, repr=False)
    parts: Parts = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", tuple(self.attributes))
        object.__setattr__(self, "values", _check_values(self.values, self.attributes, self.parts))
        check_parts(self.parts, self.attributes, lambda each: len(each.values))
        rows = len(self.values)
        if len(self.contours) != rows:
            raise InvalidInput("labels", f"are {len(self.contours)}, must be {rows}, one per row")
        object.__setattr__(self, "weights", _check_weights(self.weights, rows))

    @classmethod
    def of_classes(
        cls,
        values: ArrayLike | UncertainValues,
        attributes: Sequence[Attribute],
        classes: ArrayLike,
        size: int,
        weights: ArrayLike | None = None,
    ) -> Self:
        """Make a table with labels that each name one class.

        Parameters
        ----------
        values, attributes, weights
            See `Table`; the default weights are 1. `UncertainValues` may have sets of values and ranges.
        classes
            (n,) whole numbers in [0, `size`).
        size
            Number of classes.

        Examples
        --------
        >>> colour = Nominal("colour", ("red", "blue"))
        >>> Table.of_classes([[0], [1]], [colour], [1, 0], 2).contours.tolist()
        [[0.0, 1.0], [1.0, 0.0]]
        """
        check_size(size, "size")
        numbers = np.asarray(classes)
        if numbers.ndim != 1 or not (np.issubdtype(numbers.dtype, np.integer) or not numbers.size):
            raise InvalidInput("classes", f"must be whole numbers, one per row, have {numbers.dtype}")
        wrong = (numbers < 0) | (numbers >= size)
        if wrong.any():
            row = int(wrong.argmax())
            raise InvalidInput(f"classes[{row}]", f"is {numbers[row]}, must lie in [0, {size})")
        return cls._from_columns(values, attributes, np.eye(size)[numbers.astype(np.int64)], weights)

    @classmethod
    def of_contours(
        cls,
        values: ArrayLike | UncertainValues,
        attributes: Sequence[Attribute],
        contours: ArrayLike,
        weights: ArrayLike | None = None,
    ) -> Self:
        """Make a table whose labels are contours (n, l), see `quercus.belief.contour`."""
        array = _fresh_numbers(contours, "contours")
        size = check_size(array.shape[1] if array.ndim == 2 else 0, "contours")
        return cls._from_columns(values, attributes, check_contours(array, size), weights)

    @classmethod
    def of_masses(
        cls,
        values: ArrayLike | UncertainValues,
        attributes: Sequence[Attribute],
        masses: Sequence[MassFunction],
        weights: ArrayLike | None = None,
    ) -> Self:
        """Make a table whose labels are mass functions on one frame, none with mass on the empty set."""
        given = tuple(masses)
        sizes = {mass.size for mass in given}
        if len(sizes) != 1:
            raise InvalidInput("masses", f"have frames of {sorted(sizes)} classes, must have one frame")
        for row, mass in enumerate(given):
            if mass.conflict > 0:
                raise InvalidInput(f"masses[{row}]", f"gives the empty set {mass.conflict!r}, must give it 0")
        contours = np.array([mass.contour() for mass in given])
        return cls._from_columns(values, attributes, contours, weights, given)

    @classmethod
    def of_labels(
        cls,
        values: ArrayLike | UncertainValues,
        attributes: Sequence[Attribute],
        labels: Sequence[Label],
        size: int,
        weights: ArrayLike | None = None,
    ) -> Self:
        """Make a table of labels of any kind on a frame of `size` classes.

        If any label is a mass function, all become mass functions (contours by `consonant_mass`); otherwise all become
        contours.

        Examples
        --------
        >>> labels = [ClassSet(0b11), Masses(MassFunction.of(2, {0b01: 0.5, 0b11: 0.5}))]
        >>> [mass.focal for mass in Table.of_labels([[0], [1]], [Nominal("a", "xy")], labels, 2).masses]
        [((3, 1.0),), ((1, 0.5), (3, 0.5))]
        """
        if not any(isinstance(label, Masses) for label in labels):
            return cls.of_contours(values, attributes, [contour_of(label, size) for label in labels], weights)
        masses = [
            label.mass
            if isinstance(label, Masses)
            else MassFunction.of(size, {label.mask: 1.0})
            if isinstance(label, ClassSet)
            else consonant_mass(contour_of(label, size))
            for label in labels
        ]
        return cls.of_masses(values, attributes, masses, weights)

    @classmethod
    def _from_columns(
        cls,
        values: ArrayLike | UncertainValues,
        attributes: Sequence[Attribute],
        contours: Floats,
        weights: ArrayLike | None,
        given: tuple[MassFunction, ...] | None = None,
    ) -> Self:
        counted = np.ones(len(contours)) if weights is None else _fresh_numbers(weights, "weights")
        parts: Parts = {}
        if isinstance(values, UncertainValues):
            parts = values.parts
            values = values.values
        return cls(_fresh_numbers(values, "values"), tuple(attributes), contours, counted, given, parts)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def size(self) -> int:
        """Number of classes, ``l``."""
        return int(self.contours.shape[1])

    @cached_property
    def masses(self) -> tuple[MassFunction, ...]:
        """The labels as mass functions: the given ones, or `consonant_mass` of each contour."""
        if self.given is not None:
            return self.given
        mass_of: dict[bytes, MassFunction] = {}
        for contour in self.contours:
            if contour.tobytes() not in mass_of:
                mass_of[contour.tobytes()] = consonant_mass(contour)
        return tuple(mass_of[contour.tobytes()] for contour in self.contours)

    @cached_property
    def pignistic(self) -> Floats:
        """``BetP`` of each row's mass function, (n, l)."""
        pignistic_of = {mass: pignistic(mass) for mass in set(self.masses)}
        return np.array([pignistic_of[mass] for mass in self.masses])

    @cached_property
    def plausibilities(self) -> Floats:
        """Plausibility of each class under each row's mass function, (n, l).

        `contours` have no absolute height (theory §1.3), and those of given mass functions may differ by a factor.
        """
        if self.given is None:
            return largest_one(self.contours)
        known = {mass: mass.contour() for mass in set(self.given)}
        return np.array([known[mass] for mass in self.given])

    @cached_property
    def precise(self) -> NDArray[np.bool_]:
        """(n,) whether each label names one class."""
        return is_precise(self.contours)

    def take(self, rows: ArrayLike) -> "Table":
        """Return the table of these rows, in this order; a row may come more than once.

        Parameters
        ----------
        rows
            (m,) numbers of rows, or (n,) bool.
        """
        chosen = np.arange(len(self))[np.asarray(rows)]
        given = None if self.given is None else tuple(self.given[row] for row in chosen)
        cells = self.cells.take(chosen)
        contours, weights = self.contours[chosen], self.weights[chosen]
        return Table(cells.values, self.attributes, contours, weights, given, cells.parts)

    @property
    def cells(self) -> UncertainValues:
        """The values of the rows, some of which may be uncertain."""
        return UncertainValues(self.values, self.parts)

    @cached_property
    def uncertain(self) -> dict[int, ColumnParts]:
        """The uncertain cells by attribute, see `quercus.trees.learners.sharing`; attributes without any are absent."""
        return columns_of(self.parts)


def _fresh_numbers(values: ArrayLike, field: str) -> Floats:
    """Return a new array of numbers; raise `InvalidInput` if `values` are not numbers."""
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(field, f"are {shown(values)}, must be numbers, as many in every row") from None


def _check_values(
    values: Floats,
    attributes: tuple[Attribute, ...],
    parts: Parts,
) -> Floats:
    if not 1 <= len(attributes) <= MAX_ATTRIBUTES:
        raise InvalidInput("attributes", f"are {len(attributes)}, must be 1 to {MAX_ATTRIBUTES}")
    array = _fresh_numbers(values, "values")
    if array.ndim != 2 or array.shape[1] != len(attributes) or not len(array):
        raise InvalidInput("values", f"have shape {array.shape}, must be (rows, {len(attributes)}), rows > 0")
    for k, attribute in enumerate(attributes):
        column = array[:, k]
        missing = np.isnan(column)
        if attribute.missing == "reject":
            lost = missing.copy()
            lost[[row for row, other in parts if other == k]] = False
            _refuse_cells(lost, column, attribute.name, "must not be missing")
        if isinstance(attribute, Nominal):
            count = len(attribute.values)
            fine = missing | ((column >= 0) & (column < count) & (column == np.floor(column)))
            _refuse_cells(~fine, column, attribute.name, f"must be a whole number in [0, {count})")
        else:
            _refuse_cells(np.isinf(column), column, attribute.name, "must be finite")
    return array


def _refuse_cells(wrong: NDArray[np.bool_], column: Floats, name: str, rule: str) -> None:
    if wrong.any():
        row = int(wrong.argmax())
        raise InvalidInput(f"values[{row}].{name}", f"is {column[row]}, {rule}")


def _check_weights(weights: ArrayLike, rows: int) -> Floats:
    array = _fresh_numbers(weights, "weights")
    if array.shape != (rows,):
        raise InvalidInput("weights", f"have shape {array.shape}, must be ({rows},), one per row")
    fine = (array >= 0) & (array <= MAX_WEIGHT)
    if not fine.all():
        row = int(np.argmin(fine))
        raise InvalidInput(f"weights[{row}]", f"is {array[row]}, must lie in [0, {MAX_WEIGHT:g}]")
    if not array.any():
        raise InvalidInput("weights", "are all 0, at least one row must count")
    return array
