"""The forest of many memories."""

from typing import overload

import numpy
import numpy.typing


ATTEMPTS: int = 64

COLUMN_ROUNDING: float = 8.881784197001252e-16

DENSITY_STEPS: int = 100

DISTANCE_UNIT: int = 840

EPSILON: float = 0.001

FARTHEST: float = 1e+300

FLOOR_SHARE: float = 0.01

FREE_SHARE: float = 0.2

LARGEST_NUMBER: float = 1e+100

LITTLE: float = 1e-06

LOG_SQRT_2PI: float = 0.9189385332046727

TINY: float = 2.2250738585072014e-308

def derived_key(key: int, number: int) -> int:
    """Return the key that a key and a number determine."""

def number_between(key: int, low: int, high: int) -> int:
    """Return the number in [low, high) that a key determines."""

def member_key(seed: int, member: int) -> int:
    """Return the key of a member's root."""

def names_key(key: int, test: int) -> int:
    """
    Return the key that decides which names go left by a test, given the node's key.
    """

def goes_left(code: int, named: bool, test: int, key: int) -> bool:
    """Return whether a code goes left by a test."""

def estimate_node(runs: int, kind: numpy.typing.NDArray[numpy.int32], count: numpy.typing.NDArray[numpy.int64], contours: numpy.typing.NDArray[numpy.float64], sole: numpy.typing.NDArray[numpy.int32], theta: numpy.typing.NDArray[numpy.float64], share: numpy.typing.NDArray[numpy.float64]) -> bool:
    """
    Write the estimate of a node, and the shares of the classes in each run unless all labels are precise.
    """

def grow(codes: numpy.typing.NDArray[numpy.uint16], named: numpy.typing.NDArray[numpy.bool_], varying: numpy.typing.NDArray[numpy.int64], kinds: numpy.typing.NDArray[numpy.int32], labels: numpy.typing.NDArray[numpy.int16], contours: numpy.typing.NDArray[numpy.float64], sole: numpy.typing.NDArray[numpy.int32], rank: numpy.typing.NDArray[numpy.int64], keys: numpy.typing.NDArray[numpy.uint64], nodes: numpy.typing.NDArray[numpy.int32], rows: numpy.typing.NDArray[numpy.int32], opinions: numpy.typing.NDArray[numpy.float64], counts: numpy.typing.NDArray[numpy.int64], come: numpy.typing.NDArray[numpy.int32], go: numpy.typing.NDArray[numpy.int32], gone: numpy.typing.NDArray[numpy.bool_]) -> tuple[numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.int64]]:
    """
    Grow the trees of a memory from their earlier state; return nodes, rows, opinions (opinions, 3 l), counts.
    """

def add_opinions(codes: numpy.typing.NDArray[numpy.uint16], named: numpy.typing.NDArray[numpy.bool_], keys: numpy.typing.NDArray[numpy.uint64], nodes: numpy.typing.NDArray[numpy.int32], opinions: numpy.typing.NDArray[numpy.float64], counts: numpy.typing.NDArray[numpy.int64], weights: numpy.typing.NDArray[numpy.float64], level: float, predicted: numpy.typing.NDArray[numpy.float64]) -> None:
    """
    Add the trees' predictions of rows to `predicted`: (m, 3 l), (m, l), or one tree after another (trees m, l).
    """

def overlaps(nodes: numpy.typing.NDArray[numpy.int32], opinions: numpy.typing.NDArray[numpy.float64], counts: numpy.typing.NDArray[numpy.int64]) -> numpy.typing.NDArray[numpy.float64]:
    """Return the overlap of each leaf of trees in bits, (nodes,)."""

def add_of_leaves(codes: numpy.typing.NDArray[numpy.uint16], named: numpy.typing.NDArray[numpy.bool_], keys: numpy.typing.NDArray[numpy.uint64], nodes: numpy.typing.NDArray[numpy.int32], counts: numpy.typing.NDArray[numpy.int64], weights: numpy.typing.NDArray[numpy.float64], of_nodes: numpy.typing.NDArray[numpy.float64], sums: numpy.typing.NDArray[numpy.float64]) -> None:
    """
    Add the weighted values of the leaves in which rows end, `of_nodes` (nodes,), to `sums` (m,).
    """

def add_densities(values: numpy.typing.NDArray[numpy.float64], means: numpy.typing.NDArray[numpy.float64], deviations: numpy.typing.NDArray[numpy.float64], logs: numpy.typing.NDArray[numpy.float64]) -> None:
    """
    Add the log densities of rows, without missing values, to `logs` (m, l).
    """

def fit_densities(values: numpy.typing.NDArray[numpy.float64], rows: numpy.typing.NDArray[numpy.int64], columns: numpy.typing.NDArray[numpy.int64], klass: numpy.typing.NDArray[numpy.int32], contours: numpy.typing.NDArray[numpy.float64], free: float) -> tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]]:
    """
    Return means and deviations (k, l) of numeric attributes in each class.
    """

