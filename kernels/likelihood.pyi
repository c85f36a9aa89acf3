"""The evidential likelihood and its intervals."""

from typing import overload

import numpy
import numpy.typing


TO_BOUNDARY: float = 0.995

OCCURS: float = 1e-06

CONSTANT: int = -1

OTHER: int = -2

GENERAL: int = 3

def maximise(P: numpy.typing.NDArray[numpy.float64], w: numpy.typing.NDArray[numpy.float64]) -> tuple[numpy.typing.NDArray[numpy.float64], float]:
    """Return the maximum evidential likelihood estimate and its KKT excess."""

def least_entropy_of_counts(n: numpy.typing.NDArray[numpy.float64], c: float, inner_c: float, tolerance: float, most: int) -> tuple[float, float]:
    """
    Return proven bound and reached value (nats) of the least entropy over the cut of precise labels.
    """

def greatest_entropy_of_counts(n: numpy.typing.NDArray[numpy.float64], free: int, c: float, inner_c: float, tolerance: float, most: int) -> tuple[float, float]:
    """
    Return proven bound and reached value (nats) of the greatest entropy over the cut of precise labels.
    """

@overload
def solve_precise(start: numpy.typing.NDArray[numpy.int64], ids: numpy.typing.NDArray[numpy.int32], counts: numpy.typing.NDArray[numpy.int64], klass: numpy.typing.NDArray[numpy.int8], l: int, alpha: float, keys: numpy.typing.NDArray[numpy.float64], values: numpy.typing.NDArray[numpy.float64], kinds: numpy.typing.NDArray[numpy.int8], ends: numpy.typing.NDArray[numpy.float64]) -> int: ...

@overload
def solve_precise(start: numpy.typing.NDArray[numpy.int64], ids: numpy.typing.NDArray[numpy.int32], counts: numpy.typing.NDArray[numpy.float64], klass: numpy.typing.NDArray[numpy.int8], l: int, alpha: float, keys: numpy.typing.NDArray[numpy.float64], values: numpy.typing.NDArray[numpy.float64], kinds: numpy.typing.NDArray[numpy.int8], ends: numpy.typing.NDArray[numpy.float64]) -> int:
    """
    Write kinds (m,), and lower end, upper end and gap in bits (3, m) of all cells but the general ones; return the number of a malformed cell, or -1.
    """

@overload
def estimate_precise(start: numpy.typing.NDArray[numpy.int64], ids: numpy.typing.NDArray[numpy.int32], counts: numpy.typing.NDArray[numpy.int64], klass: numpy.typing.NDArray[numpy.int8], kinds: numpy.typing.NDArray[numpy.int8], theta: numpy.typing.NDArray[numpy.float64], unique: numpy.typing.NDArray[numpy.bool_]) -> int: ...

@overload
def estimate_precise(start: numpy.typing.NDArray[numpy.int64], ids: numpy.typing.NDArray[numpy.int32], counts: numpy.typing.NDArray[numpy.float64], klass: numpy.typing.NDArray[numpy.int8], kinds: numpy.typing.NDArray[numpy.int8], theta: numpy.typing.NDArray[numpy.float64], unique: numpy.typing.NDArray[numpy.bool_]) -> int:
    """
    Write kinds, theta (m, l) and uniqueness (m,) of all cells but the general ones; return as solve_precise.
    """

@overload
def bound_precise(start: numpy.typing.NDArray[numpy.int64], ids: numpy.typing.NDArray[numpy.int32], counts: numpy.typing.NDArray[numpy.int64], klass: numpy.typing.NDArray[numpy.int8], alpha: float, kinds: numpy.typing.NDArray[numpy.int8], lower: numpy.typing.NDArray[numpy.float64], upper: numpy.typing.NDArray[numpy.float64]) -> int: ...

@overload
def bound_precise(start: numpy.typing.NDArray[numpy.int64], ids: numpy.typing.NDArray[numpy.int32], counts: numpy.typing.NDArray[numpy.float64], klass: numpy.typing.NDArray[numpy.int8], alpha: float, kinds: numpy.typing.NDArray[numpy.int8], lower: numpy.typing.NDArray[numpy.float64], upper: numpy.typing.NDArray[numpy.float64]) -> int:
    """
    Write kinds and class bounds (m, l) of all cells but the general ones; return as solve_precise.
    """

