"""The report of the demo: how accuracy grew with answers, beside labels spent at random; printed, and as files."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from quercus.cli.demo.data import HOLDOUT, read_rows, write_table
from quercus.cli.demo.parts import ClassifierState
from quercus.cli.demo.play import MODEL, STORE, STREAM_CHANGE, STREAM_ROWS, Outcome
from quercus.client.values import Floats
from quercus.view.models import accuracy_line
from quercus.view.plots.curves import learning_curve
from quercus.view.plots.style import INK, STYLE
from quercus.view.words import counted

TREE_TEXT, TREE_SVG, CURVE_PNG, CURVE_CSV = "tree.txt", "tree.svg", "learning_curve.png", "learning_curve.csv"
TOLERANCE = 0.02
"""Accuracies that differ by less are called about the same."""
ROWS_SHOWN = 8
TIE = 1e-9


@dataclass(frozen=True, eq=False)
class Curves:
    """The curves that are compared.

    Attributes
    ----------
    answers : (p,) numbers of answers at which the live forest was measured, increasing.
    asked : (p,) held-out accuracy of the live forest then.
    random : (repeats, rows + 1) held-out accuracy after 0, 1, ... labels spent at random, up to all rows.
    chance : share of the most frequent class in the held-out rows.
    """

    answers: tuple[int, ...]
    asked: tuple[float, ...]
    random: Floats
    chance: float

    @classmethod
    def of(
        cls, readings: Sequence[ClassifierState], random: Sequence[Sequence[float]], chance: float
    ) -> Curves:
        """Keep the newest forest at each number of answers."""
        newest = {reading.answers: reading.accuracy for reading in readings}
        answers = tuple(sorted(newest))
        return cls(answers, tuple(newest[k] for k in answers), np.array(random), chance)

    @cached_property
    def mean(self) -> Floats:
        """Mean of the random orders (rows + 1,)."""
        return np.asarray(self.random.mean(axis=0))

    @cached_property
    def low(self) -> Floats:
        """Worst of the random orders (rows + 1,)."""
        return np.asarray(self.random.min(axis=0))

    @cached_property
    def high(self) -> Floats:
        """Best of the random orders (rows + 1,)."""
        return np.asarray(self.random.max(axis=0))


def curve_table(curves: Curves) -> Table:
    """Return some of the numbers, the first and the last among them."""
    drawn = Table("answers", "asked", "random: mean", "range", box=None, pad_edge=False)
    for column in drawn.columns:
        column.justify = "right"
    places = np.unique(np.linspace(0, len(curves.answers) - 1, ROWS_SHOWN).round().astype(int))
    for place in places:
        k = curves.answers[place]
        span = f"{curves.low[k]:.2f} to {curves.high[k]:.2f}"
        drawn.add_row(str(k), f"{curves.asked[place]:.3f}", f"{curves.mean[k]:.3f}", span)
    return drawn


def saving_text(curves: Curves) -> str:
    """Return, in words, the number of random labels that reach the accuracy of the queries on average and keep it.

    Examples
    --------
    >>> curves = Curves((0, 2), (0.3, 0.8), np.array([[0.3, 0.5, 0.6, 0.8, 0.9]]), 0.3)
    >>> saving_text(curves)
    '2 answers to queries gave 0.800; random labels need 3 answers for the same accuracy on this split.'
    """
    k, asked = curves.answers[-1], curves.asked[-1]
    below = np.flatnonzero(curves.mean < asked - TIE)
    needed = int(below[-1]) + 1 if below.size else 0
    words = f"{counted(k, 'answer')} to queries gave {asked:.3f}; random labels need "
    if needed >= len(curves.mean):
        return f"{words}more than all {len(curves.mean) - 1} rows for the same accuracy on this split."
    return f"{words}{counted(needed, 'answer')} for the same accuracy on this split."


def verdict_text(curves: Curves) -> str:
    """Return, in words, whether the queries or random labels were better."""
    k, asked = curves.answers[-1], curves.asked[-1]
    mean, low, high, repeats = curves.mean[k], curves.low[k], curves.high[k], len(curves.random)
    if asked > high:
        words = "better than every random order"
    elif asked < low:
        words = "worse than every random order"
    elif abs(asked - mean) <= TOLERANCE:
        words = "about the same as random"
    else:
        words = f"{'better' if asked > mean else 'worse'} than random on average, and within its range"
    on_the_way = np.mean(np.array(curves.asked) - curves.mean[list(curves.answers)])
    return (
        f"After {counted(k, 'answer')} the queries gave {asked:.3f}; {counted(k, 'label')} at random "
        f"give{'s' * (k == 1)} {mean:.3f} on average "
        f"({low:.3f} to {high:.3f}, {repeats} random orders): {words}. "
        f"Over the whole run the difference from the random mean was {on_the_way:+.3f} on average."
    )


def caution_text(other_splits: Sequence[tuple[float, float]], row: float) -> str:
    """Return, in words, the result on other splits beside this run.

    Parameters
    ----------
    other_splits : (asked, random) accuracies on other splits, at least one.
    row : weight of one held-out row.
    """
    asked, at_random = np.array(other_splits).T
    ahead, behind = int(np.sum(asked > at_random + TOLERANCE)), int(np.sum(asked < at_random - TOLERANCE))
    return (
        f"One run proves little: another split gives another result. On "
        f"{len(asked)} other splits the queries gave {asked.mean():.3f} on average ({asked.min():.3f} to "
        f"{asked.max():.3f}), labels at random {at_random.mean():.3f}; the queries were better on {ahead}, worse on "
        f"{behind}, about the same on {len(asked) - ahead - behind}. One held-out row is worth {row:.3f}."
    )


def write_csv(curves: Curves, path: Path) -> None:
    """Write all the numbers as CSV."""
    rows = [
        (k, asked, float(curves.mean[k]), float(curves.low[k]), float(curves.high[k]))
        for k, asked in zip(curves.answers, curves.asked, strict=True)
    ]
    write_table(path, ["answers", "asked", "random_mean", "random_lowest", "random_highest"], rows)


def draw_png(curves: Curves, path: Path, title: str) -> None:
    """Draw the curves as PNG."""
    with mpl.rc_context(fname=STYLE):
        figure = Figure(figsize=(8, 5), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        labels = np.arange(curves.random.shape[1])
        learning_curve(
            labels,
            curves.random,
            label=f"random rows: mean and range of {len(curves.random)} orders",
            band="range",
            ax=axes,
        )
        learning_curve(curves.answers, curves.asked, label="rows Quercus asked about", ax=axes)
        axes.axhline(curves.chance, color=INK, linestyle=":", linewidth=1)
        axes.annotate(
            "always the most frequent class", (labels[-1], curves.chance), xytext=(0, 4),
            textcoords="offset points", ha="right",
        )  # fmt: skip
        axes.set(ylabel="accuracy on held-out rows", ylim=(0, 1.02), title=title)
        figure.savefig(path, dpi=150)


def report(outcome: Outcome, folder: Path, console: Console) -> None:
    """Write the files and print their contents."""
    classes = Counter(read_rows(folder / HOLDOUT, "class")[0])
    curves = Curves.of(outcome.readings, outcome.random, max(classes.values()) / classes.total())
    (folder / TREE_TEXT).write_text(outcome.text.rstrip("\n") + "\n", encoding="utf-8")
    (folder / TREE_SVG).write_text(outcome.svg, encoding="utf-8")
    write_csv(curves, folder / CURVE_CSV)
    title = "Wine: labels from queries, and random labels"
    draw_png(curves, folder / CURVE_PNG, title)

    def print_text(text: str = "", prose: bool = False) -> None:
        console.print(text, markup=False, soft_wrap=not (prose and console.is_terminal))

    print_text()
    print_text("The tree that grows beside the forest, for people to read:")
    print_text()
    print_text(outcome.text.rstrip("\n"))
    print_text()
    console.print("Accuracy on held-out rows", style="bold")
    console.print(curve_table(curves))
    print_text()
    print_text(saving_text(curves), prose=True)
    print_text(verdict_text(curves), prose=True)
    print_text(caution_text(outcome.other_splits, 1 / classes.total()), prose=True)
    print_text()
    model, last = outcome.model, outcome.readings[-1]
    by = ", ".join(f"{name} {count}" for name, count in sorted(outcome.answered.items()))
    print_text(
        f"{model.instance_count} rows pushed, {model.queries_answered} answers ({by}), "
        f"{model.tree_version} trees grown; {last.requests} classification requests meanwhile, "
        f"median {last.median_ms:.0f} ms, slowest {last.slowest_ms:.0f} ms, none failed.",
        prose=True,
    )
    print_text()
    console.print("A stream that changes", style="bold")
    print_text(
        f"{STREAM_ROWS:,} rows come with their labels; after {STREAM_CHANGE:,} the classes change places. The service "
        "measures by itself how right it is (see quercus models show):",
        prose=True,
    )
    for name, accuracy in outcome.stream.items():
        print_text(f"  {name:15}{accuracy_line(accuracy)}")
    print_text()
    print_text(f"In {folder.resolve()}:")
    print_text(f"  {CURVE_PNG}  {CURVE_CSV}  {TREE_SVG}  {TREE_TEXT}  a log of each process")
    found = shutil.which("quercus")  # the name, if it finds this program; else its path
    is_found = found is not None and Path(found).samefile(sys.argv[0])
    program, store = shlex.quote("quercus" if is_found else sys.argv[0]), shlex.quote(str(folder / STORE))
    print_text(
        f"To look around: {program} serve --store {store}; then, in another terminal: {program} models show {MODEL}"
    )
