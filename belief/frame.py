"""Frames of discernment: the classes, in declared order."""

from collections.abc import Iterable
from dataclasses import dataclass

from quercus.belief.errors import InvalidInput, shown

MIN_CLASSES = 2
MAX_CLASSES = 64  # a set of classes is one unsigned 64-bit word
MAX_NAME_CHARS = 100


def check_size(size: int, field: str = "size") -> int:
    """Return `size` if it is a possible number of classes (2 to 64).

    Raises
    ------
    InvalidInput
        When it is not.
    """
    if not MIN_CLASSES <= size <= MAX_CLASSES:
        raise InvalidInput(field, f"is {size}, must lie in [{MIN_CLASSES}, {MAX_CLASSES}]")
    return size


def full_mask(size: int) -> int:
    """Return the mask of all `size` classes."""
    return (1 << size) - 1


@dataclass(frozen=True, slots=True)
class Frame:
    """The classes, in declared order; bit ``c`` of a mask stands for ``classes[c]``.

    Parameters
    ----------
    classes
        2 to 64 distinct, non-empty names of at most 100 characters.

    Raises
    ------
    InvalidInput
        When the names break one of these rules.

    Examples
    --------
    >>> frame = Frame(("o", "s", "x"))
    >>> frame.size, frame.index("s"), frame.mask(["o", "x"]), frame.names(6), frame.full
    (3, 1, 5, ('s', 'x'), 7)
    """

    classes: tuple[str, ...]

    def __post_init__(self) -> None:
        if isinstance(self.classes, str):  # otherwise it would count as a sequence of one-letter names
            raise InvalidInput("classes", f"is the text {shown(self.classes)}, must be a sequence of names")
        object.__setattr__(self, "classes", tuple(self.classes))
        count = len(self.classes)
        if not MIN_CLASSES <= count <= MAX_CLASSES:
            raise InvalidInput(
                "classes", f"has {count} name{'s' * (count != 1)}, must have {MIN_CLASSES} to {MAX_CLASSES}"
            )
        seen: dict[str, int] = {}
        for index, name in enumerate(self.classes):
            _check_name(name, f"classes[{index}]")
            if name in seen:
                raise InvalidInput(
                    f"classes[{index}]",
                    f"is {shown(name)}, the same as number {seen[name] + 1}; names must be distinct",
                )
            seen[name] = index

    @property
    def size(self) -> int:
        """Number of classes, ``l``."""
        return len(self.classes)

    @property
    def full(self) -> int:
        """The mask of all classes."""
        return full_mask(self.size)

    def index(self, name: str) -> int:
        """Return the position of the class `name`.

        Raises
        ------
        InvalidInput
            When the frame has no such class.
        """
        try:
            return self.classes.index(name)
        except ValueError:
            known = ", ".join(shown(c, 24) for c in self.classes[:8]) + (", ..." if self.size > 8 else "")
            raise InvalidInput(
                "class", f"{shown(name)} is not one of the {self.size} classes {known}"
            ) from None

    def mask(self, names: Iterable[str]) -> int:
        """Return the mask of the classes `names`; a repeated name counts once.

        Raises
        ------
        InvalidInput
            When the frame lacks one of them.
        """
        mask = 0
        for name in names:
            mask |= 1 << self.index(name)
        return mask

    def names(self, mask: int) -> tuple[str, ...]:
        """Return the names of the classes in `mask`, in declared order.

        Raises
        ------
        InvalidInput
            When the mask has a bit outside the frame.
        """
        check_mask(mask, self.size)
        return tuple(name for c, name in enumerate(self.classes) if mask >> c & 1)


def check_mask(mask: int, size: int, field: str = "mask") -> int:
    """Return `mask` if it is a subset (the empty one included) of a frame of `size` classes.

    Raises
    ------
    InvalidInput
        When it is negative or has a bit outside the frame.
    """
    if not 0 <= mask <= full_mask(size):
        raise InvalidInput(field, f"is {mask:#x}, must lie in [0x0, {full_mask(size):#x}] for {size} classes")
    return mask


def _check_name(name: object, field: str) -> None:
    if not isinstance(name, str):
        raise InvalidInput(field, f"is {shown(name)}, must be text")
    if not name.strip():
        raise InvalidInput(field, f"is {shown(name)}, must not be empty or blank")
    if len(name) > MAX_NAME_CHARS:
        raise InvalidInput(
            field, f"has {len(name)} characters, at most {MAX_NAME_CHARS} are allowed: {shown(name)}"
        )
