"""Labels: evidence about one instance's class.

Three kinds: a set of classes (one class: precise; all classes: vacuous), plausibilities, a mass function.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from operator import index

import numpy as np
from numpy.typing import NDArray

from quercus.belief.contour import check_contour
from quercus.belief.errors import InvalidInput, shown
from quercus.belief.frame import MAX_CLASSES, Frame, check_mask, full_mask
from quercus.belief.mass import MassFunction, membership


@dataclass(frozen=True, slots=True)
class ClassSet:
    """The class is one of a set.

    Parameters
    ----------
    mask
        Bit mask of the set, not empty; one bit is a precise label, all bits of the frame a vacuous one.

    Raises
    ------
    InvalidInput
        When the mask is empty, or no bit mask of at most 64 classes.
    """

    mask: int

    def __post_init__(self) -> None:
        if not hasattr(self.mask, "__index__"):
            raise InvalidInput("label", f"is {shown(self.mask)}, must be an integer bit mask of classes")
        object.__setattr__(self, "mask", index(self.mask))
        check_mask(self.mask, MAX_CLASSES, "label")
        if self.mask == 0:
            raise InvalidInput("label", "is the empty set of classes, must name at least one class")


@dataclass(frozen=True, slots=True)
class Plausibilities:
    """The plausibility of each class.

    Parameters
    ----------
    values
        One value in [0, 1] a class, in the order of the frame, not all zero.

    Raises
    ------
    InvalidInput
        When a value lies outside [0, 1] or all are zero.
    """

    values: tuple[float, ...]

    def __post_init__(self) -> None:
        checked = check_contour(self.values, len(self.values))
        object.__setattr__(self, "values", tuple(checked.tolist()))


@dataclass(frozen=True, slots=True)
class Masses:
    """A mass function on the frame, without mass on the empty set.

    Raises
    ------
    InvalidInput
        When the empty set has mass.
    """

    mass: MassFunction

    def __post_init__(self) -> None:
        if self.mass.conflict > 0.0:
            raise InvalidInput("label", f"has mass {self.mass.conflict!r} on the empty set, must have none")


Label = ClassSet | Plausibilities | Masses


def vacuous(frame: Frame) -> ClassSet:
    """Make the label that says nothing."""
    return ClassSet(frame.full)


def precise(frame: Frame, name: str) -> ClassSet:
    """Make the label that names one class.

    Raises
    ------
    InvalidInput
        When the frame has no such class.
    """
    return ClassSet(1 << frame.index(name))


def class_set(frame: Frame, names: Iterable[str]) -> ClassSet:
    """Make the label that names a set of classes.

    Raises
    ------
    InvalidInput
        When `names` is empty or the frame lacks one of them.
    """
    return ClassSet(frame.mask(names))


def check_label(label: Label, size: int) -> Label:
    """Return `label` if it fits a frame of `size` classes.

    Raises
    ------
    InvalidInput
        When it names a class outside the frame or gives another number of plausibilities.
    """
    match label:
        case ClassSet(mask):
            check_mask(mask, size, "label")
        case Plausibilities(values):
            if len(values) != size:
                raise InvalidInput(
                    "label", f"has {len(values)} plausibilities, must have one for each of {size} classes"
                )
        case Masses(mass):
            if mass.size != size:
                raise InvalidInput(
                    "label", f"has masses on a frame of {mass.size} classes, must have {size} classes"
                )
    return label


def contour(label: Label, size: int) -> NDArray[np.float64]:
    """Return the contour of `label`, float64 (size,).

    Raises
    ------
    InvalidInput
        When the label does not fit a frame of `size` classes.

    Examples
    --------
    >>> contour(ClassSet(0b101), 3).tolist()
    [1.0, 0.0, 1.0]
    """
    match check_label(label, size):
        case ClassSet(mask):
            return membership(np.array([mask], dtype=np.uint64), size).reshape(size)
        case Plausibilities(values):
            return np.array(values, dtype=np.float64)
        case Masses(mass):
            return mass.contour()


def set_contours(masks: NDArray[np.uint64], size: int) -> NDArray[np.float64]:
    """Return the contours of many class sets, float64 (n, size), for masks uint64 (n,).

    Raises
    ------
    InvalidInput
        When a mask is empty or has a bit outside the frame; names the first such row.
    """
    masks = np.asarray(masks, dtype=np.uint64)
    bad = (masks == 0) | (masks > np.uint64(full_mask(size)))
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidInput(
            f"masks[{row}]",
            f"is {int(masks[row]):#x}, must lie in [0x1, {full_mask(size):#x}] for {size} classes",
        )
    return membership(masks, size)
