"""Pictures: trees, intervals, cuts, masses, curves. Each function draws into Matplotlib axes and returns them.

One style file, ``quercus.mplstyle``, holds fonts, colours and grids. A function makes a new figure unless it is
given axes. Save one with ``ax.figure.savefig("curve.svg")``.
"""

if __name__ != "quercus.plot":  # by another name every class would exist twice
    raise ImportError(f"import quercus.plot, not {__name__}")

from quercus.plot.beliefs import belief_intervals, mass_function
from quercus.plot.curves import accuracy_over_time, learning_curve
from quercus.plot.cuts import alpha_cut
from quercus.plot.intervals import gain_ratio_intervals
from quercus.plot.trees import tree

__all__ = [
    "accuracy_over_time",
    "alpha_cut",
    "belief_intervals",
    "gain_ratio_intervals",
    "learning_curve",
    "mass_function",
    "tree",
]
