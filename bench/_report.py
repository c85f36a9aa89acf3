"""The results of a measurement: rows of one common table, and plots.

A script prints its own table and keeps the rows in ``bench/results/<script>.json``, from which ``python bench`` writes
RESULTS.md; so one script can be run again without the others. Results of ``--quick`` go to ``bench/results/quick/``:
a quick run must not replace a measurement.
"""

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
RESULTS = HERE / "results"
DOTS_PER_INCH = 150


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Parameters
    ----------
    work
        What was measured, with its settings.
    quercus, peer
        The figures, with units; a peer with its name.
    ratio
        What outlives the machine; above 1 Quercus is the better one.
    target
        What the issue asks for, empty where it asks for nothing.
    reached
        Whether it is reached; None without a target, or where it was not measured.
    """

    work: str
    quercus: str
    peer: str = ""
    ratio: str = ""
    target: str = ""
    reached: bool | None = None


@dataclass
class Report:
    """The rows of one script, with what is needed to run it again and to judge its figures."""

    title: str
    script: str
    command: str
    quick: bool
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    plots: list[str] = field(default_factory=list)
    packages: list[str] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)

    def add(self, *rows: Row) -> None:
        """Add rows, and say at once what was found."""
        for row in rows:
            self.rows.append(row)
            figures = " · ".join(part for part in (row.quercus, row.peer, row.ratio) if part)
            print(f"  {row.work}: {figures}", flush=True)

    def note(self, text: str) -> None:
        self.notes.append(text)
        print(f"  {text}", flush=True)

    def plot(self, name: str, figure: Figure) -> None:
        """Write ``plots/<name>.png`` beside the table."""
        folder = table_folder(self.quick) / "plots"
        folder.mkdir(parents=True, exist_ok=True)
        figure.set_dpi(DOTS_PER_INCH)
        FigureCanvasAgg(figure).print_png(folder / f"{name}.png")
        self.plots.append(f"plots/{name}.png")


def table_folder(quick: bool) -> Path:
    """Return where RESULTS.md and its plots go."""
    return RESULTS / "quick" if quick else HERE


def kept_folder(quick: bool) -> Path:
    """Return where the scripts keep their rows."""
    return RESULTS / "quick" if quick else RESULTS


def options() -> argparse.Namespace:
    """Return what the command line says: ``quick``."""
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--quick", action="store_true", help="smaller work and fewer repeats: a look, not a measurement"
    )
    return parser.parse_args()


@contextmanager
def reporting(title: str, packages: Sequence[str], *, quick: bool) -> Iterator[Report]:
    """Collect a script's rows, then print and keep them."""
    script = Path(sys.argv[0]).name
    command = f"python bench/{script}" + (" --quick" if quick else "")
    report = Report(title, script, command, quick, packages=["quercus", "numpy", *packages])
    print(f"{title} ({command})", flush=True)
    started, before = time.monotonic(), os.getloadavg()[0]
    yield report
    report.facts = {
        "measured": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "took": f"{time.monotonic() - started:.0f} s",
        "load": f"{before:.1f} before, {os.getloadavg()[0]:.1f} after",
        "machine": f"{_processor()}, {os.cpu_count()} processors, {platform.system()} {platform.release()}",
        "versions": ", ".join([f"Python {platform.python_version()}", *map(_version, report.packages)]),
    }
    _show(report)
    folder = kept_folder(quick)
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / f"{Path(script).stem}.json"
    kept.write_text(json.dumps(asdict(report), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def axes(count: int = 1) -> tuple[Figure, list[Axes]]:
    """Return a figure of so many panels, two a line."""
    across = min(count, 2)
    down = -(-count // across)
    figure = Figure(figsize=(5.2 * across, 3.8 * down), layout="constrained")
    panels = list(figure.subplots(down, across, squeeze=False).flat)
    for spare in panels[count:]:
        spare.remove()
    return figure, panels[:count]


def dots(axis: Axes, names: Sequence[str], series: Mapping[str, Sequence[float]], label: str) -> None:
    """Draw named figures that lie orders of magnitude apart; a bar would have no foot to stand on."""
    for number, (title, figures) in enumerate(series.items()):
        axis.scatter(figures, range(len(names)), label=title, zorder=2)
        away = (0, -11 if number % 2 else 5)  # figures that lie side by side, above and below in turn
        for place, figure in enumerate(figures):
            axis.annotate(
                f"{figure:,.0f}", (figure, place), away, textcoords="offset points", ha="center", fontsize=6
            )
    axis.set_yticks(range(len(names)), names, fontsize=7)
    axis.set(xscale="log", xlabel=label)
    figures = [figure for line in series.values() for figure in line]
    axis.set_xlim(min(figures) / 2.5, max(figures) * 2.5)
    axis.xaxis.minorticks_off()
    axis.grid(alpha=0.3)
    axis.margins(y=0.1)
    axis.invert_yaxis()


def _show(report: Report) -> None:
    table = Table(title=report.title, caption="; ".join(report.facts.values()))
    for column in ("work", "Quercus", "peer", "ratio", "target"):
        table.add_column(column, justify="left" if column == "work" else "right")
    for row in report.rows:
        verdict = "" if row.reached is None else (" ✓" if row.reached else " ✗")
        table.add_row(row.work, row.quercus, row.peer, row.ratio, row.target + verdict)
    Console(width=140).print(table)


def _version(name: str) -> str:
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return name  # no Python package: the script says which version it found


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else ():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.processor() or platform.machine()
