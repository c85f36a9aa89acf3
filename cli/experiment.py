"""``quercus experiment``: the protocols of the papers, on your data or on scikit-learn's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table as RichTable

from quercus.cli.common import JsonOption, fail, out, print_json
from quercus.cli.experiment_run import (
    chosen_methods,
    data_sets,
    draw_figures,
    failing_in_words,
    levels_of,
    names_of,
    run_grid,
)
from quercus.cli.options import option
from quercus.specification.compute import EXECUTOR

if TYPE_CHECKING:
    pass

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
KindsOption = Annotated[
    Path | None,
    typer.Option(
        "--kinds",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="JSON: for each file the kind of each column, numeric, nominal or id.",
    ),
]
ClassOption = Annotated[
    str | None, typer.Option("--class", metavar="COLUMN", help="Class column (class, else the last).")
]
SetsOption = Annotated[
    str | None, typer.Option("--sets", metavar="NAMES", help="Data sets, with commas. Default: see the list.")
]
MethodsOption = Annotated[
    str | None, typer.Option("--methods", metavar="NAMES", help="Methods, with commas; all: every one.")
]
SeedOption = Annotated[int, typer.Option("--seed", min=0, max=2**32 - 1, help="Seed of all random draws.")]
RepeatsOption = Annotated[int, typer.Option("--repeats", min=1, max=1000, help="Cross-validations.")]
FoldsOption = Annotated[int, typer.Option("--folds", min=2, max=1000, help="Folds of a cross-validation.")]
BinsOption = Annotated[
    int,
    typer.Option("--bins", min=0, max=256, help="Bins of each number; 0: leave numbers as they are."),
]
ExecutorOption = Annotated[str, option(EXECUTOR, metavar="NAME")]
OutOption = Annotated[
    Path, typer.Option("--output", "-o", metavar="DIR", file_okay=False, help="Folder of results and plots.")
]
FolderArgument = Annotated[
    Path, typer.Argument(help="Folder of results.", exists=True, file_okay=False, show_default=False)
]


@app.command("labels")
def labels(
    *,
    corruption: Annotated[
        str, typer.Option("--corruption", metavar="V,I,N,U", help="Quantities to vary, with commas.")
    ] = "V",
    levels: Annotated[
        str, typer.Option("--levels", metavar="LEVELS", help="FROM:TO:STEP, or numbers with commas.")
    ] = "0:1:0.1",
    noise: Annotated[float, typer.Option("--noise", min=0, max=1, help="N while U is varied.")] = 0.2,
    uncertain: Annotated[float, typer.Option("--uncertain", min=0, max=1, help="U while N is varied.")] = 0.5,
    unit: Annotated[
        bool, typer.Option("--unit", help="Draw uncertain plausibilities from [0, 1], not [0, U].")
    ] = False,
    data: DataOption = None,
    kinds: KindsOption = None,
    class_name: ClassOption = None,
    sets: SetsOption = None,
    methods: MethodsOption = None,
    seed: SeedOption = 0,
    repeats: RepeatsOption = 5,
    folds: FoldsOption = 10,
    bins: BinsOption = 4,
    executor: ExecutorOption = EXECUTOR.default,
    out_dir: OutOption = Path("quercus-labels"),
) -> None:
    """Accuracy against the quality of the labels: the figures of the papers.

    The labels of the training rows are made worse, more and more: V, the share of labels that say nothing; I, the
    share that are sets of classes, and how large; N, the share that are drawn anew; U, the share that are
    plausibilities, and how high. The test rows keep their classes. Every method sees the same labels.

    Results are in results.csv in the folder, one line per fold. An interrupted run continues where it
    was, and more repeats, sets, levels or methods are added to those there. The figures are drawn from the file
    alone. For the belief-entropy paper's protocol: --bins 0 --folds 5 --repeats 10 --noise 0 --unit.

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
                raise typer.BadParameter(f"--corruption: {name!r} is none of {', '.join(SWEEPS)}")
        levels_found = levels_of("--levels", levels, 0, 1)
        grid = LabelProtocol(
            data=data_sets(data, kinds, class_name, sets),
            methods=chosen_methods(methods, LEARNERS, DEFAULT),
            seed=seed,
            repeats=repeats,
            folds=folds,
            bins=bins,
            base=Corruption(noise=noise, uncertain=uncertain, unit=unit),
            sweeps=dict.fromkeys(wanted, levels_found),
        )
        run_grid(grid, out_dir, executor)


@app.command("learners")
def learners(
    *,
    vacuous: Annotated[
        float, typer.Option("--vacuous", min=0, max=1, help="V, for sets that came with precise labels.")
    ] = 0.9,
    data: DataOption = None,
    kinds: KindsOption = None,
    class_name: ClassOption = None,
    sets: SetsOption = None,
    methods: MethodsOption = None,
    seed: SeedOption = 0,
    repeats: RepeatsOption = 5,
    folds: FoldsOption = 10,
    bins: BinsOption = 0,
    executor: ExecutorOption = EXECUTOR.default,
    out_dir: OutOption = Path("quercus-learners"),
) -> None:
    """All learners side by side: a table.

    A set with its own labels (NAME_masses.csv beside NAME.csv: one column per focal set, A|B, and
    one mass function per row) is learned from those, any other from its classes, a share V of which is withheld.

    Try:

        quercus experiment learners --sets iris --repeats 1
        quercus experiment learners --data data --sets credal_dog4,credal_dog7
        quercus experiment learners --vacuous 0 --methods c45,e2m
    """
    with failing_in_words():
        from quercus.experiments.learners import LEARNERS, TABLE  # noqa: PLC0415  (the server extra)
        from quercus.experiments.protocols import GIVEN, LabelProtocol  # noqa: PLC0415

        grid = LabelProtocol(
            data=data_sets(data, kinds, class_name, sets),
            methods=chosen_methods(methods, LEARNERS, TABLE),
            seed=seed,
            repeats=repeats,
            folds=folds,
            bins=bins,
            sweeps={"V": (vacuous,), GIVEN: (0.0,)},
        )
        run_grid(grid, out_dir, executor, table=True)


