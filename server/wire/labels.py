"""Conversion of labels and contours between wire and domain."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from quercus.belief.codec import decode, encode, encode_contours, encode_sets, pack_contour, widened
from quercus.belief.contour import check_contour
from quercus.belief.errors import InvalidInput, field_prefix, shown
from quercus.belief.frame import Frame
from quercus.belief.label import (
    ClassSet,
    Label,
    Masses,
    Plausibilities,
    check_label,
    class_set,
    precise,
    vacuous,
)
from quercus.belief.mass import MassFunction
from quercus.labelling.history import stored_label
from quercus.labelling.shapes import NEVER_EXTENDED, Shapes
from quercus.server.wire.limits import FEW_NUMBERS
from quercus.server.wire.refusals import WHOLE, RowFault, RowFaults
from quercus.specification.values import NOTHING, Spellings
from quercus.specification.written_labels import write_label, write_set
from quercus.v1 import values_pb2


def decode_label(
    label: values_pb2.Label, frame: Frame, field: str = "label", shapes: Shapes = NEVER_EXTENDED
) -> Label:
    """Convert one label, and check it against the frame. Its plausibilities may have an earlier shape of the model.

    Raises
    ------
    InvalidInput
        If it is invalid; the error names the field below `field`, the value and the bound.
    """
    kind = label.WhichOneof("kind")
    found: Label
    try:
        match kind:
            case None:
                raise InvalidInput(field, "is missing: give vacuous, class_name, class_set, contour or mass")
            case "vacuous":
                found = vacuous(frame)
            case "class_name":
                found = precise(frame, class_named(label.class_name, frame))
            case "class_set":
                found = class_set(frame, [class_named(name, frame) for name in label.class_set.classes])
            case "contour":
                given = label.contour.plausibilities
                size = shapes.frame_of_size(len(given), frame.size)
                values = check_contour(given, size, f"{field}.contour.plausibilities")
                data = widened(pack_contour(values.tolist()), size, frame.size)
                found = decode(data, frame.size)
            case "mass":
                sets, masses = label.mass.focal_sets, label.mass.masses
                if len(sets) != len(masses):
                    raise InvalidInput(
                        f"{field}.mass.masses",
                        f"has {len(masses)} values, must have one for each of {len(sets)} focal sets",
                    )
                with field_prefix(f"{field}.mass"):
                    found = Masses(MassFunction(frame.size, tuple(zip(sets, masses, strict=True))))
        return check_label(found, frame.size)
    except InvalidInput as error:
        if error.field.startswith(field):
            raise
        raise InvalidInput(f"{field}.{kind}", error.reason) from error


def class_named(name: str, frame: Frame) -> str:
    """Return the class that a name stands for, in the frame's spelling; an unknown name unchanged."""
    return name if name in frame.classes else _spellings(frame.classes).of(name) or name


@lru_cache(maxsize=256)
def _spellings(classes: tuple[str, ...]) -> Spellings:
    return Spellings(classes)


def decode_labels(
    labels: values_pb2.Labels | None,
    count: int,
    frame: Frame,
    faults: RowFaults = WHOLE,
    shapes: Shapes = NEVER_EXTENDED,
) -> list[bytes]:
    """Convert the labels of `count` rows to their stored form; None stands for vacuous labels.

    Plausibilities may have an earlier shape of the model, whose classes are the first of the frame. `faults` receives
    invalid labels, whose stored form then has no meaning.

    Raises
    ------
    InvalidInput
        If there is not one label per row.
    """
    kind = None if labels is None else labels.WhichOneof("kind")
    if labels is None or kind in (None, "all_vacuous"):
        return [encode(vacuous(frame))] * count
    if kind == "sets":
        _check_count("labels.sets.masks", len(labels.sets.masks), count, "mask")
        masks = np.array(labels.sets.masks, dtype=np.uint64)
        for row in np.flatnonzero((masks == 0) | (masks > np.uint64(frame.full))).tolist():
            bounds = f"must lie in [0x1, {frame.full:#x}] for {frame.size} classes"
            faults.add(RowFault(row, f"labels[{row}]", f"is the set {int(masks[row]):#x}, {bounds}"))
            masks[row] = frame.full
        return encode_sets(masks)
    if kind == "contours":
        return _decode_packed(labels.contours, count, frame, faults, shapes)
    _check_count("labels.list.labels", len(labels.list.labels), count, "label")
    return [_label_bytes(label, frame, i, faults, shapes) for i, label in enumerate(labels.list.labels)]


