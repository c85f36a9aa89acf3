"""Uncertain cells as columns, which take little memory and can be saved."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Floats, Ints
from quercus.trees.tree.encoding import Parts


@dataclass(frozen=True, slots=True, eq=False)
class UncertainCells:
    """Uncertain cells of a table of values.

    Parameters
    ----------
    rows, attributes
        (c,) row and attribute of each cell; rows ascend.
    until
        (c,) cumulative number of ranges: those of each cell and of all cells before it.
    ends
        (ranges, 2) the ends of the ranges, both included.
    """

    rows: Ints
    attributes: Ints
    until: Ints
    ends: Floats

    @classmethod
    def of(cls, parts: Parts) -> "UncertainCells":
        """Return cells as columns, in order.

        Examples
        --------
        >>> cells = UncertainCells.of({(4, 0): ((2.0, 3.0),), (1, 2): ((0.0, 0.0), (5.0, 5.0))})
        >>> cells.rows.tolist(), cells.attributes.tolist(), cells.until.tolist(), cells.ends.tolist()
        ([1, 4], [2, 0], [2, 3], [[0.0, 0.0], [5.0, 5.0], [2.0, 3.0]])
        >>> cells.parts
        {(1, 2): ((0.0, 0.0), (5.0, 5.0)), (4, 0): ((2.0, 3.0),)}
        """
        at = sorted(parts)
        places, ranges = np.array(at, np.int64).reshape(-1, 2), [parts[cell] for cell in at]
        ends = np.array([end for each in ranges for end in each], np.float64).reshape(-1, 2)
        return cls(
            places[:, 0], places[:, 1], np.cumsum([len(each) for each in ranges], dtype=np.int64), ends
        )

    def ranges(self, cell: int) -> Floats:
        """Return the ranges (r, 2) of a cell."""
        return self.ends[self.until[cell - 1] if cell else 0 : self.until[cell]]

    @property
    def parts(self) -> Parts:
        """The ranges by row and attribute."""
        cells = zip(self.rows.tolist(), self.attributes.tolist(), strict=True)
        return {cell: tuple(map(tuple, self.ranges(at).tolist())) for at, cell in enumerate(cells)}

    def columns(self, name: str) -> dict[str, NDArray[Any]]:
        """Return the columns to save, with names that begin with `name`; none if there are no cells."""
        if not len(self.rows):
            return {}
        return {f"{name}.{field}": getattr(self, field) for field in self.__slots__}

    @classmethod
    def restored(
        cls, columns: Mapping[str, NDArray[Any]], name: str, rows: int, attributes: int
    ) -> "UncertainCells":
        """Return the cells that `columns` saved, of a table with this number of rows and attributes.

        Raises
        ------
        ValueError
            If the columns do not fit together.
        """
        if f"{name}.rows" not in columns:
            return cls.of({})
        found = cls(*(np.array(columns[f"{name}.{field}"]) for field in cls.__slots__))
        counts = np.diff(found.until, prepend=0)
        shapes_fit = found.rows.shape == found.attributes.shape == found.until.shape == (len(found.rows),)
        if not (
            shapes_fit
            and found.ends.shape == (counts.sum(), 2)
            and (np.diff(found.rows, prepend=0) >= 0).all()
            and (found.rows < rows).all()
            and ((found.attributes >= 0) & (found.attributes < attributes)).all()
            and (counts >= 1).all()
        ):
            raise ValueError(f"the columns of uncertain cells, {name}, do not fit together")
        return found
