"""The protocols of the papers as seeded grids of cells, their results as CSV, their figures as plots (theory §8).

A cell is one learner on one fold of one data set; its seed is derived from its name, so a grid gives the
same results in whatever order, by however many processes, and in however many sittings it is worked through.
"""

if __name__ != "quercus.experiments":  # by another name every class would exist twice
    raise ImportError(f"import quercus.experiments, not {__name__}")