@app.command("queries")
def queries(
    *,
    max_answers: Annotated[int, typer.Option("--max-answers", min=1, max=100_000, help="Most answers.")] = 60,
    step: Annotated[int, typer.Option("--step", min=1, help="Answers between two measurements.")] = 5,
    vacuous: Annotated[
        float, typer.Option("--vacuous", min=0, max=1, help="V of the labels at first.")
    ] = 1.0,
    noise: Annotated[float, typer.Option("--noise", min=0, max=1, help="N of the labels at first.")] = 0.0,
    uncertain: Annotated[
        float, typer.Option("--uncertain", min=0, max=1, help="U of the labels at first.")
    ] = 0.0,
    data: DataOption = None,
    kinds: KindsOption = None,
    class_name: ClassOption = None,
    sets: SetsOption = None,
    methods: MethodsOption = None,
    seed: SeedOption = 0,
    repeats: RepeatsOption = 5,
    folds: FoldsOption = 10,
    bins: BinsOption = 4,
    executor: ExecutorOption = EXECUTOR.default,
    out_dir: OutOption = Path("quercus-queries"),
) -> None:
    """Accuracy against the number of queries: which strategy earns most with an answer.

    Strategies ask for the labels of training rows, one at a time; the true class is answered. At first
    nothing is known (V = 1) by default. Beside the strategies of the service: random queries, and what
    scikit-activeml asks.

    Try:

        quercus experiment queries --sets iris --repeats 1
        quercus experiment queries --max-answers 40 --methods published,random
        quercus experiment queries --vacuous 0 --uncertain .8 --noise .5 -o fig9
    """
    with failing_in_words():
        from quercus.experiments.corruption import Corruption  # noqa: PLC0415  (the server extra)
        from quercus.experiments.protocols import QueryProtocol  # noqa: PLC0415
        from quercus.experiments.strategies import STRATEGIES  # noqa: PLC0415

        grid = QueryProtocol(
            data=data_sets(data, kinds, class_name, sets),
            methods=chosen_methods(methods, STRATEGIES, tuple(STRATEGIES)),
            seed=seed,
            repeats=repeats,
            folds=folds,
            bins=bins,
            base=Corruption(vacuous=vacuous, noise=noise, uncertain=uncertain),
            levels=tuple(float(level) for level in (*range(0, max_answers, step), max_answers)),
        )
        run_grid(grid, out_dir, executor)


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
            help="Read the examples from a CSV or ARFF file. Default: by the textbook's rule.",
        ),
    ] = None,
    examples: Annotated[int, typer.Option("--examples", min=1, max=100_000, help="How many to make.")] = 100,
    sizes: Annotated[
        str, typer.Option("--sizes", metavar="SIZES", help="FROM:TO:STEP, or numbers with commas.")
    ] = "5:100:5",
    class_name: ClassOption = None,
    methods: MethodsOption = None,
    seed: SeedOption = 0,
    repeats: Annotated[int, typer.Option("--trials", min=1, max=1000, help="Trials.")] = 20,
    executor: ExecutorOption = EXECUTOR.default,
    out_dir: OutOption = Path("quercus-restaurant"),
) -> None:
    """The learning curve of the textbook's restaurants.

    Will they wait for a table? Accuracy against the number of examples, which are drawn with replacement
    from 100 restaurants whose class the textbook's tree decides; tested on other restaurants. Examples of a file are
    tested on its rows not drawn.

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
    """Draw the figures of a folder again, from its results.csv alone.

    One figure per sweep: accuracy against the varied level, one panel per data set, with standard errors.

    Try:

        quercus experiment plot quercus-labels
    """
    with failing_in_words():
        draw_figures(folder)


@app.command("table")
def table(
    folder: FolderArgument,
    level: Annotated[float | None, typer.Option("--level", help="Level of the table (the last).")] = None,
    as_json: JsonOption = False,
) -> None:
    """Print a folder's results as Markdown tables.

    Mean accuracy ± standard error over all folds, in percent, a column a data set; means over the sets of u65, u80
    (utility-discounted accuracy of set-valued predictions), nodes and time to fit.

    Try:

        quercus experiment table quercus-learners
        quercus experiment table quercus-queries --level 40
    """
    with failing_in_words():
        from quercus.experiments.results import RESULTS, read_rows  # noqa: PLC0415  (the server extra)
        from quercus.experiments.summary import markdown, sweeps  # noqa: PLC0415

        rows = list(read_rows(folder / RESULTS))
        shown_json = []
        for sweep in sweeps(rows):
            levels = {row.key.level for row in rows if row.key.sweep == sweep}
            at = max(levels) if level is None else level
            if at not in levels:
                shown = ", ".join(f"{known:g}" for known in sorted(levels))
                fail(f"{sweep} was not measured at {at:g}; the levels are {shown}")
            text = markdown(rows, sweep, at)
            shown_json.append({"sweep": sweep, "level": at, "markdown": text})
            if not as_json:
                typer.echo(f"{sweep} = {at:g}\n\n{text}\n")
        if as_json:
            print_json(shown_json)


@app.command("list")
def list_names(data: DataOption = None, as_json: JsonOption = False) -> None:
    """List the names that --methods and --sets take.

    Learners are for labels, learners and restaurant, strategies for queries.

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
        out.print(", ".join(sets), markup=False)
