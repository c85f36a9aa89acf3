"""The cost of growth by rows: the default forest, and the tree, grown as the service's grower grows them.

Rows of covertype, all labelled, arrive 1,000 at a time; trees are grown and made ready to be served after each 10,000.
CPU seconds. An exponent of 1 means that a row costs the same in a long log as in a short one.
"""

from functools import partial

import numpy as np
from _data import real_sets
from _measure import cpu
from _models import FOREST, TREE, engine_of, rows_of
from _report import Row, options, reporting

from quercus.experiments.datasets import DataSet

SIZES = (10_000, 20_000, 50_000, 100_000)
CHUNK, LOOK = 1_000, 10_000
LINEAR = 1.05  # an exponent up to this counts as linear: the excess is noise of the fit


def grow(data: DataSet, learner: str, rows: int) -> None:
    engine = engine_of(data, learner)
    for start in range(0, rows, CHUNK):
        engine.fold_events([rows_of(data, start, start + CHUNK)])
        if (start + CHUNK) % LOOK == 0:
            engine.grown_trees({})


def exponent(seconds: list[float], sizes: tuple[int, ...]) -> float:
    """Return the slope of log cost over log size."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def main() -> None:
    quick = options().quick
    sizes = SIZES[:2] if quick else SIZES
    with reporting("How the cost grows", (), quick=quick) as report:
        for data in real_sets(report, ["covertype_100k"]):
            cost = {name: [cpu(partial(grow, data, name, n)) for n in sizes] for name in (FOREST, TREE)}
            slopes = {name: exponent(seconds, sizes) for name, seconds in cost.items()}
            forest, tree = (
                f"{seconds[0]:.1f} s for {sizes[0]:,}, {seconds[-1]:.1f} s for {sizes[-1]:,}"
                for seconds in cost.values()
            )
            report.add(
                Row(
                    f"growth of {data.name} with a look every {LOOK:,} rows, CPU by rows",
                    f"{forest}; tree {tree}",
                    "",
                    f"exponent {slopes[FOREST]:.2f}; tree {slopes[TREE]:.2f}",
                    "no worse than linear",
                    max(slopes.values()) <= LINEAR,
                )
            )


if __name__ == "__main__":
    main()
