"""A progress bar for long commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from quercus.cli.common import err


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar on standard error; yield a function that takes the completed amount and the total."""
    columns = (TextColumn(what), BarColumn(), TextColumn("{task.percentage:>3.0f} %"), TimeRemainingColumn())
    with Progress(*columns, console=err, disable=not err.is_terminal, transient=True) as shown:
        task = shown.add_task(what, total=None)
        yield lambda completed_count, total: shown.update(task, completed=completed_count, total=total)
