"""Pictures: trees, intervals, cuts, masses, curves. Each function draws into Matplotlib axes and returns them.

One style file, ``quercus.mplstyle``, holds fonts, colours and grids. A function creates a new figure unless it is given
axes. Save one with ``ax.figure.savefig("curve.svg")``. Matplotlib is imported when something is drawn; to install it:
``pip install 'quercus[plots]'``.
"""

from quercus.view.plots.beliefs import belief_intervals, mass_function
from quercus.view.plots.curves import accuracy_over_time, learning_curve
from quercus.view.plots.cuts import alpha_cut
from quercus.view.plots.intervals import gain_ratio_intervals
from quercus.view.plots.trees import tree

__all__ = [
    "accuracy_over_time",
    "alpha_cut",
    "belief_intervals",
    "gain_ratio_intervals",
    "learning_curve",
    "mass_function",
    "tree",
]