@overload
def merge_cells(start: numpy.typing.NDArray[numpy.int64], ids: numpy.typing.NDArray[numpy.int32], counts: numpy.typing.NDArray[numpy.int64], wanted: numpy.typing.NDArray[numpy.int64], column: numpy.typing.NDArray[numpy.int32], out_start: numpy.typing.NDArray[numpy.int64], out_columns: numpy.typing.NDArray[numpy.int32], out_counts: numpy.typing.NDArray[numpy.float64]) -> None: ...

@overload
def merge_cells(start: numpy.typing.NDArray[numpy.int64], ids: numpy.typing.NDArray[numpy.int32], counts: numpy.typing.NDArray[numpy.float64], wanted: numpy.typing.NDArray[numpy.int64], column: numpy.typing.NDArray[numpy.int32], out_start: numpy.typing.NDArray[numpy.int64], out_columns: numpy.typing.NDArray[numpy.int32], out_counts: numpy.typing.NDArray[numpy.float64]) -> None:
    """
    Rewrite cells over the table of informative contours: numbers rising, each once.
    """

@overload
def bound_maxima(start: numpy.typing.NDArray[numpy.int64], ids: numpy.typing.NDArray[numpy.int32], counts: numpy.typing.NDArray[numpy.int64], contours: numpy.typing.NDArray[numpy.float64], theta: numpy.typing.NDArray[numpy.float64], reached: numpy.typing.NDArray[numpy.float64], bound: numpy.typing.NDArray[numpy.float64], classes: numpy.typing.NDArray[numpy.uint64], weights: numpy.typing.NDArray[numpy.float64]) -> None: ...

@overload
def bound_maxima(start: numpy.typing.NDArray[numpy.int64], ids: numpy.typing.NDArray[numpy.int32], counts: numpy.typing.NDArray[numpy.float64], contours: numpy.typing.NDArray[numpy.float64], theta: numpy.typing.NDArray[numpy.float64], reached: numpy.typing.NDArray[numpy.float64], bound: numpy.typing.NDArray[numpy.float64], classes: numpy.typing.NDArray[numpy.uint64], weights: numpy.typing.NDArray[numpy.float64]) -> None:
    """
    Write the fields of LikelihoodMaxima, (m,) each, from estimates (m, l).
    """

def rescale_rows(P: numpy.typing.NDArray[numpy.float64], theta: numpy.typing.NDArray[numpy.float64]) -> numpy.typing.NDArray[numpy.float64]:
    """Return the rows divided by p . theta."""

def take_problem(table: numpy.typing.NDArray[numpy.float64], start: numpy.typing.NDArray[numpy.int64], columns: numpy.typing.NDArray[numpy.int32], counts: numpy.typing.NDArray[numpy.float64], problem: int) -> tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]]:
    """Return the contours of one problem (n, l) and their counts (n,)."""

def enter_cells(start: numpy.typing.NDArray[numpy.int64], columns: numpy.typing.NDArray[numpy.int32], counts: numpy.typing.NDArray[numpy.float64], slots: numpy.typing.NDArray[numpy.int32], hashes: numpy.typing.NDArray[numpy.uint64], pool_start: numpy.typing.NDArray[numpy.int64], pool_columns: numpy.typing.NDArray[numpy.int32], pool_counts: numpy.typing.NDArray[numpy.float64], size: int, entries: numpy.typing.NDArray[numpy.int64]) -> int:
    """
    Find or add cells in a hash table; write their numbers to entries, return the new size.
    """

def place_hashes(hashes: numpy.typing.NDArray[numpy.uint64], slots: numpy.typing.NDArray[numpy.int32]) -> None:
    """
    Fill the free slots of a larger hash table with the cells that have these hashes.
    """

def reduce_rows(P: numpy.typing.NDArray[numpy.float64], w: numpy.typing.NDArray[numpy.float64], first: numpy.typing.NDArray[numpy.int64], out_P: numpy.typing.NDArray[numpy.float64], out_w: numpy.typing.NDArray[numpy.float64], out_start: numpy.typing.NDArray[numpy.int64], empty: numpy.typing.NDArray[numpy.bool_]) -> None:
    """
    Reduce many problems to their distinct informative contours; P is overwritten.
    """
