"""Nested masses from class densities, many at once (theory §6; Gao, Wang, Ma 2022, section 3.1.2).

The densities of a value under each class, normalised to sum 1 and ranked, are assigned to nested sets: the r-th largest
to the set of the r top classes. All computations are in logarithms, so that evidence against a class never becomes
certain by underflow.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Floats
from quercus.belief.errors import InvalidInput
from quercus.belief.mass import MassFunction, membership
from quercus.belief.sums import sums_of_supersets
from quercus.specification.parameters import MAX_MASS_CLASSES
from quercus.trees.rules.ties import TIE

MASS_ROUNDING = 1e-15
"""Masses up to this size are rounding errors of differences of commonalities."""


@dataclass(frozen=True, slots=True, eq=False)
class ConsonantMasses:
    """Nested mass functions, one per row (any leading axes may stand for ``n``).

    Parameters
    ----------
    order
        (n, l) classes by descending density, tied ones in declared order.
    log_masses
        (n, l) log of the mass of the set of the first r + 1 classes of `order`; minus infinity for no mass.
    """

    order: NDArray[np.int64]
    log_masses: Floats

    @classmethod
    def of(cls, log_densities: Floats) -> "ConsonantMasses":
        """Return the nested masses of log densities (n, l), at least one of which is finite in each row.

        Densities within a relative 1e-9 of the next larger one are tied; tied densities all go to the largest of their
        sets. (The tolerance is relative because the difference between 1e-20 and 1e-40 matters when evidence
        accumulates.)
        """
        top = log_densities.max(axis=-1, keepdims=True)
        logs = log_densities - top
        logs = logs - np.log(np.exp(logs).sum(axis=-1, keepdims=True))
        order = np.argsort(-logs, axis=-1, kind="stable")
        ranked = np.take_along_axis(logs, order, axis=-1)
        return cls(_in_declared_order(order, ranked), _gather_ties(ranked))

    def __len__(self) -> int:
        return len(self.order)

    @property
    def size(self) -> int:
        """Number of classes."""
        return int(self.order.shape[-1])

    def deng_entropy(self) -> Floats:
        """Return the Deng entropy of each row, float64 (n,), in bits: ``-Σ m log2(m / (2^r - 1))``."""
        masses = np.exp(self.log_masses)
        logs = np.where(masses > 0.0, self.log_masses, 0.0) / np.log(2.0)
        subsets = np.log2(np.exp2(np.arange(1, self.size + 1)) - 1.0)
        entropy: Floats = (masses * (subsets - logs)).sum(axis=-1)
        return entropy

    def log_contours(self) -> Floats:
        """Return the log of each class's plausibility, float64 (n, l), classes in declared order."""
        ranked = np.logaddexp.accumulate(self.log_masses[..., ::-1], axis=-1)[..., ::-1]
        logs = np.empty_like(ranked)
        np.put_along_axis(logs, self.order, ranked, axis=-1)
        return np.minimum(logs, 0.0)

    def mass_function(self, row: int) -> MassFunction:
        """Return the mass function of one row."""
        masses = np.exp(self.log_masses[row])
        masks = np.cumsum(1 << self.order[row].astype(object))
        return MassFunction.of(
            self.size,
            [(int(s), float(m)) for s, m in zip(masks, masses / masses.sum(), strict=True) if m > 0.0],
        )


def log_commonalities(log_contours: Floats) -> Floats:
    """Return the log commonality of every set, float64 (n, 2^l), of nested masses with contours (n, l).

    ``Q(B) = min_{c ∈ B} pl(c)`` for nested masses: the sets that contain B are those that include its lowest class.
    Sums of log commonalities combine the masses by the conjunctive rule. Column = mask; ``Q(∅) = 1``.

    Raises
    ------
    InvalidInput
        With more than 16 classes.
    """
    size = log_contours.shape[-1]
    if size > MAX_MASS_CLASSES:
        raise InvalidInput("classes", f"are {size}, at most {MAX_MASS_CLASSES} can be combined set by set")
    logs = np.zeros((*log_contours.shape[:-1], 1 << size))
    for c in range(size):
        bit = 1 << c
        np.minimum(logs[..., :bit], log_contours[..., c, np.newaxis], out=logs[..., bit : 2 * bit])
    return logs


