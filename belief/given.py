"""Labels in the forms in which people and files give them.

A label is: None or NaN (nothing is known), a class, a set or list of classes (one of these), a mapping of classes to
plausibilities (a class left out is impossible), a mapping of sets of classes to masses, an array of plausibilities in
the order of the frame, a mass function, or one of the labels of `quercus.belief.label`.
"""

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from quercus.belief.contour import check_contour
from quercus.belief.errors import InvalidInput, shown
from quercus.belief.frame import MIN_CLASSES, full_mask
from quercus.belief.label import ClassSet, Label, Masses, Plausibilities, check_label
from quercus.belief.mass import MassFunction
from quercus.belief.missing import is_missing


class LabelReader:
    """Reads labels over one frame.

    Parameters
    ----------
    classes
        The frame, in order: texts, numbers or other hashable values.

    Raises
    ------
    InvalidInput
        If there are fewer than two classes, or one occurs twice.

    Examples
    --------
    >>> reader = LabelReader(("o", "s", "x"))
    >>> reader.read_label("s"), reader.read_label({"o", "x"}), reader.read_label(None)
    (ClassSet(mask=2), ClassSet(mask=5), ClassSet(mask=7))
    >>> reader.read_label({"o": 1, "s": 0.5})
    Plausibilities(values=(1.0, 0.5, 0.0))
    >>> reader.read_label({("o",): 0.25, ("o", "x"): 0.75}).mass.focal
    ((1, 0.25), (5, 0.75))
    """

    def __init__(self, classes: Sequence[Hashable]) -> None:
        self.classes = tuple(classes)
        self._bits = {name: 1 << index for index, name in enumerate(self.classes)}
        if not MIN_CLASSES <= len(self._bits) == len(self.classes):
            raise InvalidInput("classes", f"are {shown(self.classes)}, must be two or more, none twice")

    def read_label(self, given: Any, field: str = "label") -> Label:
        """Return the label that `given` stands for.

        Parameters
        ----------
        given
            In one of the forms above.
        field
            Name of the input in errors.

        Raises
        ------
        InvalidInput
            When it has none of these forms, names a class outside the frame, or breaks the rules of its form.
        """
        size = len(self.classes)
        if is_missing(given):
            return ClassSet(full_mask(size))
        if isinstance(given, ClassSet | Plausibilities | Masses | MassFunction):
            try:
                return check_label(Masses(given) if isinstance(given, MassFunction) else given, size)
            except InvalidInput as error:
                raise InvalidInput(field, error.reason) from None
        if isinstance(given, np.ndarray) and given.ndim:
            return Plausibilities(tuple(check_contour(given, size, field).tolist()))
        if isinstance(given, Mapping):
            return self._read_mapping(given, field)
        several = isinstance(given, Collection) and not isinstance(given, str | bytes)
        return ClassSet(self.class_mask(given if several else [given], field))

    def class_mask(self, names: Collection[Hashable], field: str = "label") -> int:
        """Return the bit mask of a set of classes that is not empty.

        Raises
        ------
        InvalidInput
            When it is empty, or the frame lacks one of them.
        """
        mask = 0
        for name in names:
            bit = self._bits.get(name) if isinstance(name, Hashable) else None
            if bit is None:
                known = ", ".join(str(each) for each in self.classes[:12])
                more = f", ... ({len(self.classes)} in all)" if len(self.classes) > 12 else ""
                raise InvalidInput(field, f"{shown(name)} is not a class; the classes are {known}{more}")
            mask |= bit
        if not mask:
            raise InvalidInput(field, "is the empty set of classes, must name at least one; None: not known")
        return mask

    def _read_mapping(self, given: Mapping[Any, Any], field: str) -> Label:
        if given and all(isinstance(key, frozenset | tuple) for key in given):
            sets = [self.class_mask(key, field) for key in given]
            try:
                return Masses(MassFunction(len(self.classes), tuple(zip(sets, given.values(), strict=True))))
            except InvalidInput as error:
                raise InvalidInput(f"{field}.{error.field}", error.reason) from None
        self.class_mask(list(given), field)
        values = [given.get(name, 0.0) for name in self.classes]
        return Plausibilities(tuple(check_contour(values, len(self.classes), field).tolist()))
