"""``quercus experiment``: the protocols of the papers, on your data or on scikit-learn's."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table as RichTable

from quercus.belief.errors import InvalidInput
from quercus.cli.common import JsonOption, err, fail, needs_extra, on_signals, out, print_json
from quercus.cli.options import option, with_options
from quercus.specification.distribution import install_command
from quercus.specification.executor import EXECUTOR

if TYPE_CHECKING:  # the server extra
    from quercus.experiments.protocols import Protocol

app = typer.Typer(
    no_args_is_help=True, help="Compare learners and query strategies, as the papers do, on your data."
)

DataOption = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        exists=True,
        file_okay=False,
        help="Folder of CSV and ARFF files, one data set per file. Default: scikit-learn's data.",
    ),
]
ClassOption = Annotated[
    str | None,
    typer.Option("--class", metavar="COLUMN", help="Class column (default: class, else the last)."),
]
MethodsOption = Annotated[
    str | None, typer.Option("--methods", metavar="NAMES", help="Names of methods, with commas, or all.")
]
SeedOption = Annotated[int, typer.Option("--seed", min=0, max=2**32 - 1, help="Seed of all random draws.")]
ExecutorOption = Annotated[str, option(EXECUTOR, metavar="NAME")]
OutOption = Annotated[
    Path, typer.Option("--output", "-o", metavar="DIR", file_okay=False, help="Folder of results and plots.")
]
FolderArgument = Annotated[
    Path, typer.Argument(help="Folder of results.", exists=True, file_okay=False, show_default=False)
]
GRID_OPTIONS: dict[str, Any] = {
    "data": DataOption,
    "kinds": Annotated[
        Path | None,
        typer.Option(
            "--kinds",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="JSON file with the kind of each column of each data file: numeric, nominal or id.",
        ),
    ],
    "class_name": ClassOption,
    "sets": Annotated[
        str | None,
        typer.Option(
            "--sets",
            metavar="NAMES",
            help="Names of data sets, with commas (default: see quercus experiment list).",
        ),
    ],
    "methods": MethodsOption,
    "seed": SeedOption,
    "repeats": Annotated[
        int, typer.Option("--repeats", min=1, max=1000, help="Number of cross-validations.")
    ],
    "folds": Annotated[
        int, typer.Option("--folds", min=2, max=1000, help="Number of folds of a cross-validation.")
    ],
    "bins": Annotated[
        int,
        typer.Option(
            "--bins", min=0, max=256, help="Number of equal-width bins of a numeric column; 0: no binning."
        ),
    ],
    "executor": ExecutorOption,
    "out_dir": OutOption,
}
"""The options of each protocol on data sets; ``class_name`` to ``sets`` choose the data."""
GRID_DEFAULTS = {"seed": 0, "repeats": 5, "folds": 10, "executor": EXECUTOR.default}


def with_grid_options(command: str, bins: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that gives a protocol its options; its results are in ``quercus-COMMAND`` by default."""
    return with_options(GRID_OPTIONS, GRID_DEFAULTS | {"bins": bins, "out_dir": Path(f"quercus-{command}")})


@app.command("labels")
@with_grid_options("labels", bins=4)
def labels(
    *,
    corruption: Annotated[
        str,
        typer.Option(
            "--corruption", metavar="V,I,N,U", help="Kinds of corruption to vary, with commas: V, I, N, U."
        ),
    ] = "V",
    levels: Annotated[
        str, typer.Option("--levels", metavar="LEVELS", help="Levels: FROM:TO:STEP, or numbers with commas.")
    ] = "0:1:0.1",
    noise: Annotated[float, typer.Option("--noise", min=0, max=1, help="Level of N while U varies.")] = 0.2,
    uncertain: Annotated[
        float, typer.Option("--uncertain", min=0, max=1, help="Level of U while N varies.")
    ] = 0.5,
    unit: Annotated[
        bool, typer.Option("--unit", help="Draw uncertain plausibilities from [0, 1], not [0, U].")
    ] = False,
    options: dict[str, Any],
) -> None:
    """Measure accuracy against the quality of the labels, as in the figures of the papers.

    The labels of the training rows are corrupted at each level. V: probability of a vacuous label; I: probability of a
    set of classes, and of each other class being in it; N: probability of a random class; U: probability that another
    class gets a plausibility, and the largest such plausibility. The test rows keep their classes. All methods see the
    same labels. The default methods are the default forest (active-forest), the published trees, baselines, and
    learners that ask queries (see quercus experiment list).

    The folder gets results.csv with one line per fold. An interrupted run continues where it stopped, and further
    repeats, sets, levels or methods are added to the file. The figures are drawn from the file. For the belief-entropy
    paper's protocol: --bins 0 --folds 5 --repeats 10 --noise 0 --unit.

    Try:

        quercus experiment labels --sets iris,wine --repeats 1
        quercus experiment labels --corruption V,I,N,U --executor processes:2
        quercus experiment labels --data data --kinds KINDS.json --sets glass
    """
    with failing_in_words():
        from quercus.experiments.corruption import Corruption  # noqa: PLC0415  (the server extra)
        from quercus.experiments.learners import DEFAULT, LEARNERS  # noqa: PLC0415
        from quercus.experiments.protocols import SWEEPS, LabelProtocol  # noqa: PLC0415

        wanted = names_of(corruption)
        for name in wanted:
            if name not in SWEEPS:
                raise typer.BadParameter(f"--corruption: {name!r} is not one of {', '.join(SWEEPS)}")
        levels_found = levels_of("--levels", levels, 0, 1)
        grid = LabelProtocol(
            **grid_fields(options, LEARNERS, DEFAULT),
            base=Corruption(noise=noise, uncertain=uncertain, unit=unit),
            sweeps=dict.fromkeys(wanted, levels_found),
        )
        run_grid(grid, options["out_dir"], options["executor"])