def log_commonalities_of(m: MassFunction) -> Floats:
    """Return the log commonality of every set, float64 (2^l,), of any mass function without mass on ∅.

    Raises
    ------
    InvalidInput
        With more than 16 classes.
    """
    if m.size > MAX_MASS_CLASSES:
        raise InvalidInput("classes", f"are {m.size}, at most {MAX_MASS_CLASSES} can be combined set by set")
    q = np.zeros(1 << m.size)
    masks, masses = m.arrays()
    q[masks.astype(np.int64)] = masses
    for c in range(m.size):
        pairs = q.reshape(-1, 2, 1 << c)
        pairs[:, 0] += pairs[:, 1]
    with np.errstate(divide="ignore"):
        logs: Floats = np.log(np.minimum(q, 1.0))
    return logs


def normalised_masses(log_commonalities: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the masses of every set, float64 (n, 2^l), of summed log commonalities (n, 2^l): Dempster's rule.

    ``m(A) = Σ_{B ⊇ A} (-1)^{|B∖A|} Q(B)``, scaled first by the largest Q of a single class, so masses are exact to
    about 1e-15 of the whole, whatever the conflict. Smaller masses are omitted.

    Returns
    -------
    masses
        Summing to 1 in each row, none on the empty set; NaN for total conflict.
    conflict
        (n,) whether there is total conflict.
    """
    sets = log_commonalities.shape[-1]
    size = sets.bit_length() - 1
    top = log_commonalities[..., 1 << np.arange(size)].max(axis=-1)
    conflict = np.isneginf(top)
    q = np.zeros(log_commonalities.shape)  # the empty set stays 0: its commonality would only overflow
    q[..., 1:] = np.exp(log_commonalities[..., 1:] - np.where(conflict, 0.0, top)[..., np.newaxis])
    for c in range(size):
        pairs = q.reshape(*q.shape[:-1], sets >> (c + 1), 2, 1 << c)
        pairs[..., 0, :] -= pairs[..., 1, :]
    q[..., 0] = 0.0
    masses = np.where(q > MASS_ROUNDING, q, 0.0)
    total = masses.sum(axis=-1, keepdims=True)
    return np.divide(masses, total, out=np.full_like(masses, np.nan), where=total > 0.0), conflict


def mass_function(masses: Floats) -> MassFunction:
    """Return the masses (2^l,) of every set, mask by mask, as a mass function."""
    sets = np.flatnonzero(masses)
    pairs = zip(sets.tolist(), np.minimum(masses[sets], 1.0).tolist(), strict=True)
    return MassFunction.of(len(masses).bit_length() - 1, pairs)


def pignistic_of(masses: Floats) -> Floats:
    """Return ``BetP``, float64 (n, l), of the masses (n, 2^l) of every set."""
    sets = masses.shape[-1]
    inside = membership(np.arange(sets, dtype=np.uint64), sets.bit_length() - 1)
    return sums_of_supersets(masses / np.maximum(inside.sum(axis=1), 1.0))


def _tied_with_previous(ranked: Floats) -> NDArray[np.bool_]:
    """Return whether each of (n, l) ranked logs is tied with the one before it; the first never is."""
    with np.errstate(invalid="ignore"):  # minus infinity minus itself: both impossible, so tied
        gap = ranked[..., :-1] - ranked[..., 1:]
    tied = np.zeros(ranked.shape, dtype=bool)
    tied[..., 1:] = (gap <= TIE) | np.isnan(gap)
    return tied


def _in_declared_order(order: NDArray[np.int64], ranked: Floats) -> NDArray[np.int64]:
    """Return `order` with tied classes in declared order."""
    group = np.cumsum(~_tied_with_previous(ranked), axis=-1)
    size = order.shape[-1]
    key = group * size + order
    again = np.argsort(key, axis=-1, kind="stable")
    return np.take_along_axis(order, again, axis=-1)


def _gather_ties(ranked: Floats) -> Floats:
    """Return ranked logs (n, l) with the sum of every run of tied values at the run's last position."""
    tied = _tied_with_previous(ranked)
    logs = ranked.copy()
    for r in range(1, ranked.shape[-1]):
        before = logs[..., r - 1]
        logs[..., r] = np.where(tied[..., r], np.logaddexp(before, logs[..., r]), logs[..., r])
        logs[..., r - 1] = np.where(tied[..., r], -np.inf, before)
    return logs
