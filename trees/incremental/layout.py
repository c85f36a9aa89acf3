"""Where the counts of an attribute's value stand in a row of cells."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Layout:
    """Slots of a node: slot 0 counts the node itself, the others one value of one attribute each.

    Parameters
    ----------
    widths
        Number of slots of each attribute: room for its codes, some of them yet to come.
    """

    widths: tuple[int, ...]

    @cached_property
    def offsets(self) -> Ints:
        """First slot of each attribute: (K,)."""
        return 1 + np.cumsum([0, *self.widths[:-1]])

    @cached_property
    def slots(self) -> int:
        """Number of slots, ``S``."""
        return 1 + sum(self.widths)

    @cached_property
    def attribute_of(self) -> Ints:
        """Attribute of each slot but the first: (S - 1,)."""
        return np.repeat(np.arange(len(self.widths)), self.widths)

    def holds(self, arities: tuple[int, ...]) -> bool:
        """Whether there is a slot for every code."""
        return all(arity <= width for arity, width in zip(arities, self.widths, strict=True))

    def widened(self, arities: tuple[int, ...]) -> "Layout":
        """Return a layout that holds every code; what is too narrow at least doubles."""
        pairs = zip(arities, self.widths, strict=True)
        return Layout(tuple(width if arity <= width else max(arity, 2 * width) for arity, width in pairs))
