"""The report of the demo: the comparison and the tree, on the screen and as files."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections import Counter
from pathlib import Path

from rich.console import Console

from quercus.cli.demo import curve, stream
from quercus.cli.demo.curve import Curves
from quercus.cli.demo.play import MODEL, STORE, Outcome
from quercus.cli.demo.tables import HOLDOUT, read_table
from quercus.view.models import accuracy_line

TREE_TEXT, TREE_SVG, CURVE_PNG, CURVE_CSV = "tree.txt", "tree.svg", "learning_curve.png", "learning_curve.csv"


def report(outcome: Outcome, folder: Path, console: Console) -> None:
    """Write the files and print their contents."""
    classes = Counter(row["class"] for row in read_table(folder / HOLDOUT))
    curves = Curves.of(outcome.readings, outcome.random, max(classes.values()) / classes.total())
    (folder / TREE_TEXT).write_text(outcome.text.rstrip("\n") + "\n", encoding="utf-8")
    (folder / TREE_SVG).write_text(outcome.svg, encoding="utf-8")
    curve.write_csv(curves, folder / CURVE_CSV)
    title = "Wine: labels asked for, and labels at random"
    curve.draw_png(curves, folder / CURVE_PNG, title)

    def print_text(text: str = "", prose: bool = False) -> None:
        console.print(text, markup=False, soft_wrap=not (prose and console.is_terminal))

    print_text()
    print_text("The tree that grows beside the forest, for people to read:")
    print_text()
    print_text(outcome.text.rstrip("\n"))
    print_text()
    console.print("Accuracy on held-out rows", style="bold")
    console.print(curve.curve_table(curves))
    print_text()
    print_text(curve.saving_text(curves), prose=True)
    print_text(curve.verdict_text(curves), prose=True)
    print_text(curve.caution_text(outcome.other_splits, 1 / classes.total()), prose=True)
    print_text()
    _say_what_happened(outcome, console)
    print_text()
    console.print("A stream that changes", style="bold")
    print_text(
        f"{stream.ROWS:,} rows come with their labels; after {stream.CHANGE:,} the classes change places. The service "
        "measures by itself how right it is (see quercus models show):",
        prose=True,
    )
    for name, accuracy in outcome.stream.items():
        print_text(f"  {name:15}{accuracy_line(accuracy)}")
    print_text()
    print_text(f"In {folder.resolve()}:")
    print_text(f"  {CURVE_PNG}  {CURVE_CSV}  {TREE_SVG}  {TREE_TEXT}  a log of each process")
    program, store = shlex.quote(_program_path()), shlex.quote(str(folder / STORE))
    print_text(
        f"To look around: {program} serve --store {store}; then, in another terminal: {program} models show {MODEL}"
    )


def _program_path() -> str:
    """Return the program that starts the command line from here: its name, if that finds this one, or its path."""
    found = shutil.which("quercus")
    return "quercus" if found is not None and Path(found).samefile(sys.argv[0]) else sys.argv[0]


def _say_what_happened(outcome: Outcome, console: Console) -> None:
    model, last = outcome.model, outcome.readings[-1]
    by = ", ".join(f"{name} {count}" for name, count in sorted(outcome.answered.items()))
    console.print(
        f"{model.instance_count} rows pushed, {model.queries_answered} answers ({by}), "
        f"{model.tree_version} trees grown; {last.requests} classification requests meanwhile, "
        f"median {last.median_ms:.0f} ms, slowest {last.slowest_ms:.0f} ms, none failed.",
        markup=False,
        soft_wrap=not console.is_terminal,
    )
