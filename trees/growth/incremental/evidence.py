"""The rows, column by column, with room to grow."""

import numpy as np
from numpy.typing import NDArray

from quercus.kernels.growth import NONE
from quercus.trees.growth.incremental.numbered import Codes

FIRST_ROWS = 1024


class RowEvidence:
    """The rows so far, in columns.

    Parameters
    ----------
    attributes
        Number of attributes, ``K``.

    Attributes
    ----------
    count : rows, ``n``
    codes : (n, K) branch codes, row-major, in bytes while they fit
    ids : (n,) number of each row's contour
    askable : (n,) whether an oracle may still be asked
    leaf_links : (n,) next row in the list of a leaf, -1 at its end
    """

    def __init__(self, attributes: int) -> None:
        self.count = 0
        self._codes: Codes = np.empty((0, attributes), np.int8)
        self._ids = np.empty(0, np.int32)
        self._askable = np.empty(0, bool)
        self._after = np.empty(0, np.int32)

    @property
    def codes(self) -> Codes:
        """(n, K) branch codes; like the other columns, a view of the rows so far."""
        return self._codes[: self.count]

    @property
    def ids(self) -> NDArray[np.int32]:
        """(n,) number of each row's contour."""
        return self._ids[: self.count]

    @property
    def askable(self) -> NDArray[np.bool_]:
        """(n,) whether an oracle may still be asked about a row."""
        return self._askable[: self.count]

    @property
    def leaf_links(self) -> NDArray[np.int32]:
        """(n,) next row in the list of a leaf, -1 at its end."""
        return self._after[: self.count]

    def append_rows(self, codes: NDArray[np.integer], ids: NDArray[np.int32]) -> None:
        """Append rows: their codes (m, K), and the numbers of their contours (m,). All may be asked about."""
        self._fit_code_type(codes)
        total = self.count + ids.size
        if total > self._ids.size:
            self._enlarge_columns(max(FIRST_ROWS, total + total // 8))
        self._codes[self.count : total] = codes
        self._ids[self.count : total] = ids
        self._askable[self.count : total] = True
        self._after[self.count : total] = NONE
        self.count = total

    def recode_rows(self, codes: NDArray[np.integer]) -> None:
        """Replace the codes (n, K) of all rows."""
        self._fit_code_type(codes)
        self.codes[:] = codes

    def _fit_code_type(self, codes: NDArray[np.integer]) -> None:
        """Use a wider type if the codes do not fit in a byte."""
        if codes.max(initial=0) > np.iinfo(self._codes.dtype).max:
            self._codes = self._codes.astype(np.int16)

    def _enlarge_columns(self, room: int) -> None:
        """Enlarge the columns to `room` rows, in place (without copying) if nothing else refers to them."""
        try:
            self._codes.resize((room, self._codes.shape[1]))
            self._ids.resize(room)
            self._askable.resize(room)
            self._after.resize(room)
        except ValueError:  # another object refers to them
            for name in ("_codes", "_ids", "_askable", "_after"):
                old = getattr(self, name)
                new = np.empty((room, *old.shape[1:]), old.dtype)
                new[: self.count] = old[: self.count]
                setattr(self, name, new)
