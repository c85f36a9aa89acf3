"""The certified solver behind `quercus.trees.likelihood.maximiser` and `quercus.trees.likelihood.interval` (theory §2).

Its kernels are C++ (`kernels/likelihood/`). A problem passes `quercus.trees.likelihood.interval` → `stages` →
`problem.hpp` → precise labels (`precise.hpp`), the polygon of three classes (`polygon.hpp`) or one box (`first_bound`)
→ `search.hpp`. `cells.hpp` solves cells of precise labels where they are stored; `sparse.hpp` merges the others.

In order of dependence: `loglik.hpp` (likelihood and its maximiser), `cut.hpp` (convex programs over a likelihood cut),
`rounding_bounds.hpp` (what rounding hides), `enclosure.hpp` (boxes that hold a cut), `descent.hpp` (local minima of the
entropy), `curvature.hpp`, `quadratic.hpp` and `boxes.hpp` (lower bounds in a box), `search.hpp` (global minimum),
`roots.hpp`, `vertex.hpp` and `precise.hpp` (precise labels, any number of classes), `separable.hpp` (the maximiser of
labels that name one class or rule one out), `reduction.hpp` (smaller problems with the same solutions), `problem.hpp`
(whole problems), `class_extent.hpp` (one class), `class_bounds.hpp` (bounds of the class probabilities),
`leave_one_out.hpp` (cuts without one row). In Python: `maximisers` (the cut at level 1 when maximisers are many) and
`leave_one_out_width` (points of cuts without one row).
"""
