"""The labels in y: classes, contours, sets of classes, mass functions, or any mixture of them."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from quercus.belief.arrays import Ints
from quercus.belief.contour import check_contours
from quercus.belief.errors import InvalidInput, shown
from quercus.belief.given import LabelReader
from quercus.belief.label import ClassSet, Label, Masses, Plausibilities, contour
from quercus.belief.mass import MassFunction
from quercus.belief.missing import is_missing
from quercus.estimators.columns import is_frame, named_columns
from quercus.specification.values import Spellings, canonical_cell, is_truth

TEXT_OF_MISSING = frozenset({"nan", "<NA>"})
UNCERTAIN = (MassFunction, Masses, Plausibilities, ClassSet, Mapping, AbstractSet, np.ndarray)


@dataclass(frozen=True)
class ParsedLabels:
    """Labels over a frame.

    Parameters
    ----------
    classes
        (l,) the frame, as the user names it.
    labels
        One per row; None if `contours` has them.
    contours
        (n, l) plausibilities; None if `labels` has them.
    """

    classes: NDArray[Any]
    labels: tuple[Label, ...] | None
    contours: NDArray[np.float64] | None

    def plausibility_matrix(self) -> NDArray[np.float64]:
        """Return the plausibilities (n, l) for labels of any kind."""
        if self.labels is None:
            return np.asarray(self.contours)
        return np.array([contour(label, len(self.classes)) for label in self.labels])


def are_classes(y: Any, missing: object = np.nan) -> bool:
    """Return whether every label of `y` is a single class, as scikit-learn's metrics require; see `read_labels`."""
    if is_frame(y) or (isinstance(y, np.ndarray) and y.ndim > 1):
        if y.shape[1] != 1:
            return False
        y = next(iter(named_columns(y)))[1]
    uncertain = (*UNCERTAIN, list, tuple)
    return not any(
        isinstance(each, uncertain) or is_missing(each) or _is_missing_label(each, missing) for each in y
    )


def read_labels(y: Any, classes: Sequence[Hashable] | None = None, missing: object = np.nan) -> ParsedLabels:
    """Return the labels in `y`.

    Parameters
    ----------
    y
        Classes (n,), missing ones for vacuous labels; plausibilities (n, l), array or DataFrame; or a sequence with
        anything that `quercus.belief.given` accepts: sets of classes, mappings, mass functions.
    classes
        The frame, in order. None: the columns of a DataFrame; else the named classes, sorted; 0 to l - 1 for arrays and
        mass functions.
    missing
        Value of a missing label in `y`, besides None and NaN.

    Raises
    ------
    ValueError
        If `y` is not as described, or names fewer than two classes and `classes` is None.
    """
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    if is_frame(y):
        names, columns = zip(*named_columns(y), strict=True)
        if len(names) > 1:
            table = np.column_stack([np.asarray(column, dtype=np.float64) for column in columns])
            return _of_contours(table, names if classes is None else classes)
        y = np.asarray(columns[0])
    array = y if isinstance(y, np.ndarray) else None
    if array is None and isinstance(y, list | tuple) and any(isinstance(each, UNCERTAIN) for each in y):
        return _of_many(list(y), classes, missing)
    array = np.asarray(y) if array is None else array
    if array.dtype.kind == "U" and isinstance(y, list | tuple) and any(map(is_missing, y)):
        y = array = np.array(y, dtype=object)  # among strings, NumPy turns NaN into a string
    if array.ndim == 2 and array.shape[1] > 1 and array.dtype.kind in "fiub":
        return _of_contours(array, classes)
    flat = column_or_1d(y, warn=True)
    if flat.dtype == object and any(isinstance(each, UNCERTAIN) for each in flat):
        return _of_many(flat.tolist(), classes, missing)
    return _of_classes(flat, classes, missing)


def _of_contours(values: NDArray[Any], classes: Sequence[Hashable] | None) -> ParsedLabels:
    names = np.arange(values.shape[1]) if classes is None else as_classes(classes)
    return ParsedLabels(names, None, check_contours(values, len(names), "y"))


def _of_classes(flat: NDArray[Any], classes: Sequence[Hashable] | None, missing: object) -> ParsedLabels:
    cells, row_of, cell_of = _distinct_cells(flat)
    lost = np.array(
        [is_missing(each) or _is_missing_label(each, missing) for each in cells.tolist()], dtype=bool
    )
    if cells.dtype == object and not lost.all():
        cells = np.array(
            [None if gone else each for each, gone in zip(cells, lost, strict=True)], dtype=object
        )
    known = cells[~lost]
    if known.dtype.kind == "f" and np.isinf(known).any():
        raise InvalidInput(f"y[{row_of[np.isinf(cells).argmax()]}]", "is infinite, must be a class")
    if known.size and (classes is None or known.dtype.kind not in "biuU"):  # otherwise the frame decides
        rows = known if known.dtype == object else flat[~lost[cell_of]]
        check_classification_targets(rows if rows.dtype != object else np.array(rows.tolist()))
    if classes is None:
        _refuse_text_of_missing(cells, lost, row_of)
    names = _check_classes(np.unique(known) if classes is None else as_classes(classes))
    index = {name: c for c, name in enumerate(names.tolist())}
    contours = np.ones((len(cells), len(names)))
    spelled = ClassSpellings(names.tolist())
    for cell in np.flatnonzero(~lost):
        name = cells[cell].item() if isinstance(cells[cell], np.generic) else cells[cell]
        name = name if name in index else spelled.of(name)
        if name not in index:
            raise InvalidInput(
                f"y[{row_of[cell]}]", f"is {shown(name)}, must be one of the classes {names.tolist()}"
            )
        contours[cell] = 0.0
        contours[cell, index[name]] = 1.0
    return ParsedLabels(names, None, contours[cell_of])


