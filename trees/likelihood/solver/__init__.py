"""The certified solver behind `quercus.trees.likelihood.maximiser` and `quercus.trees.likelihood.interval` (theory §2).

The way of a problem: `quercus.trees.likelihood.interval` → `stages` → `problem.solve_problem` → `precise`, `separable`
or one box (`problem.first_bound`) → `search`. `cells` reads cells as they come.

In order of dependence: `libraries` and `compiled` (how kernels are compiled), `kernels` (likelihood and its
maximiser), `cut` (convex programs over a likelihood cut), `rounding_bounds` (what rounding hides), `enclosure` (boxes
that hold a cut), `descent` (local minima of the entropy), `curvature`, `quadratic` and `boxes` (lower bounds in a
box), `search` (global minimum), `roots`, `vertex` and `precise` (precise labels, any number of classes), `separable`,
`stationary`, `polygon` and `sets` (labels that say one class or rule one out), `reduction` (smaller problems with the
same solutions), `problem` (whole problems), `class_bounds` (bounds of the class probabilities), `class_extent` (one
class), `maximisers` (the cut at level 1 when maximisers are many), `leave_one_out` (cuts without one row),
`leave_one_out_width` (points of such cuts).
"""
