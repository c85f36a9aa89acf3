"""The screen of a running demo: a live table at a terminal, plain lines anywhere else."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from quercus.cli.demo.parts import ClassifierState
from quercus.client.results import Model, Query, Tree
from quercus.specification.reasons import SIMILAR_ROWS
from quercus.view.bars import bar, sparkline
from quercus.view.words import counted

LINE_EVERY_S = 1.0
SPARKS_SHOWN = 40
NAME_WIDTH, BAR_WIDTH, GAP, BARS_FROM_WIDTH = 10, 20, 2, 76


@dataclass(frozen=True)
class DemoState:
    """The current state of every process.

    Attributes
    ----------
    seconds : seconds since the processes were started.
    model, tree : model and tree of the server.
    rows : number of all rows of the demo.
    thinking : the query that each labeller holds; None while waiting.
    answered : number of answers of each labeller.
    gone_home : labellers who have stopped.
    readings : states that the classifier recorded, oldest first.
    """

    seconds: float
    model: Model
    tree: Tree
    rows: int
    thinking: Mapping[str, Query | None]
    answered: Mapping[str, int]
    gone_home: Collection[str]
    readings: Sequence[ClassifierState]


class Screen:
    """Shows the demo's progress; leaving the block ends the live display.

    Parameters
    ----------
    console : console to draw on.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._is_live = console.is_terminal and not console.is_dumb_terminal
        self._live: Live | Progress | None = None
        self._started = time.monotonic()
        self._last_line, self._last_line_at = "", -LINE_EVERY_S

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end_live()

    def print_line(self, text: str) -> None:
        """Print a step, with the time since the start."""
        self.end_live()
        seconds = time.monotonic() - self._started
        self._console.print(
            f"[{seconds:5.1f} s] {text}", markup=False, soft_wrap=not self._console.is_terminal
        )

    def wait(self, text: str) -> None:
        """Show the reason for waiting, with an animation if that is possible."""
        if not self._is_live:
            self.print_line(text)
            return
        self.end_live()
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        waiting = Progress(*columns, console=self._console, transient=True)
        waiting.add_task(escape(text), total=None)
        waiting.start()
        self._live = waiting

    def show(self, scene: DemoState, last: bool = False) -> None:
        """Show the scene: at a terminal always, elsewhere when it changed and not too often."""
        if self._is_live:
            if not isinstance(self._live, Live):
                self.end_live()
                self._live = Live(console=self._console, auto_refresh=False)
                self._live.start()
            self._live.update(_state_table(scene, self._console.width), refresh=True)
            return
        line = _state_line(scene)
        due = scene.seconds - self._last_line_at >= LINE_EVERY_S
        if (due or last) and line != self._last_line:
            self._last_line, self._last_line_at = line, scene.seconds
            self._console.print(
                f"[{time.monotonic() - self._started:5.1f} s] {line}", markup=False, soft_wrap=True
            )

    def end_live(self) -> None:
        """End the live display, and keep its last picture."""
        if self._live is not None:
            self._live.stop()
            self._live = None


def _state_line(scene: DemoState) -> str:
    model = scene.model
    rows, answers = f"{model.instance_count}/{scene.rows}", f"{model.queries_answered}/{model.budget}"
    parts = [f"rows {rows}", f"answers {answers}", f"tree {model.tree_version} lag {model.lag}"]
    if scene.readings:
        parts.append(f"accuracy {scene.readings[-1].accuracy:.2f}")
    for name, query in scene.thinking.items():
        doing = "waits" if query is None else f"at {query.instance}"
        parts.append(f"{name} {'gone home' if name in scene.gone_home else doing}")
    return "  ".join(parts)


def _state_table(scene: DemoState, width: int) -> Table:
    """Return a table with a row per part; bars only if there is room, and text is cut rather than wrapped."""
    model, tree = scene.model, scene.tree
    has_bars = width >= BARS_FROM_WIDTH
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True, width=NAME_WIDTH)
    if has_bars:
        table.add_column(no_wrap=True, width=BAR_WIDTH)
    table.add_column(no_wrap=True)
    room = max(1, width - NAME_WIDTH - GAP - has_bars * (BAR_WIDTH + GAP))

    def add_row(name: str, share: float | None, text: str, style: str = "cyan") -> None:
        said = Text(text)
        said.truncate(room, overflow="ellipsis")
        drawn = Text("" if share is None else bar(share, BAR_WIDTH), style=style)
        table.add_row(name, *([drawn] if has_bars else []), said)

    pushed = model.instance_count / scene.rows
    add_row("sensor", pushed, f"{model.instance_count} of {scene.rows} rows pushed, no label among them")
    lag = f"{counted(model.lag, 'event')} behind" if model.lag else "up to date"
    size = f"{counted(len(tree.nodes), 'node')}, {len(tree.undecided) or 'none'} undecided"
    add_row("tree", None, f"version {model.tree_version}, {lag}; {size}")
    spent = model.queries_answered / model.budget if model.budget else 0.0
    add_row("budget", spent, f"{model.queries_answered} of {model.budget} answers", "yellow")
    for name, query in scene.thinking.items():
        doing = "waits for a query"
        if name in scene.gone_home:
            doing = "gone home"
        elif query is not None:
            similar = query.reason.fact(SIMILAR_ROWS)
            why = "" if similar is None else f", which stands for {similar} wines"
            doing = f"thinks about {query.instance}{why}"
        add_row(f"  {name}", None, f"{scene.answered.get(name, 0)} answered; {doing}")
    if not scene.readings:
        add_row("classifier", None, "waits for a tree", "green")
        return table
    last = scene.readings[-1]
    answers = counted(last.answers, "answer")
    add_row(
        "classifier",
        last.accuracy,
        f"accuracy {last.accuracy:.2f} by tree {last.version} ({answers})",
        "green",
    )
    curve = sparkline([reading.accuracy for reading in scene.readings[-SPARKS_SHOWN:]], ends=(0.0, 1.0))
    times = f"median {last.median_ms:.0f} ms, slowest {last.slowest_ms:.0f} ms"
    add_row("", None, f"{counted(last.requests, 'request')}, {times}  {curve}", "green")
    return table