def _distinct_cells(flat: NDArray[Any]) -> tuple[NDArray[Any], Ints, Ints]:
    """Return the distinct cells in order of occurrence, the first row of each, and the cell of each row.

    Objects of different types may be equal, so in arrays of objects each row is a cell of its own.
    """
    if flat.dtype == object:
        rows = np.arange(len(flat))
        return flat, rows, rows
    _, first, which = np.unique(flat, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return flat[first[order]], first[order], place[which]


def _refuse_text_of_missing(labels: Iterable[Any], lost: Iterable[bool], rows: Iterable[int]) -> None:
    """Refuse "nan", which a missing label becomes in an array of strings; `rows` are the labels' rows.

    Raises
    ------
    InvalidInput
        Naming the first row with such a label.
    """
    for row, label, is_lost in zip(rows, labels, lost, strict=True):
        if not is_lost and isinstance(label, str) and label in TEXT_OF_MISSING:
            raise InvalidInput(
                f"y[{row}]",
                f"is the text {str(label)!r}, which a missing label becomes in an array of strings. If so, give "
                f"missing_label={str(label)!r}, or an array with dtype=object; if it is a class, list it in classes",
            )


def _of_many(given: list[Any], classes: Sequence[Hashable] | None, missing: object) -> ParsedLabels:
    given = [
        None if not isinstance(each, UNCERTAIN) and _is_missing_label(each, missing) else each
        for each in given
    ]
    if classes is None:
        _refuse_text_of_missing(given, [False] * len(given), range(len(given)))
    names = _check_classes(_named_classes(given) if classes is None else as_classes(classes))
    reader, spelled = LabelReader(names.tolist()), ClassSpellings(names.tolist())
    return ParsedLabels(
        names,
        tuple(reader.read_label(spelled.label(each), f"y[{row}]") for row, each in enumerate(given)),
        None,
    )


class ClassSpellings:
    """Finds the classes of a frame by any spelling of their values.

    Parameters
    ----------
    classes
        The frame.

    Examples
    --------
    >>> ClassSpellings(["false", "true"]).label({True: 1.0, "FALSE": 0.5})
    {'true': 1.0, 'false': 0.5}
    """

    def __init__(self, classes: Sequence[Hashable]) -> None:
        self._by_text = {text: each for each in classes if (text := _text_of(each)) is not None}
        self._spellings = Spellings(self._by_text)
        self._classes = frozenset(classes)

    def of(self, given: Hashable) -> Hashable:
        """Return the class of a spelling; anything else unchanged."""
        text = None if given in self._classes else _text_of(given)
        name = None if text is None else self._spellings.of(text)
        return given if name is None else self._by_text[name]

    def label(self, given: Any) -> Any:
        """Return a label with its classes spelled as in the frame."""
        if isinstance(given, Mapping):
            return {self.label(key): value for key, value in given.items()}
        if isinstance(given, frozenset | set | tuple | list):
            return type(given)(self.of(each) for each in given)
        return self.of(given) if isinstance(given, str | bool | int | float | np.generic) else given


def _text_of(name: Any) -> str | None:
    try:
        return canonical_cell(name)
    except ValueError:
        return None


def _named_classes(given: list[Any]) -> NDArray[Any]:
    """Return the classes that labels name, sorted; 0 to l - 1 if the labels only number them."""
    named: set[Hashable] = set()
    sizes: set[int] = set()
    for each in given:
        match each:
            case MassFunction(size=size) | Masses(mass=MassFunction(size=size)):
                sizes.add(size)
            case Plausibilities(values=values):
                sizes.add(len(values))
            case np.ndarray():
                sizes.add(len(each))
            case ClassSet():
                pass
            case Mapping() if all(isinstance(key, frozenset | tuple) for key in each):
                named.update(name for key in each for name in key)
            case Mapping() | AbstractSet():
                named.update(each)
            case _ if not is_missing(each):
                named.add(each)
    if named and sizes:
        raise InvalidInput("classes", "must be given if some labels name classes and others number them")
    if len(sizes) > 1:
        raise InvalidInput("y", f"has labels over frames of {sorted(sizes)} classes, must have one frame")
    return np.arange(sizes.pop()) if sizes else as_classes(sorted(named))  # type: ignore[type-var]


def as_classes(classes: Sequence[Hashable]) -> NDArray[Any]:
    """Return the frame as an array, of objects if NumPy would turn numbers into text.

    Raises
    ------
    InvalidInput
        If a class occurs twice.
    """
    names = list(classes)
    array = np.array(names)
    if array.ndim != 1 or array.tolist() != names:
        array = np.empty(len(names), dtype=object)
        array[:] = names
    if len(set(names)) != len(names):
        raise InvalidInput("classes", f"are {names}, must be distinct")
    return array


def _check_classes(names: NDArray[Any]) -> NDArray[Any]:
    """Refuse fewer than two classes, and two spellings of the same value."""
    texts = [(text, name) for name in names.tolist() if (text := _text_of(name)) is not None]
    truth = is_truth(text for text, _ in texts)
    first: dict[str, Hashable] = {}
    for text, name in texts:
        value = text.lower() if truth else text
        if value in first:
            both = f"{shown(first[value])} and {shown(name)}"
            raise InvalidInput("classes", f"have {both}, which are the same value, {value}")
        first[value] = name
    if len(names) < 2:
        named = f"one class, {names.tolist()[0]!r}" if len(names) else "no class at all"
        raise ValueError(f"y names {named}; two or more are needed: give the frame as classes=")
    return names


def _is_missing_label(each: object, missing: object) -> bool:
    each, missing = (value.item() if isinstance(value, np.generic) else value for value in (each, missing))
    return not is_missing(missing) and type(each) is type(missing) and each == missing
