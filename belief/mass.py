"""Mass functions with bit-mask focal sets (theory §1.1)."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import index
from typing import Self

import numpy as np
from numpy.typing import NDArray

from quercus.belief.errors import InvalidInput, shown
from quercus.belief.frame import check_mask, check_size, full_mask
from quercus.belief.sums import weighted_sum

MAX_FOCAL_SETS = 65_536
SUM_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class MassFunction:
    """A mass function ``m: 2^C -> [0, 1]``, kept as its focal sets.

    Parameters
    ----------
    size
        Number of classes of the frame, 2 to 64.
    focal
        Pairs (mask, mass), at most 65,536, each mask once. Stored sorted by mask, without those of mass zero.
    allow_empty
        Whether mass on the empty set is allowed: a result of the conjunctive rule may have it, a label never.

    Raises
    ------
    InvalidInput
        When a mask lies outside the frame or comes twice, a mass lies outside [0, 1] or is not a number, the
        masses do not sum to 1 within 1e-9, or the empty set has mass and may not.

    Examples
    --------
    >>> MassFunction(3, ((0b011, 0.4), (0b001, 0.3), (0b111, 0.3))).contour().tolist()
    [1.0, 0.7, 0.3]
    """

    size: int
    focal: tuple[tuple[int, float], ...]
    allow_empty: bool = field(default=False, compare=False, kw_only=True)

    def __post_init__(self) -> None:
        check_size(self.size)
        pairs = tuple(self.focal)
        if len(pairs) > MAX_FOCAL_SETS:
            raise InvalidInput("focal", f"has {len(pairs)} focal sets, at most {MAX_FOCAL_SETS} are allowed")
        masses: dict[int, float] = {}
        for i, (mask, mass) in enumerate(pairs):
            _check_pair(self.size, mask, mass, f"focal[{i}]")
            if index(mask) in masses:
                raise InvalidInput(f"focal[{i}]", f"names the set {index(mask):#x} a second time")
            masses[index(mask)] = float(mass)
        total = math.fsum(masses.values())
        if abs(total - 1.0) > SUM_TOLERANCE:
            raise InvalidInput(
                "focal", f"the masses sum to {total!r}, must sum to 1 within {SUM_TOLERANCE:g}"
            )
        if not self.allow_empty and masses.get(0, 0.0) > 0.0:
            raise InvalidInput("focal", f"the empty set has mass {masses[0]!r}, must have none")
        object.__setattr__(self, "focal", tuple(sorted((s, m) for s, m in masses.items() if m > 0.0)))

    @classmethod
    def of(cls, size: int, masses: Mapping[int, float] | Iterable[tuple[int, float]]) -> Self:
        """Make a normalised mass function from a mapping of masks to masses, or from pairs.

        Raises
        ------
        InvalidInput
            As the constructor.
        """
        return cls(size, tuple(masses.items() if isinstance(masses, Mapping) else masses))

    @classmethod
    def vacuous(cls, size: int) -> Self:
        """Make the mass function that says nothing: all mass on the whole frame."""
        return cls(size, ((full_mask(check_size(size)), 1.0),))

    @property
    def conflict(self) -> float:
        """Mass of the empty set, κ; 0 unless `allow_empty`."""
        return self.focal[0][1] if self.focal[0][0] == 0 else 0.0

    def arrays(self) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
        """Return the focal sets, uint64 (k,), and their masses, float64 (k,), sorted by mask."""
        return (
            np.array([mask for mask, _ in self.focal], dtype=np.uint64),
            np.array([mass for _, mass in self.focal], dtype=np.float64),
        )

    def contour(self) -> NDArray[np.float64]:
        """Return the plausibility of each class, float64 (size,), in [0, 1]."""
        masks, masses = self.arrays()
        sums = weighted_sum(masses, membership(masks, self.size))
        return np.minimum(sums, 1.0)  # the masses may sum to 1 + 1e-9


def consonant_mass(contour: NDArray[np.float64]) -> MassFunction:
    """Return the mass function with nested focal sets whose contour is `contour`, rescaled to maximum 1.

    A contour does not determine a mass function; of those with this contour, the consonant one is the least
    committed. Rescaling is harmless: evidence as a contour has no absolute height (theory §1.3). With
    plausibilities in falling order ``pl_(1) = 1 ≥ pl_(2) ≥ ...``, the set of the first ``r`` classes gets
    ``pl_(r) - pl_(r+1)``.

    Examples
    --------
    >>> consonant_mass(np.array([1.0, 0.0, 0.25])).focal
    ((1, 0.75), (5, 0.25))
    """
    levels = contour / contour.max()
    order = np.argsort(-levels, kind="stable")
    falling = np.append(levels[order], 0.0)
    masses: dict[int, float] = {}
    mask = 0
    for rank, c in enumerate(order):
        mask |= 1 << int(c)
        step = float(falling[rank] - falling[rank + 1])
        if step > 0:
            masses[mask] = step
    return MassFunction.of(len(contour), masses)


def membership(masks: NDArray[np.uint64], size: int) -> NDArray[np.float64]:
    """Return which classes are in each set: 1.0 or 0.0, float64 (n, size), for masks uint64 (n,)."""
    bits = np.arange(size, dtype=np.uint64)
    return ((masks[:, None] >> bits) & np.uint64(1)).astype(np.float64)


def _check_pair(size: int, mask: object, mass: object, name: str) -> None:
    if not hasattr(mask, "__index__"):
        raise InvalidInput(name, f"its set is {shown(mask)}, must be an integer bit mask")
    check_mask(index(mask), size, name)
    try:
        value = float(mass)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(name, f"its mass is {shown(mass)}, must be a number") from None
    if not 0.0 <= value <= 1.0:  # also catches NaN
        raise InvalidInput(name, f"its mass is {value!r}, must lie in [0, 1]")
