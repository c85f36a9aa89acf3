"""Table T (theory §3.7; table 1 of Ma, Destercke, Wang 2016)."""

import numpy as np

CLASSES = ("o", "s", "x")
VALUES = (("a", "b", "c"), ("d", "e"))
X, Y = 0, 1

_TEXT = """
a e .8 .3 .3 x | a e .2 1 .7 s | a e .1 .1 1 x | a e .3 0 1 x | b e .7 1 .7 s | b e .5 1 0 s | b e .7 1 .3 s
b e 1 1 1 s    | c e 0 1 0 s   | c e 0 1 0 s   | c e 0 1 0 s  | c e .4 1 0 s  | a d .2 .2 1 x | a d 0 0 1 x
a d .3 0 1 x   | a d 0 0 1 x   | b d .6 .6 1 x | c d 1 0 0 o  | c d 1 .2 0 o  | c d .5 .8 .4 s | c d .7 .3 0 o
"""
_ROWS = [row.split() for row in _TEXT.replace("\n", "|").split("|") if row.strip()]

CODES = np.array([[VALUES[k].index(row[k]) for k in (X, Y)] for row in _ROWS])
CONTOURS = np.array([[float(number) for number in row[2:5]] for row in _ROWS])
TRUTH = np.array([CLASSES.index(row[5]) for row in _ROWS])
ARITIES = (3, 2)


def oracle(instance: int) -> np.ndarray:
    return np.eye(3)[TRUTH[instance]]


def numbers(queries: object) -> list[int]:
    """The paper counts rows from 1."""
    return [query.instance + 1 for query in queries]
