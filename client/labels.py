"""Labels in the forms that people use, and their compact encoding for the wire.

A label is: ``None``, NaN or pandas' NA (nothing is known), a class (by any spelling of its value, as ``True`` or
``"TRUE"`` for ``true``: `quercus.specification.values`), a set of classes or a list of their texts (one of these), a
dict ``class -> plausibility`` (a class left out is impossible), a dict ``frozenset of classes -> mass``, a
one-dimensional array of plausibilities in the order of the frame, or an object with ``focal = ((mask, mass), ...)``
such as ``quercus.belief.mass.MassFunction``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Protocol, TypeGuard, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from quercus.belief.errors import InvalidInput, shown
from quercus.belief.missing import is_missing
from quercus.client.errors import invalid
from quercus.client.values import Floats
from quercus.specification.values import Spellings, canonical_cell
from quercus.v1 import values_pb2


@runtime_checkable
class MassLike(Protocol):
    """The interface of a mass function object."""

    @property
    def focal(self) -> Sequence[tuple[int, float]]:
        """The focal sets as bit masks (bit c = class c), each with its mass."""
        ...


Name = str | float
"""The name of a class: text, a Boolean or a number."""
LabelLike = (
    str
    | float
    | Collection[Name]
    | Mapping[str, float]
    | Mapping[frozenset[str], float]
    | NDArray[Any]
    | MassLike
    | None
)


class LabelEncoder:
    """Encoder of labels over one frame as messages.

    Parameters
    ----------
    classes
        The frame, in order.
    """

    def __init__(self, classes: Sequence[str]) -> None:
        self.classes = tuple(classes)
        self._bit = {name: 1 << index for index, name in enumerate(self.classes)}
        self._spellings = Spellings(self.classes)
        self._full = (1 << len(self.classes)) - 1

    def encode_label(self, label: LabelLike, field: str = "label") -> values_pb2.Label:
        """Return the message of one label.

        Raises
        ------
        InvalidArgument
            If a class is unknown, a set is empty, or the form is none of those above; the error names ``field``.
        """
        if is_missing(label):
            return values_pb2.Label(vacuous=values_pb2.Vacuous())
        if _is_name(label):
            return values_pb2.Label(class_name=self._class_of(label, field))
        kind, content = self._parse_label(label, field)
        if kind == "set":
            names = [name for name in self.classes if content & self._bit[name]]
            return values_pb2.Label(class_set=values_pb2.ClassSet(classes=names))
        if kind == "contour":
            return values_pb2.Label(contour=values_pb2.Contour(plausibilities=content))
        sets, masses = zip(*content, strict=True) if content else ((), ())
        return values_pb2.Label(mass=values_pb2.MassFunction(focal_sets=sets, masses=masses))

    def encode_labels(self, labels: Sequence[LabelLike] | Floats, start: int = 0) -> values_pb2.Labels:
        """Return the most compact message of many labels.

        ``start`` is the number of the first row, for error messages.
        """
        if isinstance(labels, np.ndarray) and labels.ndim == 2:
            return self._encode_contours(labels, start)
        parsed = [self._parse_label(label, f"labels[{start + i}]") for i, label in enumerate(labels)]
        for i, (kind, content) in enumerate(parsed):
            if kind == "mass":
                from quercus.belief.mass import MassFunction  # noqa: PLC0415  (few labels are mass functions)

                try:
                    MassFunction(len(self.classes), tuple(content))
                except InvalidInput as error:
                    raise invalid(f"labels[{start + i}]", f"{error.field} {error.reason}") from None
        kinds = {kind for kind, _ in parsed}
        if all(kind == "set" and content == self._full for kind, content in parsed):
            return values_pb2.Labels(all_vacuous=values_pb2.Vacuous())
        if kinds == {"set"}:
            return values_pb2.Labels(sets=values_pb2.SetLabels(masks=[content for _, content in parsed]))
        if not kinds <= {"set", "contour"}:
            each = [self.encode_label(label, f"labels[{start + i}]") for i, label in enumerate(labels)]
            return values_pb2.Labels(list=values_pb2.LabelList(labels=each))
        rows = [
            [float(bool(content & bit)) for bit in self._bit.values()] if kind == "set" else content
            for kind, content in parsed
        ]
        return self._encode_contours(np.array(rows, dtype=np.float64), start)

    def class_mask(self, names: Collection[Any], field: str) -> int:
        """Return the bit mask of a set of names."""
        mask = 0
        for name in names:
            bit = self._bit.get(name) if type(name) is str else None
            mask |= self._bit[self._class_of(name, field)] if bit is None else bit
        if not mask:
            raise invalid(field, "the set of classes is empty; use None for a vacuous label")
        return mask

    def _class_of(self, given: Any, field: str) -> str:
        """Return the class, spelled as in the model."""
        try:
            text = canonical_cell(given)
        except ValueError as error:
            raise invalid(field, str(error)) from None
        name = None if text is None else self._spellings.of(given if isinstance(given, str) else text)
        if name is None:
            raise invalid(field, f"{shown(given)} is not a class; the classes are {', '.join(self.classes)}")
        return name

    def _parse_label(self, label: LabelLike, field: str) -> tuple[str, Any]:
        """(kind, content): set -> mask, contour -> list of float, mass -> list of (mask, mass)."""
        if is_missing(label):
            return "set", self._full
        if _is_name(label):
            return "set", self.class_mask([label], field)
        if isinstance(label, MassLike):
            return "mass", [(int(mask), float(mass)) for mask, mass in label.focal]
        if isinstance(label, np.ndarray):
            if label.shape != (len(self.classes),) or label.dtype.kind not in "fiub":
                raise invalid(
                    field, f"expected {len(self.classes)} plausibilities, got an array of shape {label.shape}"
                )
            return "contour", [float(value) for value in label]
        if isinstance(label, Mapping):
            return self._parse_mapping(label, field)
        # Numbers in a list may be plausibilities, so only a set may name its classes by numbers.
        is_class = _is_name if isinstance(label, AbstractSet) else lambda each: isinstance(each, str)
        if isinstance(label, Collection) and all(map(is_class, label)):
            return "set", self.class_mask(label, field)
        raise invalid(
            field, f"{shown(label)} is not a label: give a class name, a set of names, a dict or None"
        )

    def _parse_mapping(self, label: Mapping[Any, float], field: str) -> tuple[str, Any]:
        if not label:
            raise invalid(field, "the dict is empty; use None for a vacuous label")
        try:
            values = {key: float(value) for key, value in label.items()}
        except (TypeError, ValueError):
            raise invalid(field, f"the values of {shown(label)} must be numbers") from None
        except OverflowError:
            raise invalid(
                field, "has a number that is too large; plausibilities and masses lie in [0, 1]"
            ) from None
        if all(map(_is_name, values)):
            named = {self._class_of(key, field): value for key, value in values.items()}
            if len(named) < len(values):
                raise invalid(field, f"{shown(label)} names a class twice")
            return "contour", [named.get(name, 0.0) for name in self.classes]
        if all(isinstance(key, frozenset | tuple) for key in values):
            return "mass", [(self.class_mask(key, field), value) for key, value in values.items()]
        raise invalid(
            field, "the keys must be all class names (plausibilities) or all frozensets of names (masses)"
        )

    def _encode_contours(self, values: NDArray[Any], start: int) -> values_pb2.Labels:
        if values.shape[1] != len(self.classes):
            reason = f"expected {len(self.classes)} plausibilities per row, got {values.shape[1]}"
            raise invalid(f"labels[{start}]", reason)
        numbers = np.ascontiguousarray(values, dtype=np.float64)
        good = ((numbers >= 0.0) & (numbers <= 1.0)).all(axis=1) & numbers.any(axis=1)
        if not good.all():
            row = int(np.argmin(good))
            field, given = f"labels[{start + row}]", numbers[row]
            for name, value in zip(self.classes, given.tolist(), strict=True):
                if not 0.0 <= value <= 1.0:
                    raise invalid(field, f"is {value} for class {shown(name)}, must lie in [0, 1]")
            raise invalid(field, "is zero for every class, at least one class must be plausible")
        flat = numbers.ravel()
        return values_pb2.Labels(contours=values_pb2.PackedContours(plausibilities=flat))


def _is_name(label: object) -> TypeGuard[Name]:
    return isinstance(label, str | bool | int | float | np.bool_ | np.number)
