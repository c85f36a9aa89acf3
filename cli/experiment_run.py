"""Shared parts of the commands of ``quercus experiment``: data, methods, levels, and the run of a grid."""

from __future__ import annotations

import importlib.util
import math
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import typer
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from quercus.cli.common import err, fail, needs_extra, out

if TYPE_CHECKING:
    from quercus.experiments.datasets import DataSet
    from quercus.experiments.protocols import Protocol
    from quercus.experiments.running import UnsuitableData


@contextmanager
def failing_in_words() -> Iterator[None]:
    """End the work of a command with a message if its input is wrong."""
    with needs_extra("experiment", "experiment"):
        from quercus.belief.errors import InvalidInput  # noqa: PLC0415  (the server extra)
        from quercus.estimators.executors import ExecutorError  # noqa: PLC0415
    try:
        with needs_extra("experiment", "experiment"):
            yield
    except InvalidInput as error:
        fail(f"{error.field}: {error.reason}")
    except ExecutorError as error:
        fail(str(error))


def names_of(text: str) -> list[str]:
    """Return the names of a list with commas, each once."""
    return list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def data_sets(
    folder: Path | None, kinds: Path | None, class_name: str | None, sets: str | None
) -> dict[str, DataSet]:
    """Return the data sets wanted, of a folder or scikit-learn's, by name."""
    from quercus.experiments.datasets import DEFAULT, built_in, in_folder  # noqa: PLC0415  (the server extra)

    wanted = None if sets is None else names_of(sets)
    data_sets = (
        built_in(wanted or DEFAULT) if folder is None else in_folder(folder, wanted, kinds, class_name)
    )
    return {data.name: data for data in data_sets}


def chosen_methods(text: str | None, known: Any, default: Sequence[str]) -> tuple[str, ...]:
    """Return the methods wanted; those that need a package that is not there are left out, aloud."""
    wanted = list(known) if text == "all" else list(default) if text is None else names_of(text)
    for name in wanted:
        if name not in known:
            raise typer.BadParameter(f"--methods: there is no {name!r}; see: quercus experiment list")
    absent = [
        name for name in wanted if known[name].needs and not importlib.util.find_spec(known[name].needs)
    ]
    if absent:
        missing = sorted({known[name].needs for name in absent})
        fix = "pip install 'quercus[experiment]'"
        err.print(
            f"left out, for want of {', '.join(missing)}: {', '.join(absent)}; {fix}",
            style="yellow",
            markup=False,
        )
    there = tuple(name for name in wanted if name not in absent)
    if not there:
        fail("no method is left to run")
    return there


def levels_of(flag: str, text: str, low: float, high: float) -> tuple[float, ...]:
    """Return the numbers of ``FROM:TO:STEP``, both ends among them, or of a list."""
    try:
        if ":" in text:
            start, end, step = (float(part) for part in text.split(":"))
            count = math.floor((end - start) / step + 1e-9) + 1 if step > 0 else 0
            levels = [round(start + i * step, 9) for i in range(min(count, 1001))]
        else:
            levels = [float(part) for part in names_of(text)]
    except (ValueError, OverflowError):  # OverflowError: infinitely many
        levels = []
    if not levels or not all(low <= level <= high for level in levels) or len(levels) > 1000:
        raise typer.BadParameter(
            f"{flag}: {text!r} must be FROM:TO:STEP or numbers with commas, in [{low:g}, {high:g}], at most 1,000"
        )
    return tuple(sorted(set(levels)))


def run_grid(grid: Protocol, folder: Path, executor_name: str, *, table: bool = False) -> None:
    """Run the missing cells of a grid, with progress, and draw it."""
    from quercus.estimators.executors import open_executor, parse_executor  # noqa: PLC0415  (the server extra)
    from quercus.experiments.results import Results, agree_on  # noqa: PLC0415  (the server extra)
    from quercus.experiments.running import run_cells  # noqa: PLC0415
    from quercus.experiments.summary import markdown_table  # noqa: PLC0415

    parse_executor(executor_name)  # before any work
    agree_on(folder, grid.settings, grid.data_fingerprints)
    with Results(folder) as results, _progress_bar() as progress, _terminated_like_interrupted():
        cells = list(grid.cells())
        missing = results.missing_cells(cells)
        task = progress.add_task("cells", total=len(cells), completed=len(cells) - len(missing))
        try:
            with open_executor(executor_name) as executor:
                refusals = run_cells(grid, missing, results, executor, lambda _cell: progress.advance(task))
        except KeyboardInterrupt:
            progress.stop()
            err.print(
                f"stopped; {results.path} holds what was done, the same command continues", markup=False
            )
            raise
    _say_refused(refusals)
    draw_figures(folder)
    if table:
        rows = list(results.rows.values())
        for sweep, level in sorted({(row.key.sweep, row.key.level) for row in rows}):
            typer.echo(f"\n{sweep} = {level:g}\n\n{markdown_table(rows, sweep, level)}")


def _progress_bar() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=err,
    )


def _say_refused(refusals: Sequence[UnsuitableData]) -> None:
    reasons = {(refusal.cell.data, refusal.cell.method): refusal.reason for refusal in refusals}
    for (data, method), reason in reasons.items():
        err.print(f"left out: {method} on {data}: {reason}", style="yellow", markup=False)


def draw_figures(folder: Path) -> None:
    """Draw the figures of a folder from its results."""
    from quercus.experiments.plots import draw_all  # noqa: PLC0415  (the server extra)
    from quercus.experiments.results import RESULTS, read_rows  # noqa: PLC0415

    rows = list(read_rows(folder / RESULTS))
    if not rows:
        fail(f"{folder / RESULTS} holds no measurement")
    for path in draw_all(rows, folder):
        out.print(f"drew {path}", markup=False, soft_wrap=True)


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """SIGTERM ends the block as Ctrl-C does, so that it cleans up."""

    def interrupt_on_signal(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt_on_signal)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
