"""Estimators that select queries, by the conventions of scikit-activeml's pool strategies."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, overload

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_consistent_length

from quercus.belief.arrays import Floats, Ints
from quercus.belief.errors import InvalidInput, shown
from quercus.estimators.base import BeliefClassifier
from quercus.estimators.columns import is_frame
from quercus.estimators.labels import read_labels
from quercus.specification.attributes import Attribute
from quercus.specification.parameter import Parameter
from quercus.specification.parameters import MAX_COUNT

BATCH_SIZE = Parameter("batch_size", int, 1, "Rows to ask about at once", 1, MAX_COUNT)


@dataclass(frozen=True, eq=False)
class Pool:
    """The rows of a query.

    Parameters
    ----------
    attributes, classes
        The attributes and the frame of the rows.
    values, contours
        (n, K) and (n, l), for all rows; candidates that are separate rows come last.
    refused
        Numbers of rows that nobody could label.
    allowed
        Numbers of the candidates.
    offset
        Number of the first row that `query` counts from.
    """

    attributes: Sequence[Attribute]
    classes: Sequence[Any]
    values: Floats
    contours: Floats
    refused: Ints
    allowed: Ints
    offset: int

    @property
    def count(self) -> int:
        """Number of rows from the offset on."""
        return len(self.values) - self.offset


class AskingClassifier(BeliefClassifier):
    """Base of the estimators that select queries; subclasses only choose among the candidates."""

    missing_label: object

    @overload
    def query(
        self,
        X: Any,
        y: Any,
        candidates: Any = None,
        batch_size: int = 1,
        return_utilities: Literal[False] = False,
        *,
        refused: Any = None,
    ) -> Ints: ...
    @overload
    def query(
        self,
        X: Any,
        y: Any,
        candidates: Any = None,
        batch_size: int = 1,
        *,
        return_utilities: Literal[True],
        refused: Any = None,
    ) -> tuple[Ints, Floats]: ...
    def query(
        self,
        X: Any,
        y: Any,
        candidates: Any = None,
        batch_size: int = 1,
        return_utilities: bool = False,
        *,
        refused: Any = None,
    ) -> Ints | tuple[Ints, Floats]:
        """Select the rows whose labels to ask for, by the conventions of scikit-activeml.

        The estimator need not be fitted, and the fitted model does not change.

        Parameters
        ----------
        X
            (n, K) all rows, with and without labels.
        y
            (n,) their labels, as in `fit`; rows with a missing or an uncertain label are candidates.
        candidates
            None: every row whose label does not name a single class. Numbers (m,) of rows: only these. Rows (m, K):
            these rows instead of those of `X`.
        batch_size
            Maximum number of labels to ask for.
        return_utilities
            Whether to return the utilities too.
        refused
            Numbers of rows of `X` that nobody could label. They are not selected; those without any label count like
            labelled rows for their neighbours, so that further queries are elsewhere.

        Returns
        -------
        indices
            (at most `batch_size`,) numbers of rows of `X`, or of `candidates` if these are rows.
        utilities
            Only with `return_utilities`: (len(indices), n) or (len(indices), m). Row b has the utilities at selection
            b, see the notes of the class; NaN for rows that are not candidates.

        Raises
        ------
        ValueError
            If an argument is not as described.
        """
        BATCH_SIZE.check(batch_size)
        fresh = clone(self)
        X = fresh._validate_rows(X, reset=True)
        fitted: Sequence[Any] | None = getattr(self, "classes_", None)
        labels = read_labels(y, fitted if self.classes is None else self.classes, self.missing_label)
        columns = self._columns_of(X)
        values, contours = columns.values(X), labels.plausibility_matrix()
        check_consistent_length(values, contours)
        unanswered = row_numbers(refused, len(values), "refused")
        offset, allowed = 0, np.arange(len(values))
        if is_frame(candidates) or np.ndim(candidates) > 1:  # rows, not numbers of rows
            more = columns.values(fresh._validate_rows(candidates, reset=False))
            offset, allowed = len(values), len(values) + np.arange(len(more))
            values = np.vstack([values, more])
            contours = np.vstack([contours, np.ones((len(more), contours.shape[1]))])
        elif candidates is not None:
            allowed = row_numbers(candidates, len(values))
        pool = Pool(
            columns.attributes, labels.classes.tolist(), values, contours, unanswered, allowed, offset
        )
        return self._choose(pool, batch_size, return_utilities)

    @abstractmethod
    def _choose(self, pool: Pool, batch_size: int, return_utilities: bool) -> Ints | tuple[Ints, Floats]:
        """Return what `query` returns."""


def row_numbers(rows: Any, count: int, name: str = "candidates") -> Ints:
    """Return `rows`, the parameter `name`, as checked numbers in [0, `count`); None means no rows.

    Raises
    ------
    InvalidInput
        If they are something else.
    """
    numbers = np.asarray([] if rows is None else rows)
    whole = np.issubdtype(numbers.dtype, np.integer) or not numbers.size
    if not whole or numbers.ndim != 1 or not np.all((numbers >= 0) & (numbers < count)):
        raise InvalidInput(name, f"are {shown(rows)}, must be numbers of rows in [0, {count})")
    return numbers.astype(np.int64)