def _label_bytes(label: values_pb2.Label, frame: Frame, row: int, faults: RowFaults, shapes: Shapes) -> bytes:
    try:
        return encode(decode_label(label, frame, f"labels[{row}]", shapes))
    except InvalidInput as error:
        faults.add(RowFault(row, error.field, error.reason))
        return b""


def _decode_packed(
    contours: values_pb2.PackedContours, count: int, frame: Frame, faults: RowFaults, shapes: Shapes
) -> list[bytes]:
    numbers = len(contours.plausibilities)
    given, rest = divmod(numbers, count)
    size = shapes.frame_of_size(given, frame.size)
    if not rest and size < frame.size:
        labels = _decode_packed(contours, count, Frame(frame.classes[:size]), faults, NEVER_EXTENDED)
        return [widened(label, size, frame.size) for label in labels]
    if numbers == count * size <= FEW_NUMBERS:
        few = tuple(contours.plausibilities)
        rows = [few[at : at + size] for at in range(0, numbers, size)]
        if all(map(_is_contour, rows)):
            return [pack_contour(row) for row in rows]
    flat = np.array(contours.plausibilities, dtype=np.float64)
    if len(flat) != count * frame.size:
        raise InvalidInput(
            "labels.contours.plausibilities",
            f"has {len(flat)} values, must have {count} rows x {frame.size} classes = {count * frame.size}",
        )
    table = flat.reshape(count, frame.size)
    if not (flat.min() >= 0.0 and flat.max() <= 1.0):  # written so that NaN is outside too
        for row, k in np.argwhere(~((table >= 0.0) & (table <= 1.0))).tolist():
            said = f"is {float(table[row, k])!r} for class {shown(frame.classes[k])}, must lie in [0, 1]"
            faults.add(RowFault(row, f"labels[{row}]", said))
        table[list(faults.by_row)] = 1.0
    for row in np.flatnonzero(table.max(axis=1) == 0.0).tolist():
        said = "is zero for every class, at least one class must be plausible"
        faults.add(RowFault(row, f"labels[{row}]", said))
        table[row] = 1.0
    return encode_contours(table)


def _is_contour(values: tuple[float, ...]) -> bool:
    """Return whether all values lie in [0, 1] and one is above 0."""
    # the sum tells NaN, which least and greatest may pass over
    return min(values) >= 0.0 and 0.0 < max(values) <= 1.0 and sum(values) <= len(values)


def _check_count(field: str, given: int, count: int, what: str) -> None:
    if given != count:
        raise InvalidInput(field, f"has {given} entries, must have one {what} for each of {count} rows")


def encode_label(data: bytes, frame: Frame) -> values_pb2.Label:
    """Convert a stored label to the wire."""
    match stored_label(data, frame.size):
        case ClassSet(mask) if mask == frame.full:
            return values_pb2.Label(vacuous=values_pb2.Vacuous())
        case ClassSet(mask):
            names = frame.names(mask)
            if len(names) == 1:
                return values_pb2.Label(class_name=names[0])
            return values_pb2.Label(class_set=values_pb2.ClassSet(classes=names))
        case Plausibilities(values):
            return values_pb2.Label(contour=values_pb2.Contour(plausibilities=values))
        case Masses(mass):
            return values_pb2.Label(mass=encode_mass(mass))


def encode_mass(mass: MassFunction) -> values_pb2.MassFunction:
    """Convert a mass function to the wire."""
    return values_pb2.MassFunction(
        focal_sets=[focal for focal, _ in mass.focal], masses=[value for _, value in mass.focal]
    )


def label_text(label: Label, frame: Frame) -> str:
    """Return a label as text, in the form of `quercus.specification.written_labels`."""
    match label:
        case ClassSet(mask):
            return NOTHING if mask == frame.full else write_set(frame.names(mask))
        case Plausibilities(values):
            return write_label(dict(zip(frame.classes, values, strict=True)))
        case Masses(mass):
            return write_label({frame.names(mask): value for mask, value in mass.focal})


def encode_contour(contour: NDArray[np.float64]) -> values_pb2.Contour:
    """Convert a contour, float64 (l,), to the wire."""
    return values_pb2.Contour(plausibilities=contour)