@app.command("learners")
@with_grid_options("learners", bins=0)
def learners(
    *,
    vacuous: Annotated[
        float, typer.Option("--vacuous", min=0, max=1, help="Level of V for data sets with precise labels.")
    ] = 0.9,
    options: dict[str, Any],
) -> None:
    """Compare all learners in a table: the default forest, the published trees and forests, and baselines.

    If a data set has labels of its own (NAME_masses.csv beside NAME.csv: one column per focal set, A|B, and one mass
    function per row), the learners use them; otherwise they use its classes, a share V of which is withheld.

    Try:

        quercus experiment learners --sets iris --repeats 1
        quercus experiment learners --data data --sets credal_dog4,credal_dog7
        quercus experiment learners --vacuous 0 --methods c45,active-forest
    """
    with failing_in_words():
        from quercus.experiments.learners import LEARNERS, TABLE  # noqa: PLC0415  (the server extra)
        from quercus.experiments.protocols import GIVEN, LabelProtocol  # noqa: PLC0415

        grid = LabelProtocol(
            **grid_fields(options, LEARNERS, TABLE),
            sweeps={"V": (vacuous,), GIVEN: (0.0,)},
        )
        run_grid(grid, options["out_dir"], options["executor"], table=True)


@app.command("queries")
@with_grid_options("queries", bins=4)
def queries(
    *,
    max_answers: Annotated[
        int, typer.Option("--max-answers", min=1, max=100_000, help="Maximum number of answers.")
    ] = 60,
    step: Annotated[
        int, typer.Option("--step", min=1, help="Number of answers between two measurements.")
    ] = 5,
    vacuous: Annotated[
        float, typer.Option("--vacuous", min=0, max=1, help="Level of V of the initial labels.")
    ] = 1.0,
    noise: Annotated[
        float, typer.Option("--noise", min=0, max=1, help="Level of N of the initial labels.")
    ] = 0.0,
    uncertain: Annotated[
        float, typer.Option("--uncertain", min=0, max=1, help="Level of U of the initial labels.")
    ] = 0.0,
    options: dict[str, Any],
) -> None:
    """Measure accuracy against the number of queries, for each strategy.

    Strategies query the labels of training rows, one at a time; the answer is the true class. By default, no label is
    known at first (V = 1). The comparison has all strategies of the service, those of trees (such as published) and
    those of the default forest (margin, memory-disagreement), random queries of both, and strategies of
    scikit-activeml.

    By default all methods see numbers in four bins, as in the papers. With --bins 0 they get the numbers themselves, as
    in the service; the published trees still cut them into four bins.

    Try:

        quercus experiment queries --sets iris --repeats 1
        quercus experiment queries --bins 0 --methods margin,covering-committee
        quercus experiment queries --max-answers 40 --methods published,random
        quercus experiment queries --vacuous 0 --uncertain .8 --noise .5 -o fig9
    """
    with failing_in_words():
        from quercus.experiments.corruption import Corruption  # noqa: PLC0415  (the server extra)
        from quercus.experiments.protocols import QueryProtocol  # noqa: PLC0415
        from quercus.experiments.strategies import STRATEGIES  # noqa: PLC0415

        grid = QueryProtocol(
            **grid_fields(options, STRATEGIES, tuple(STRATEGIES)),
            base=Corruption(vacuous=vacuous, noise=noise, uncertain=uncertain),
            levels=tuple(float(level) for level in (*range(0, max_answers, step), max_answers)),
        )
        run_grid(grid, options["out_dir"], options["executor"])


