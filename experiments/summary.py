"""Curves and tables of measurements."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from quercus.experiments.learners import LEARNERS
from quercus.experiments.results import Measurement
from quercus.experiments.strategies import STRATEGIES


def standard_error(values: Sequence[float]) -> float:
    """Return the standard error of the mean of independent values; NaN of a single value.

    Examples
    --------
    >>> standard_error([1.0, 2.0, 3.0, 4.0, 5.0])
    0.7071067811865476
    """
    count = len(values)
    return math.nan if count < 2 else float(np.std(values, ddof=1)) / math.sqrt(count)


@dataclass(frozen=True)
class MeanScore:
    """The mean of a measure over the folds of all repeats, and its standard error over repeats.

    Parameters
    ----------
    level
        Level of the sweep.
    mean
        Mean over all folds; of seconds, the median.
    error
        Standard error of the mean, with the repeats as units: the folds of a repeat share its corrupted labels, so they
        are not independent. NaN of one repeat, and of a median.
    repeats
        Number of repeats.
    """

    level: float
    mean: float
    error: float
    repeats: int


Curves = dict[str, dict[str, list[MeanScore]]]
"""Points by data set and method, in increasing order of level."""


def curves(rows: Iterable[Measurement], sweep: str, measure: str = "accuracy") -> Curves:
    """Return the curves of a sweep; seconds are medians, for the first cell of a process also compiles."""
    groups: dict[tuple[str, str, float], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        key = row.key
        if key.sweep == sweep:
            groups[key.data, key.method, key.level][key.repeat].append(float(getattr(row, measure)))
    found: Curves = defaultdict(lambda: defaultdict(list))
    for (data, method, level), repeats in sorted(groups.items()):
        values = [value for folds in repeats.values() for value in folds]
        if measure == "fit_s":
            middle, error = float(np.median(values)), math.nan
        else:
            middle = float(np.mean(values))
            error = standard_error([float(np.mean(folds)) for folds in repeats.values()])
        found[data][method].append(MeanScore(level, middle, error, len(repeats)))
    return {data: dict(methods) for data, methods in found.items()}


def measured_sweeps(rows: Iterable[Measurement]) -> list[str]:
    """Return the sweeps that there are measurements of."""
    return sorted({row.key.sweep for row in rows})


def in_order(methods: Iterable[str]) -> list[str]:
    """Return methods in the order of the registries, those of neither last."""
    known = [*LEARNERS, *STRATEGIES]
    return sorted(methods, key=lambda m: (known.index(m) if m in known else len(known), m))


def method_title(method: str) -> str:
    """Return the name of a method in plots and tables."""
    known: Mapping[str, object] = {**LEARNERS, **STRATEGIES}
    return str(getattr(known.get(method), "title", method))


def markdown_table(rows: Sequence[Measurement], sweep: str, level: float) -> str:
    """Return a table of a level: a line per method, a column per data set, and their costs.

    Cells are mean accuracy ± standard error over repeats, in percent, without the error where there is one repeat; the
    best of each column is bold.
    """
    at_level = [row for row in rows if row.key.sweep == sweep and row.key.level == level]
    accuracy = curves(at_level, sweep)
    names = sorted(accuracy)
    methods = in_order({method for found in accuracy.values() for method in found})
    others = {measure: curves(at_level, sweep, measure) for measure in ("u65", "u80", "nodes", "fit_s")}
    lines = [
        "| learner | " + " | ".join(names) + " | u65 | u80 | nodes | fit, ms |",
        "|---|" + "---:|" * (len(names) + 4),
    ]
    best = {name: max(points[0].mean for points in accuracy[name].values()) for name in names}

    def accuracy_text(points: list[MeanScore] | None, best: float) -> str:
        if points is None:
            return "–"
        text = f"{100 * points[0].mean:.1f}"
        error = "" if math.isnan(points[0].error) else f" ± {100 * points[0].error:.1f}"
        return f"**{text}**{error}" if points[0].mean >= best - 5e-4 else text + error

    for method in methods:
        cells = [accuracy_text(accuracy[name].get(method), best[name]) for name in names]
        for measure, found in others.items():
            mean = float(np.mean([found[name][method][0].mean for name in names if method in found[name]]))
            match measure:
                case "fit_s":
                    cells.append(f"{1000 * mean:.0f}" if mean >= 0.01 else f"{1000 * mean:.1f}")
                case "nodes":
                    cells.append(f"{mean:.0f}")
                case _:
                    cells.append(f"{100 * mean:.1f}")
        lines.append(f"| {method_title(method)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
