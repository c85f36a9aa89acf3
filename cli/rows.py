"""``quercus rows``: list the rows of a model by filter and order, or write them to a file."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import typer
from rich.table import Table as RichTable

from quercus.cli.common import DEFAULT_SERVER, ModelArgument, ServerOption, SpreadsheetOption, out
from quercus.cli.completion import complete_labeller
from quercus.cli.output_files import ForceOption, FormatOption, OutputOption, chosen_format, write_chosen
from quercus.client.client import Client
from quercus.client.row_filter import ORDERS, RowFilter
from quercus.files.row_table import row_table
from quercus.specification.shares import percent_text
from quercus.view.rows import likeliest_classes, values_line

DEFAULT_ROWS = 20
"""Rows of the table by default."""
MOST_ROWS = 1000
"""Maximum number of rows of the table."""
SHOWN_VALUES = 4


def rows(
    *,
    model: ModelArgument,
    text: Annotated[
        str,
        typer.Option(
            "--search",
            metavar="TEXT",
            help="Only rows with this text in their id or a value, or with this number.",
        ),
    ] = "",
    class_name: Annotated[
        str,
        typer.Option("--likeliest", metavar="CLASS", help="Only rows whose most likely class is this one."),
    ] = "",
    labeller: Annotated[
        str,
        typer.Option(
            "--labeller",
            metavar="NAME",
            help="Only rows with a label of this labeller that counts.",
            autocompletion=complete_labeller,
        ),
    ] = "",
    guess: Annotated[
        str,
        typer.Option("--guess", metavar="CLASS", help="Only rows for which the model predicts this class."),
    ] = "",
    doubt: Annotated[
        float | None,
        typer.Option("--doubt", metavar="SHARE", help="Only rows with at least this doubt, 0 to 1."),
    ] = None,
    labelled: Annotated[
        bool | None,
        typer.Option(
            "--labelled/--unlabelled", help="Only rows with, or without, evidence about their class."
        ),
    ] = None,
    disputed: Annotated[
        bool, typer.Option("--disputed", help="Only rows whose labellers name different classes.")
    ] = False,
    unexpected: Annotated[
        bool, typer.Option("--unexpected", help="Only rows whose label rules out the predicted class.")
    ] = False,
    order: Annotated[
        str, typer.Option("--order", metavar="ORDER", help=f"Order of the rows: {', '.join(ORDERS)}.")
    ] = "pushed",
    limit: Annotated[
        int | None,
        typer.Option(
            "--first",
            min=1,
            help="At most this number of rows (default: 20 as a table, of 1,000 at most; all otherwise).",
        ),
    ] = None,
    output: OutputOption = None,
    form: FormatOption = None,
    for_spreadsheets: SpreadsheetOption = False,
    force: ForceOption = False,
    server: ServerOption = DEFAULT_SERVER,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON per row.")] = False,
) -> None:
    """Show the rows of a model, all or by a filter, with their class and the prediction.

    The doubt is 1 minus the probability of the class that the newest tree predicts. A class a|b is one of the two.

    Try:

        quercus rows wine --unlabelled --order 'doubt desc'
        quercus rows wine --unexpected
        quercus rows wine --labeller ann --likeliest Barolo -o barolo.csv
    """
    wanted = RowFilter(text, class_name, labeller, guess, doubt, labelled, disputed, unexpected)
    if as_json and output is None and form is None:
        form = "jsonl"
    chosen = chosen_format(output, form, {}, for_spreadsheets=for_spreadsheets, force=force)
    with Client(server) as client:
        if chosen is None:
            _show_rows(client, model, wanted, order, limit or DEFAULT_ROWS)
            return
        specification = client.get_model(model).specification
        found = client.instances(model, wanted, order, with_guesses=True)
        table = row_table(islice(found, limit), specification.attributes, specification.classes)
        write_chosen(table, output, chosen, "rows", for_spreadsheets=for_spreadsheets, as_json=as_json)


def _show_rows(client: Client, model: str, wanted: RowFilter, order: str, limit: int) -> None:
    shown = client.get_model(model)
    page = client.row_page(model, wanted, order, size=min(limit, MOST_ROWS))
    if not page.rows:
        empty = (
            f"{model} has no rows yet" if wanted == RowFilter() else f"no row of {model} passes the filter"
        )
        out.print(empty, soft_wrap=True)
        return
    table = RichTable(box=None, pad_edge=False)
    for title in ("row", "class", "guess"):
        table.add_column(title, overflow="fold")
    table.add_column("doubt", justify="right", no_wrap=True)
    table.add_column("values", overflow="fold")
    for row in page.rows:
        table.add_row(
            row.id,
            "|".join(likeliest_classes(row, shown.specification.classes)),
            "" if row.guess is None else row.guess.class_name,
            "" if row.guess is None else percent_text(row.guess.doubt),
            values_line(row.values, shown, SHOWN_VALUES),
        )
    out.print(table)
    if page.next_page:
        more = "" if len(page.rows) == MOST_ROWS else "more with --first, "
        out.print(f"the first {len(page.rows):,} of {page.total:,}; {more}all with -o FILE", style="dim")
