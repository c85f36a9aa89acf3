"""The figures: accuracy against the varied level, one panel per data set, drawn from the measurements alone."""

import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from PIL import Image

from quercus.experiments.results import Measurement
from quercus.experiments.summary import Curves, curves, in_order, measured_sweeps, method_title

X_LABELS: Mapping[str, str] = MappingProxyType(
    {
        "V": "V, share of vacuous labels",
        "I": "I, imprecision",
        "N": "N, share of labels drawn anew",
        "U": "U, uncertainty",
        "queries": "answers",
        "examples": "examples",
        "given": "labels as they came",
    }
)
# Okabe and Ito's colours, told apart by people who see few of them; past these, other dashes
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#888888")
MARKERS = "osD^vP*X"
DASHES = ("-", "--", ":", "-.")
PANELS_PER_ROW = 3
PANEL_INCHES = (3.6, 2.9)
STYLE: dict[Any, Any] = {
    "savefig.dpi": 150,
    "font.size": 9,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "font.family": "sans-serif",
}


def draw_all(rows: Sequence[Measurement], folder: Path) -> list[Path]:
    """Draw a figure a sweep into `folder`, and return the files: curves, or dots where there is one level."""
    paths = []
    for sweep in measured_sweeps(rows):
        paths.append(folder / f"{sweep}.png")
        drawn = io.BytesIO()
        with mpl.rc_context(STYLE):
            draw_sweep(rows, sweep).savefig(drawn, format="png")
        # 256 colours: a third of the size, and lines need no more
        Image.open(drawn).convert("RGB").quantize().save(paths[-1], format="png", optimize=True)
    return paths


def draw_sweep(rows: Sequence[Measurement], sweep: str) -> Figure:
    """Draw the figure of one sweep."""
    found = curves(rows, sweep)
    levels = {point.level for methods in found.values() for points in methods.values() for point in points}
    with mpl.rc_context(STYLE):
        return _draw_lines(found, sweep) if len(levels) > 1 else _draw_dots(found, sweep, levels.pop())


def _methods_in_order(found: Curves) -> list[str]:
    return in_order({method for methods in found.values() for method in methods})


def _draw_lines(found: Curves, sweep: str) -> Figure:
    methods = _methods_in_order(found)
    looks: dict[str, dict[str, Any]] = {
        method: {
            "color": COLOURS[i % len(COLOURS)],
            "marker": MARKERS[i % len(MARKERS)],
            "linestyle": DASHES[i // len(COLOURS) % len(DASHES)],
        }
        for i, method in enumerate(methods)
    }
    names = sorted(found)
    across = min(PANELS_PER_ROW, len(names))
    down = math.ceil(len(names) / across)
    legend_columns = max(1, min(len(methods), across + (across == 1)))
    legend_inches = 0.22 * math.ceil(len(methods) / legend_columns) + 0.15
    height = PANEL_INCHES[1] * down + legend_inches
    figure = Figure(figsize=(PANEL_INCHES[0] * max(across, 1.4), height), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(down, across, squeeze=False).ravel()
    for panel, name in zip(panels, names, strict=False):
        for method in methods:
            if (points := found[name].get(method)) is None:
                continue
            x, mean = [p.level for p in points], [p.mean for p in points]
            panel.plot(x, mean, markersize=3.5, linewidth=1.3, **looks[method])
            if not all(math.isnan(p.error) for p in points):
                low, high = [p.mean - p.error for p in points], [p.mean + p.error for p in points]
                panel.fill_between(x, low, high, color=looks[method]["color"], alpha=0.12, linewidth=0)
        panel.set_title(name.replace("_", " "))
        panel.set_xlabel(X_LABELS.get(sweep, sweep))
    for panel in panels[len(names) :]:
        panel.set_axis_off()
    for panel in panels[::across]:
        panel.set_ylabel("accuracy")
    handles = [Line2D([], [], markersize=3.5, linewidth=1.3, **looks[method]) for method in methods]
    figure.legend(
        handles,
        [method_title(method) for method in methods],
        loc="outside lower center",
        ncols=legend_columns,
        frameon=False,
    )
    return figure


def _draw_dots(found: Curves, sweep: str, level: float) -> Figure:
    methods = _methods_in_order(found)[::-1]
    names = sorted(found)
    size = (2.6 + 2.4 * len(names), 0.8 + 0.24 * len(methods))
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(names), squeeze=False, sharey=True).ravel()
    for panel, name in zip(panels, names, strict=True):
        for place, method in enumerate(methods):
            for point in found[name].get(method, ()):
                error = None if math.isnan(point.error) else point.error
                panel.errorbar(
                    point.mean, place, xerr=error, fmt="o", markersize=4, color=COLOURS[0], elinewidth=1
                )
        panel.set_title(name.replace("_", " "))
        panel.set_xlabel("accuracy")
    panels[0].set_ylim(-0.5, len(methods) - 0.5)  # a margin of .05 would cut the dots of two methods
    panels[0].set_yticks(range(len(methods)), [method_title(method) for method in methods])
    what = "labels as they came" if sweep == "given" else f"{sweep} = {level:g}"
    figure.suptitle(what, fontsize=9)
    return figure
