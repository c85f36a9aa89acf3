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

def loglik(P: numpy.typing.NDArray[numpy.float64], w: numpy.typing.NDArray[numpy.float64], theta: numpy.typing.NDArray[numpy.float64]) -> float:
    """
    Return the log-likelihood of a point; minus infinity where it is impossible.
    """

def kkt_excess(P: numpy.typing.NDArray[numpy.float64], w: numpy.typing.NDArray[numpy.float64], theta: numpy.typing.NDArray[numpy.float64], g: numpy.typing.NDArray[numpy.float64]) -> float:
    """
    Return the KKT excess of a point of the simplex; write the gradient divided by the weight into g.
    """

def minimise_over_cut(P: numpy.typing.NDArray[numpy.float64], w: numpy.typing.NDArray[numpy.float64], c: float, q: numpy.typing.NDArray[numpy.float64], a: numpy.typing.NDArray[numpy.float64], b: numpy.typing.NDArray[numpy.float64], theta: numpy.typing.NDArray[numpy.float64], enough: float) -> tuple[float, float]:
    """
    Move theta to the minimiser of linear costs (or, without costs, of minus the entropy) over a level set in a box; return a proven bound and the multiplier.
    """

def entropy(theta: numpy.typing.NDArray[numpy.float64]) -> float:
    """Return the Shannon entropy in nats."""

def to_boundary(P: numpy.typing.NDArray[numpy.float64], w: numpy.typing.NDArray[numpy.float64], c: float, inner: numpy.typing.NDArray[numpy.float64], outer: numpy.typing.NDArray[numpy.float64], point: numpy.typing.NDArray[numpy.float64]) -> None:
    """
    Write the last point of a level set on the ray from one of its points through another point.
    """

def newton_stationary(P: numpy.typing.NDArray[numpy.float64], w: numpy.typing.NDArray[numpy.float64], c: float, x: numpy.typing.NDArray[numpy.float64], mu: float) -> float:
    """
    Move x to the stationary point of the entropy near it; return the multiplier, 0 where that fails.
    """

def multiplier_at(P: numpy.typing.NDArray[numpy.float64], w: numpy.typing.NDArray[numpy.float64], x: numpy.typing.NDArray[numpy.float64]) -> float:
    """Return the multiplier that best fits a stationary point."""

def descend(P: numpy.typing.NDArray[numpy.float64], w: numpy.typing.NDArray[numpy.float64], c: float, inner_c: float, centre: numpy.typing.NDArray[numpy.float64], theta: numpy.typing.NDArray[numpy.float64]) -> tuple[float, float]:
    """
    Walk theta down to a local minimum of the entropy over a level set; return its value and multiplier.
    """

def largest_move(p: numpy.typing.NDArray[numpy.float64], x: float) -> float:
    """Return how far above 1 a row's probability may be."""

def outer_box(P: numpy.typing.NDArray[numpy.float64], w: numpy.typing.NDArray[numpy.float64], c: float, theta: numpy.typing.NDArray[numpy.float64], worst: float, a: numpy.typing.NDArray[numpy.float64], b: numpy.typing.NDArray[numpy.float64], top: numpy.typing.NDArray[numpy.float64]) -> None:
    """
    Write a box that contains a level set, and upper bounds of its rows' probabilities.
    """

def tighten(a: numpy.typing.NDArray[numpy.float64], b: numpy.typing.NDArray[numpy.float64]) -> bool:
    """
    Shrink a box to its intersection with the simplex; false if that is empty.
    """

def nearest(a: numpy.typing.NDArray[numpy.float64], b: numpy.typing.NDArray[numpy.float64], x: numpy.typing.NDArray[numpy.float64], y: numpy.typing.NDArray[numpy.float64]) -> None:
    """Write a point of simplex and box near x into y."""

def rounding(l: int) -> float:
    """
    Return a bound of the effect of rounding on a log-likelihood, relative to the weight.
    """

def plain_sums(n: int, l: int) -> float:
    """
    Return a bound of the relative effect of rounding on a plainly summed gradient.
    """

