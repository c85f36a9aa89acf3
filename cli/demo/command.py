"""``quercus demo``: a complete example on real data."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from quercus.cli.common import err, fail, needs_extra, on_signals, out

QUICK_DELAY_S, QUICK_ROWS_PER_S, QUICK_REPEATS = 0.0, 2000.0, 3
SPLITS, QUICK_SPLITS = 10, 3
"""Number of other splits to compare on."""
MARK = ".quercus-demo"
"""Name of the file that marks a folder as one of the demo."""
LOGS = ("server", "sensor", "ann", "bob", "classifier", "comparison")


def demo(
    *,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="DIR", file_okay=False, help="New or empty folder for all files."
        ),
    ] = Path("quercus-demo"),
    seed: Annotated[
        int,
        typer.Option("--seed", min=0, max=2**32 - 1, help="Seed of the split into training and test rows."),
    ] = 0,
    labeller_delay_s: Annotated[
        float,
        typer.Option(
            "--labeller-delay-s", min=0, max=60, help="Seconds that a labeller waits before each answer."
        ),
    ] = 0.4,
    rows_per_s: Annotated[
        float, typer.Option("--rows-per-s", min=1, help="Rows that the sensor pushes per second.")
    ] = 40.0,
    repeats: Annotated[
        int,
        typer.Option(
            "--random-orders", min=1, max=1000, help="Number of random orders of labels for the comparison."
        ),
    ] = 10,
    timeout_s: Annotated[
        float, typer.Option("--timeout-s", min=1, help="Seconds after which the demo gives up.")
    ] = 300.0,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Run faster: labellers do not wait, the sensor is fast, and the comparison is small.",
        ),
    ] = False,
) -> None:
    """Run a complete example: a server, a sensor, two labellers and a classifier, each a process.

    The sensor pushes 124 wines without labels, the labellers answer the server's queries, the classifier
    classifies 54 other wines while the forest grows (learner active-forest). The report shows the accuracy against the
    number of answers, compared with randomly chosen labels, on this and other splits of the wines; the number of random
    labels needed for the same accuracy; the tree beside the forest; and the accuracy of a forest and a single tree on a
    stream that changes.

    Try:

        quercus demo
        quercus demo --seed 1 --output /tmp/wine
    """
    with needs_extra("demo", "demo"):
        from quercus.cli.demo.play import DemoRun  # noqa: PLC0415  (the server extra)
        from quercus.cli.demo.processes import DemoFailure, ProcessGroup  # noqa: PLC0415
        from quercus.cli.demo.report import report  # noqa: PLC0415
        from quercus.cli.demo.screen import Screen  # noqa: PLC0415
    if quick:
        labeller_delay_s, rows_per_s, repeats = QUICK_DELAY_S, QUICK_ROWS_PER_S, QUICK_REPEATS
    try:
        _prepare_folder(output)
    except OSError as error:
        fail(f"cannot write {output}: {error.strerror}")

    def exit_on_signal(number: int) -> NoReturn:  # an exception, so that the with blocks clean up
        raise SystemExit(128 + number)

    os.environ.setdefault("no_grpc_proxy", "127.0.0.1")
    splits = QUICK_SPLITS if quick else SPLITS
    try:
        with (
            on_signals(exit_on_signal, "SIGTERM", "SIGHUP"),
            Screen(out) as screen,
            ProcessGroup(output) as family,
        ):
            run = DemoRun(
                screen, family, output, seed, labeller_delay_s, rows_per_s, repeats, splits, timeout_s
            )
            outcome = run.run()
    except DemoFailure as error:
        fail(str(error))
    except KeyboardInterrupt:
        err.print(f"stopped, with every process; their logs are in {output}", style="dim")
        raise
    report(outcome, output, out)


def _prepare_folder(folder: Path) -> None:
    """Make the folder, or remove the files of an earlier demo from it; refuse a folder with other files."""
    from quercus.cli.demo import report  # noqa: PLC0415  (the server extra)
    from quercus.cli.demo.data import HOLDOUT, TRAINING, TRUTH  # noqa: PLC0415
    from quercus.cli.demo.play import STORE  # noqa: PLC0415

    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / MARK).exists() and any(folder.iterdir()):
        fail(
            f"{folder} is neither empty nor from an earlier demo (no file {MARK}): name a new folder with --output"
        )
    (folder / MARK).write_text("quercus demo made this folder, and replaces its files when it runs again.\n")
    stores = [STORE + ending for ending in ("", "-wal", "-shm")]
    results = [report.TREE_TEXT, report.TREE_SVG, report.CURVE_PNG, report.CURVE_CSV]
    for name in (*stores, *results, TRAINING, TRUTH, HOLDOUT, *(f"{log}.log" for log in LOGS)):
        (folder / name).unlink(missing_ok=True)