@app.command("restaurant")
def restaurant(
    *,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="Read the examples from a CSV or ARFF file. Default: generate them by the textbook's rule.",
        ),
    ] = None,
    examples: Annotated[
        int, typer.Option("--examples", min=1, max=100_000, help="Number of examples to generate.")
    ] = 100,
    sizes: Annotated[
        str,
        typer.Option(
            "--sizes", metavar="SIZES", help="Numbers of examples: FROM:TO:STEP, or numbers with commas."
        ),
    ] = "5:100:5",
    class_name: ClassOption = None,
    methods: MethodsOption = None,
    seed: SeedOption = 0,
    repeats: Annotated[int, typer.Option("--trials", min=1, max=1000, help="Number of trials.")] = 20,
    executor: ExecutorOption = EXECUTOR.default,
    out_dir: OutOption = Path("quercus-restaurant"),
) -> None:
    """Measure the learning curve of the textbook's restaurants.

    The class is whether guests wait for a table. The figure shows accuracy against the number of examples, drawn with
    replacement from 100 restaurants that the textbook's tree classifies, and tested on other restaurants. Examples
    from a file are tested on its other rows.

    Try:

        quercus experiment restaurant
        quercus experiment restaurant --file restaurant.csv --sizes 2:12:2
    """
    with failing_in_words():
        from quercus.experiments.datasets import read_set  # noqa: PLC0415  (the server extra)
        from quercus.experiments.learners import CURVE, LEARNERS  # noqa: PLC0415
        from quercus.experiments.protocols import RestaurantProtocol  # noqa: PLC0415

        pool = None if file is None else read_set(file, {}, class_name)
        grid = RestaurantProtocol(
            data={} if pool is None else {pool.name: pool},
            methods=chosen_methods(methods, LEARNERS, CURVE),
            seed=seed,
            repeats=repeats,
            levels=levels_of("--sizes", sizes, 1, 100_000),
            examples=examples,
        )
        run_grid(grid, out_dir, executor)


@app.command("plot")
def plot(folder: FolderArgument) -> None:
    """Redraw the figures of a folder from its results.csv.

    One figure per sweep: accuracy against the varied level, one panel per data set, with standard errors over repeats
    where there are several.

    Try:

        quercus experiment plot quercus-labels
    """
    with failing_in_words():
        draw_figures(folder)