def sure_excess(P: numpy.typing.NDArray[numpy.float64], w: numpy.typing.NDArray[numpy.float64], theta: numpy.typing.NDArray[numpy.float64], worst: float, c: float) -> float:
    """
    Return an upper bound of the true KKT excess of a point, given the computed one.
    """

def entropy_error(P: numpy.typing.NDArray[numpy.float64], w: numpy.typing.NDArray[numpy.float64], theta: numpy.typing.NDArray[numpy.float64], slack: float) -> tuple[float, float]:
    """
    Return by how much the entropy near the maximum of the likelihood may be below and above that of theta.
    """

def box_entropy_error(P: numpy.typing.NDArray[numpy.float64], w: numpy.typing.NDArray[numpy.float64], theta: numpy.typing.NDArray[numpy.float64], slack: float, widest: float) -> float:
    """
    Return by how much the entropy near the maximum may differ from that of theta, judged by the sides of a box that are narrower than widest.
    """

def least_curvature(y: float, a: float) -> float:
    """Return the least curvature with which an envelope touches at y."""

def envelope(f: float, y: float, a: float, b: float) -> tuple[float, float]:
    """
    Return value and slope at y of the convex envelope of an entropy term to which curvature f is added.
    """

def classes_by_plausibility(P: numpy.typing.NDArray[numpy.float64]) -> numpy.typing.NDArray[numpy.int8]:
    """Return the classes of each row in falling order of plausibility."""

def bound_in_box(P: numpy.typing.NDArray[numpy.float64], w: numpy.typing.NDArray[numpy.float64], order: numpy.typing.NDArray[numpy.int8], c: float, top: numpy.typing.NDArray[numpy.float64], a: numpy.typing.NDArray[numpy.float64], b: numpy.typing.NDArray[numpy.float64], x: numpy.typing.NDArray[numpy.float64], mu: float, y: numpy.typing.NDArray[numpy.float64], enough: float, limit: float) -> tuple[float, int, float, float]:
    """
    Return a lower bound of the entropy over a level set in a box, the coordinate and the value at which to cut the box, and a multiplier.
    """

def least_entropy(P: numpy.typing.NDArray[numpy.float64], w: numpy.typing.NDArray[numpy.float64], c: float, inner_c: float, theta: numpy.typing.NDArray[numpy.float64], worst: float, tolerance: float, effort: int) -> tuple[float, float, int]:
    """
    Return the least entropy over a level set: proven bound, reached value, boxes examined.
    """

