"""Labellers' answers about instances, in a canonical order, so that estimates do not depend on the order of arrival."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Floats, Ints
from quercus.belief.errors import InvalidInput


@dataclass(frozen=True, slots=True, eq=False)
class CrowdAnswers:
    """Answers, sorted by instance, then labeller, then contour.

    Attributes
    ----------
    instances, labellers : int64 (k,)
        Instance and labeller of each answer.
    kinds : int64 (k,)
        Row of each answer's contour in `contours`.
    contours : float64 (d, l)
        The distinct contours, scaled to maximum 1.
    instance_count, labeller_count : int
        Number of instances and of labellers, with those that have no answer.
    """

    instances: Ints
    labellers: Ints
    kinds: Ints
    contours: Floats
    instance_count: int
    labeller_count: int

    @classmethod
    def of(cls, instances: Ints, labellers: Ints, contours: Floats) -> Self:
        """Return the answers, sorted.

        Parameters
        ----------
        instances, labellers
            int64 (k,): instance and labeller of each answer, numbered from 0.
        contours
            float64 (k, l): plausibilities of each answer.

        Raises
        ------
        InvalidInput
            When the three do not have the same length, or an answer excludes every class.
        """
        if not len(instances) == len(labellers) == len(contours):
            raise InvalidInput(
                "contours", f"are {len(contours)}, must be one for each of {len(instances)} answers"
            )
        said = np.asarray(contours, dtype=np.float64)
        top = said.max(axis=1, initial=0.0)
        if not (top > 0.0).all():
            raise InvalidInput("contours", "an answer excludes every class, at least one must be plausible")
        distinct, kinds = np.unique(said / top[:, np.newaxis], axis=0, return_inverse=True)
        kinds = kinds.ravel().astype(np.int64)
        order = np.lexsort([kinds, labellers, instances])
        counts = (int(numbers.max(initial=-1)) + 1 for numbers in (instances, labellers))
        return cls(
            np.asarray(instances)[order], np.asarray(labellers)[order], kinds[order], distinct, *counts
        )

    @property
    def size(self) -> int:
        """Number of classes."""
        return int(self.contours.shape[1])

    def __len__(self) -> int:
        return len(self.instances)

    def informative_answers(self) -> Self:
        """Return the answers that are not vacuous."""
        return self._select_answers(self._says_something)

    def shared_answers(self) -> Self:
        """Return the informative answers about instances that two or more labellers answered informatively.

        Only these show how reliable a labeller is.
        """
        says = self._says_something
        pairs = np.unique(np.column_stack([self.instances, self.labellers])[says], axis=0)
        voices = np.bincount(pairs[:, 0], minlength=self.instance_count)
        return self._select_answers(says & (voices[self.instances] > 1))

    @property
    def _says_something(self) -> NDArray[np.bool_]:
        says: NDArray[np.bool_] = self.contours.min(axis=1)[self.kinds] < 1.0
        return says

    def _select_answers(self, kept: NDArray[np.bool_]) -> Self:
        return type(self)(
            self.instances[kept], self.labellers[kept], self.kinds[kept], self.contours,
            self.instance_count, self.labeller_count,
        )  # fmt: skip


def sum_by(numbers: Ints, values: Floats, count: int) -> Floats:
    """Return the sums (count, ...) of `values` (k, ...) by number; `numbers` (k,) must be sorted."""
    found = np.zeros((count, *values.shape[1:]))
    if len(numbers):
        starts = np.flatnonzero(np.diff(numbers, prepend=-1))
        found[numbers[starts]] = np.add.reduceat(values, starts, axis=0)
    return found


def normalise_log_joint(log_joint: Floats) -> tuple[Floats, Floats]:
    """Return the probabilities (n, l) proportional to ``exp(log_joint)``, and the log of each row's sum (n,)."""
    top = log_joint.max(axis=1, keepdims=True)
    joint = np.exp(log_joint - top)
    total = joint.sum(axis=1, keepdims=True)
    return joint / total, (top + np.log(total))[:, 0]