def fit_mixture(x: numpy.typing.NDArray[numpy.float64], w: numpy.typing.NDArray[numpy.float64], centre: numpy.typing.NDArray[numpy.float64], floor: numpy.typing.NDArray[numpy.float64], log_pl: numpy.typing.NDArray[numpy.float64], plain: numpy.typing.NDArray[numpy.float64], beyond: numpy.typing.NDArray[numpy.float64], epsilon: float, max_steps: int) -> tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.int64]]:
    """
    Return proportions, means and deviations (K, l), log-likelihoods (K,) and steps made (K,) of mixtures.
    """

def codes_of(values: numpy.typing.NDArray[numpy.float64], named: numpy.typing.NDArray[numpy.bool_], cuts: numpy.typing.NDArray[numpy.float64], cut_counts: numpy.typing.NDArray[numpy.int64]) -> numpy.typing.NDArray[numpy.uint16]:
    """Return the codes (m, K) of values (m, K), NaN where missing."""

def name_masks(nodes: numpy.typing.NDArray[numpy.int32], roots: numpy.typing.NDArray[numpy.int64], keys: numpy.typing.NDArray[numpy.uint64]) -> numpy.typing.NDArray[numpy.uint64]:
    """
    Return for each node the key that decides which names go left (nodes,).
    """

def check_served_trees(nodes: numpy.typing.NDArray[numpy.int32], node_counts: numpy.typing.NDArray[numpy.int64], opinion_counts: numpy.typing.NDArray[numpy.int64], opinions: int, K: int, l: int) -> None:
    """
    Raise `ValueError` unless every path of each tree ends in a leaf with an opinion.
    """

def bayes_estimates(named: numpy.typing.NDArray[numpy.bool_], priors: numpy.typing.NDArray[numpy.float64], log_priors: numpy.typing.NDArray[numpy.float64], means: numpy.typing.NDArray[numpy.float64], deviations: numpy.typing.NDArray[numpy.float64], log_deviations: numpy.typing.NDArray[numpy.float64], frequencies: numpy.typing.NDArray[numpy.float64], name_counts: numpy.typing.NDArray[numpy.int64], values: numpy.typing.NDArray[numpy.float64]) -> numpy.typing.NDArray[numpy.float64]:
    """Return the probabilities (B m, l) of rows by each naive-Bayes member."""

def served_predictions(named: numpy.typing.NDArray[numpy.bool_], nodes: numpy.typing.NDArray[numpy.int32], roots: numpy.typing.NDArray[numpy.int64], masks: numpy.typing.NDArray[numpy.uint64], opinions: numpy.typing.NDArray[numpy.float64], first_opinions: numpy.typing.NDArray[numpy.int64], weights: numpy.typing.NDArray[numpy.float64], doubts: numpy.typing.NDArray[numpy.float64], priors: numpy.typing.NDArray[numpy.float64], log_priors: numpy.typing.NDArray[numpy.float64], means: numpy.typing.NDArray[numpy.float64], deviations: numpy.typing.NDArray[numpy.float64], log_deviations: numpy.typing.NDArray[numpy.float64], frequencies: numpy.typing.NDArray[numpy.float64], name_counts: numpy.typing.NDArray[numpy.int64], depths: numpy.typing.NDArray[numpy.float64], shares: numpy.typing.NDArray[numpy.float64], cuts: numpy.typing.NDArray[numpy.float64], cut_counts: numpy.typing.NDArray[numpy.int64], values: numpy.typing.NDArray[numpy.float64], reliable: float, tie: float) -> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]]:
    """
    Return classes (m,), probabilities, beliefs and plausibilities (m, l) of rows by a served forest.
    """

def served_prediction(named: numpy.typing.NDArray[numpy.bool_], nodes: numpy.typing.NDArray[numpy.int32], roots: numpy.typing.NDArray[numpy.int64], masks: numpy.typing.NDArray[numpy.uint64], opinions: numpy.typing.NDArray[numpy.float64], first_opinions: numpy.typing.NDArray[numpy.int64], weights: numpy.typing.NDArray[numpy.float64], doubts: numpy.typing.NDArray[numpy.float64], priors: numpy.typing.NDArray[numpy.float64], log_priors: numpy.typing.NDArray[numpy.float64], means: numpy.typing.NDArray[numpy.float64], deviations: numpy.typing.NDArray[numpy.float64], log_deviations: numpy.typing.NDArray[numpy.float64], frequencies: numpy.typing.NDArray[numpy.float64], name_counts: numpy.typing.NDArray[numpy.int64], depths: numpy.typing.NDArray[numpy.float64], shares: numpy.typing.NDArray[numpy.float64], cuts: numpy.typing.NDArray[numpy.float64], cut_counts: numpy.typing.NDArray[numpy.int64], row: list[float], reliable: float, tie: float) -> tuple[int, list[float], list[float], list[float]]:
    """
    Return class, probabilities, beliefs and plausibilities of one row, as lists, faster than arrays of one row.
    """