def greatest_entropy(P: numpy.typing.NDArray[numpy.float64], w: numpy.typing.NDArray[numpy.float64], c: float, inner_c: float, theta: numpy.typing.NDArray[numpy.float64]) -> tuple[float, float]:
    """
    Return the greatest entropy over a level set: proven bound and reached value.
    """

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
    Write kinds, theta (m, l) and uniqueness (m,) of all cells but the general ones; return the number of a malformed cell, or -1.
    """

@overload
def bound_precise(start: numpy.typing.NDArray[numpy.int64], ids: numpy.typing.NDArray[numpy.int32], counts: numpy.typing.NDArray[numpy.int64], klass: numpy.typing.NDArray[numpy.int8], alpha: float, kinds: numpy.typing.NDArray[numpy.int8], lower: numpy.typing.NDArray[numpy.float64], upper: numpy.typing.NDArray[numpy.float64]) -> int: ...

@overload
def bound_precise(start: numpy.typing.NDArray[numpy.int64], ids: numpy.typing.NDArray[numpy.int32], counts: numpy.typing.NDArray[numpy.float64], klass: numpy.typing.NDArray[numpy.int8], alpha: float, kinds: numpy.typing.NDArray[numpy.int8], lower: numpy.typing.NDArray[numpy.float64], upper: numpy.typing.NDArray[numpy.float64]) -> int:
    """
    Write kinds and class bounds (m, l) of all cells but the general ones; return the number of a malformed cell, or -1.
    """

@overload
def merge_cells(start: numpy.typing.NDArray[numpy.int64], ids: numpy.typing.NDArray[numpy.int32], counts: numpy.typing.NDArray[numpy.int64], wanted: numpy.typing.NDArray[numpy.int64], column: numpy.typing.NDArray[numpy.int32], out_start: numpy.typing.NDArray[numpy.int64], out_columns: numpy.typing.NDArray[numpy.int32], out_counts: numpy.typing.NDArray[numpy.float64]) -> None: ...

@overload
def merge_cells(start: numpy.typing.NDArray[numpy.int64], ids: numpy.typing.NDArray[numpy.int32], counts: numpy.typing.NDArray[numpy.float64], wanted: numpy.typing.NDArray[numpy.int64], column: numpy.typing.NDArray[numpy.int32], out_start: numpy.typing.NDArray[numpy.int64], out_columns: numpy.typing.NDArray[numpy.int32], out_counts: numpy.typing.NDArray[numpy.float64]) -> None:
    """
    Rewrite cells over the table of informative contours, each contour once, numbers ascending.
    """

@overload
def bound_maxima(start: numpy.typing.NDArray[numpy.int64], ids: numpy.typing.NDArray[numpy.int32], counts: numpy.typing.NDArray[numpy.int64], contours: numpy.typing.NDArray[numpy.float64], theta: numpy.typing.NDArray[numpy.float64], reached: numpy.typing.NDArray[numpy.float64], bound: numpy.typing.NDArray[numpy.float64], classes: numpy.typing.NDArray[numpy.uint64], weights: numpy.typing.NDArray[numpy.float64]) -> None: ...

@overload
def bound_maxima(start: numpy.typing.NDArray[numpy.int64], ids: numpy.typing.NDArray[numpy.int32], counts: numpy.typing.NDArray[numpy.float64], contours: numpy.typing.NDArray[numpy.float64], theta: numpy.typing.NDArray[numpy.float64], reached: numpy.typing.NDArray[numpy.float64], bound: numpy.typing.NDArray[numpy.float64], classes: numpy.typing.NDArray[numpy.uint64], weights: numpy.typing.NDArray[numpy.float64]) -> None:
    """
    Write the fields of LikelihoodMaxima, (m,) each, from estimates (m, l).
    """

SOLVED: int = 0

SEARCH: int = 1

MAXIMISERS: int = 2

FEW_BOXES: int = 100

TOLERANCE: float = 2e-10

def estimate_counts(table: numpy.typing.NDArray[numpy.float64], start: numpy.typing.NDArray[numpy.int64], columns: numpy.typing.NDArray[numpy.int32], counts: numpy.typing.NDArray[numpy.float64], wanted: numpy.typing.NDArray[numpy.int64], found: numpy.typing.NDArray[numpy.float64]) -> None:
    """
    Write the maximisers of problems, their KKT excess, and 1 where a maximiser is certainly unique (m, l + 2).
    """

def solve_counts(table: numpy.typing.NDArray[numpy.float64], start: numpy.typing.NDArray[numpy.int64], columns: numpy.typing.NDArray[numpy.int32], counts: numpy.typing.NDArray[numpy.float64], wanted: numpy.typing.NDArray[numpy.int64], estimates: numpy.typing.NDArray[numpy.float64], alpha: float, tight: bool, ends: numpy.typing.NDArray[numpy.float64], states: numpy.typing.NDArray[numpy.int8]) -> None:
    """
    Write lower bound, reached least, reached greatest entropy and upper bound (nats) of problems (m, 4), and states (m,).
    """

def search_counts(table: numpy.typing.NDArray[numpy.float64], start: numpy.typing.NDArray[numpy.int64], columns: numpy.typing.NDArray[numpy.int32], counts: numpy.typing.NDArray[numpy.float64], wanted: numpy.typing.NDArray[numpy.int64], estimates: numpy.typing.NDArray[numpy.float64], alpha: float, effort: int, ends: numpy.typing.NDArray[numpy.float64]) -> int:
    """
    Write lower bound and reached least entropy of problems that solve_counts left to a search; return the boxes examined.
    """

def bound_counts(table: numpy.typing.NDArray[numpy.float64], start: numpy.typing.NDArray[numpy.int64], columns: numpy.typing.NDArray[numpy.int32], counts: numpy.typing.NDArray[numpy.float64], wanted: numpy.typing.NDArray[numpy.int64], estimates: numpy.typing.NDArray[numpy.float64], alpha: float, bounds: numpy.typing.NDArray[numpy.float64]) -> None:
    """
    Write proven lower and upper bounds (m, 2 l) of the class probabilities over the likelihood cuts of problems.
    """

def rescale_rows(P: numpy.typing.NDArray[numpy.float64], theta: numpy.typing.NDArray[numpy.float64]) -> numpy.typing.NDArray[numpy.float64]:
    """Return the rows divided by p . theta."""

def take_problem(table: numpy.typing.NDArray[numpy.float64], start: numpy.typing.NDArray[numpy.int64], columns: numpy.typing.NDArray[numpy.int32], counts: numpy.typing.NDArray[numpy.float64], problem: int) -> tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]]:
    """Return the contours of one problem (n, l) and their counts (n,)."""

def quadratic_start(P: numpy.typing.NDArray[numpy.float64], w: numpy.typing.NDArray[numpy.float64], c: float, theta: numpy.typing.NDArray[numpy.float64], j: int, sign: float, y: numpy.typing.NDArray[numpy.float64]) -> float:
    """
    Write into y where sign theta_j is least in the quadratic model of a cut; return the multiplier, 0 if there is none.
    """

def newton(P: numpy.typing.NDArray[numpy.float64], w: numpy.typing.NDArray[numpy.float64], c: float, j: int, sign: float, y: numpy.typing.NDArray[numpy.float64], mu: float) -> float:
    """
    Return a proven lower bound of sign theta_j over a cut, from a start with its multiplier, or minus infinity.
    """

def least_at_vertex(P: numpy.typing.NDArray[numpy.float64], w: numpy.typing.NDArray[numpy.float64], c: float, a: int, j: int, sign: float, g: numpy.typing.NDArray[numpy.float64]) -> float:
    """
    Return a proven lower bound of sign theta_j over a cut whose maximiser is the vertex of class a, or minus infinity.
    """

def least_of_class(P: numpy.typing.NDArray[numpy.float64], w: numpy.typing.NDArray[numpy.float64], c: float, theta: numpy.typing.NDArray[numpy.float64], j: int, sign: float, y: numpy.typing.NDArray[numpy.float64]) -> float:
    """Return a proven lower bound of sign theta_j over a cut."""

def highest_without(P: numpy.typing.NDArray[numpy.float64], w: numpy.typing.NDArray[numpy.float64], theta: numpy.typing.NDArray[numpy.float64], worst: float, tops: numpy.typing.NDArray[numpy.float64]) -> None:
    """
    Write upper bounds of the greatest log-likelihood without one row of each contour; infinity if unknown.
    """

def known_ends(P: numpy.typing.NDArray[numpy.float64], w: numpy.typing.NDArray[numpy.float64], c: float, theta: numpy.typing.NDArray[numpy.float64], tops: numpy.typing.NDArray[numpy.float64], low: numpy.typing.NDArray[numpy.float64], high: numpy.typing.NDArray[numpy.float64]) -> None:
    """
    Write those ends of the entropy without one row of each contour that are known without search.
    """

def move_into_cut(P: numpy.typing.NDArray[numpy.float64], w: numpy.typing.NDArray[numpy.float64], c: float, x: numpy.typing.NDArray[numpy.float64], mu: float, tops: numpy.typing.NDArray[numpy.float64], highest: bool, ends: numpy.typing.NDArray[numpy.float64]) -> None:
    """
    Move a stationary point into the cut without one row of each contour; keep the greatest or least entropy reached.
    """

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