@app.command("table")
def table(
    folder: FolderArgument,
    level: Annotated[
        float | None, typer.Option("--level", help="Level that the table shows (default: the last).")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print a folder's results as Markdown tables.

    Mean accuracy ± standard error over repeats, in percent, one column per data set; means over the sets of u65, u80
    (utility-discounted accuracy of set-valued predictions), nodes and time to fit. The folds of a repeat share its
    corrupted labels, so one repeat has no standard error.

    Try:

        quercus experiment table quercus-learners
        quercus experiment table quercus-queries --level 40
    """
    with failing_in_words():
        from quercus.experiments.results import RESULTS, read_rows  # noqa: PLC0415  (the server extra)
        from quercus.experiments.summary import markdown_table, measured_sweeps  # noqa: PLC0415

        rows = list(read_rows(folder / RESULTS))
        shown_json = []
        for sweep in measured_sweeps(rows):
            levels = {row.key.level for row in rows if row.key.sweep == sweep}
            at = max(levels) if level is None else level
            if at not in levels:
                shown = ", ".join(f"{known:g}" for known in sorted(levels))
                fail(f"{sweep} was not measured at {at:g}; the levels are {shown}")
            text = markdown_table(rows, sweep, at)
            shown_json.append({"sweep": sweep, "level": at, "markdown": text})
            if not as_json:
                typer.echo(f"{sweep} = {at:g}\n\n{text}\n")
        if as_json:
            print_json(shown_json)


@app.command("list")
def list_names(data: DataOption = None, as_json: JsonOption = False) -> None:
    """List the names that --methods and --sets take.

    Learners are for labels, learners and restaurant, strategies for queries. A learner named ask-STRATEGY spends one
    answer for every four training rows by that strategy; the others see only the given labels.

    Try:

        quercus experiment list
    """
    with failing_in_words():
        from quercus.experiments.datasets import BUILT_IN, files_in  # noqa: PLC0415  (the server extra)
        from quercus.experiments.learners import LEARNERS  # noqa: PLC0415
        from quercus.experiments.strategies import STRATEGIES  # noqa: PLC0415

        sets = list(BUILT_IN if data is None else files_in(data))
        if as_json:
            named: dict[str, Mapping[str, Any]] = {"learners": LEARNERS, "strategies": STRATEGIES}
            titles = {
                kind: {name: each.title for name, each in known.items()} for kind, known in named.items()
            }
            print_json({**titles, "sets": sets})
            return
        for heading, known in (("learners", LEARNERS), ("strategies (queries)", STRATEGIES)):
            drawn = RichTable(heading, "", box=None, pad_edge=False)
            for name, method in known.items():
                drawn.add_row(name, method.title)
            out.print(drawn, "")
        out.print("data sets", style="bold")
        out.print(", ".join(sets))


@contextmanager
def failing_in_words() -> Iterator[None]:
    """End the command with a message if its input is wrong."""
    with needs_extra("experiment", "experiment"):
        from quercus.estimators.executors import ExecutorError  # noqa: PLC0415  (the server extra)
    try:
        with needs_extra("experiment", "experiment"):
            yield
    except InvalidInput as error:
        fail(f"{error.field}: {error.reason}")
    except ExecutorError as error:
        fail(str(error))


def names_of(text: str) -> list[str]:
    """Return the distinct names in a comma-separated list."""
    return list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def grid_fields(options: dict[str, Any], known: Any, default: Sequence[str]) -> dict[str, Any]:
    """Return the fields of a protocol that its command's options set.

    Parameters
    ----------
    options
        The values of `GRID_OPTIONS`.
    known, default
        All methods of the protocol by name, and those that run by default.
    """
    from quercus.experiments.datasets import DEFAULT, built_in, in_folder  # noqa: PLC0415  (the server extra)

    folder, wanted = options["data"], None if options["sets"] is None else names_of(options["sets"])
    if folder is None:
        sets = built_in(wanted or DEFAULT)
    else:
        sets = in_folder(folder, wanted, options["kinds"], options["class_name"])
    fields = {name: options[name] for name in ("seed", "repeats", "folds", "bins")}
    methods = chosen_methods(options["methods"], known, default)
    return fields | {"data": {data.name: data for data in sets}, "methods": methods}


def chosen_methods(text: str | None, known: Any, default: Sequence[str]) -> tuple[str, ...]:
    """Return the selected methods; those that need a missing package are skipped with a warning."""
    wanted = list(known) if text == "all" else list(default) if text is None else names_of(text)
    for name in wanted:
        if name not in known:
            raise typer.BadParameter(f"--methods: there is no {name!r}; see: quercus experiment list")
    absent = [
        name for name in wanted if known[name].needs and not importlib.util.find_spec(known[name].needs)
    ]
    if absent:
        missing = sorted({known[name].needs for name in absent})
        fix = install_command("experiment")
        err.print(f"skipped: {', '.join(absent)}, which need {', '.join(missing)}; {fix}", style="yellow")
    there = tuple(name for name in wanted if name not in absent)
    if not there:
        fail("no method is left to run")
    return there


def levels_of(flag: str, text: str, low: float, high: float) -> tuple[float, ...]:
    """Return the numbers of ``FROM:TO:STEP``, both ends included, or of a comma-separated list."""
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
    """Run the missing cells of a grid, with a progress bar, and draw its figures."""
    from quercus.estimators.executors import open_executor, parse_executor  # noqa: PLC0415  (the server extra)
    from quercus.experiments.results import Results, agree_on  # noqa: PLC0415  (the server extra)
    from quercus.experiments.running import run_cells  # noqa: PLC0415
    from quercus.experiments.summary import markdown_table  # noqa: PLC0415

    parse_executor(executor_name)  # before any work
    agree_on(folder, grid.settings, grid.data_fingerprints)
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=err,
    )
    with Results(folder) as results, progress, on_signals(_interrupt, "SIGTERM"):
        cells = list(grid.cells())
        missing = results.missing_cells(cells)
        task = progress.add_task("cells", total=len(cells), completed=len(cells) - len(missing))
        try:
            with open_executor(executor_name) as executor:
                refusals = run_cells(grid, missing, results, executor, lambda _cell: progress.advance(task))
        except KeyboardInterrupt:
            progress.stop()
            err.print(f"stopped; {results.path} has the results so far, and the same command continues")
            raise
    reasons = {(refusal.cell.data, refusal.cell.method): refusal.reason for refusal in refusals}
    for (data, method), reason in reasons.items():
        err.print(f"skipped: {method} on {data}: {reason}", style="yellow")
    draw_figures(folder)
    if table:
        rows = list(results.rows.values())
        for sweep, level in sorted({(row.key.sweep, row.key.level) for row in rows}):
            typer.echo(f"\n{sweep} = {level:g}\n\n{markdown_table(rows, sweep, level)}")


def draw_figures(folder: Path) -> None:
    """Draw the figures of a folder from its results."""
    from quercus.experiments.plots import draw_all  # noqa: PLC0415  (the server extra)
    from quercus.experiments.results import RESULTS, read_rows  # noqa: PLC0415

    rows = list(read_rows(folder / RESULTS))
    if not rows:
        fail(f"{folder / RESULTS} has no measurements")
    for path in draw_all(rows, folder):
        out.print(f"drew {path}", soft_wrap=True)


def _interrupt(_: int) -> NoReturn:
    """End as with Ctrl-C, so that the work is cleaned up."""
    raise KeyboardInterrupt