def distances(rows: numpy.typing.NDArray[numpy.int16], others: numpy.typing.NDArray[numpy.int16], ordered: numpy.typing.NDArray[numpy.int64]) -> numpy.typing.NDArray[numpy.int64]:
    """Return the distances (n, m) of rows (n, K) from others (m, K)."""

def nearest_distances(rows: numpy.typing.NDArray[numpy.int16], others: numpy.typing.NDArray[numpy.int16], ordered: numpy.typing.NDArray[numpy.int64]) -> numpy.typing.NDArray[numpy.int64]:
    """Return the distance (n,) of each row from the nearest of `others`."""

@overload
def covering_gains(far: numpy.typing.NDArray[numpy.uint16], near: numpy.typing.NDArray[numpy.int64]) -> numpy.typing.NDArray[numpy.int64]: ...

@overload
def covering_gains(far: numpy.typing.NDArray[numpy.int32], near: numpy.typing.NDArray[numpy.int64]) -> numpy.typing.NDArray[numpy.int64]: ...

@overload
def covering_gains(far: numpy.typing.NDArray[numpy.int64], near: numpy.typing.NDArray[numpy.int64]) -> numpy.typing.NDArray[numpy.int64]:
    """
    Return how far each candidate would reduce the distances of rows from the nearest known row (n,).
    """

@overload
def best_candidate(far: numpy.typing.NDArray[numpy.uint16], near: numpy.typing.NDArray[numpy.int64], gains: numpy.typing.NDArray[numpy.int64], lines: numpy.typing.NDArray[numpy.int64], worths: numpy.typing.NDArray[numpy.float64], counted: numpy.typing.NDArray[numpy.bool_], cover: float, tie: float) -> tuple[int, int, numpy.typing.NDArray[numpy.float64]]: ...

@overload
def best_candidate(far: numpy.typing.NDArray[numpy.int32], near: numpy.typing.NDArray[numpy.int64], gains: numpy.typing.NDArray[numpy.int64], lines: numpy.typing.NDArray[numpy.int64], worths: numpy.typing.NDArray[numpy.float64], counted: numpy.typing.NDArray[numpy.bool_], cover: float, tie: float) -> tuple[int, int, numpy.typing.NDArray[numpy.float64]]: ...

@overload
def best_candidate(far: numpy.typing.NDArray[numpy.int64], near: numpy.typing.NDArray[numpy.int64], gains: numpy.typing.NDArray[numpy.int64], lines: numpy.typing.NDArray[numpy.int64], worths: numpy.typing.NDArray[numpy.float64], counted: numpy.typing.NDArray[numpy.bool_], cover: float, tie: float) -> tuple[int, int, numpy.typing.NDArray[numpy.float64]]:
    """
    Return the candidate with the greatest score, the number of counted rows that are nearer to it than to any known row, and all scores (n,).
    """

@overload
def take_candidate(far: numpy.typing.NDArray[numpy.uint16], near: numpy.typing.NDArray[numpy.int64], gains: numpy.typing.NDArray[numpy.int64], candidate: int) -> None: ...

@overload
def take_candidate(far: numpy.typing.NDArray[numpy.int32], near: numpy.typing.NDArray[numpy.int64], gains: numpy.typing.NDArray[numpy.int64], candidate: int) -> None: ...

@overload
def take_candidate(far: numpy.typing.NDArray[numpy.int64], near: numpy.typing.NDArray[numpy.int64], gains: numpy.typing.NDArray[numpy.int64], candidate: int) -> None:
    """Update `near` (m,) and `gains` (n,) for a candidate that is queried."""

def estimate_shares(rows: numpy.typing.NDArray[numpy.int64], weights: numpy.typing.NDArray[numpy.float64], labels: numpy.typing.NDArray[numpy.float64], share: numpy.typing.NDArray[numpy.float64]) -> numpy.typing.NDArray[numpy.float64]:
    """
    Return the class probabilities of rows by E2M (l,), and write each row's shares (n, l).
    """

def grow_member(codes: numpy.typing.NDArray[numpy.int16], labels: numpy.typing.NDArray[numpy.float64], weights: numpy.typing.NDArray[numpy.float64], ordered: numpy.typing.NDArray[numpy.int64], arities: numpy.typing.NDArray[numpy.int64], tries: int, seed: int) -> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64]]:
    """
    Grow one tree of a committee; return attribute, code, first child and estimate of each node.
    """

def mean_probabilities(codes: numpy.typing.NDArray[numpy.int16], labels: numpy.typing.NDArray[numpy.float64], weights: numpy.typing.NDArray[numpy.float64], ordered: numpy.typing.NDArray[numpy.int64], arities: numpy.typing.NDArray[numpy.int64], tries: int, pool: numpy.typing.NDArray[numpy.int16], known: numpy.typing.NDArray[numpy.float64]) -> numpy.typing.NDArray[numpy.float64]:
    """Return the members' mean estimate of the class of each row of a pool."""
