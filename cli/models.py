"""``quercus models``: list, show, create, change, delete."""

from __future__ import annotations

import shlex
import sys
from contextlib import AbstractContextManager
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from quercus.belief.errors import InvalidInput
from quercus.cli.common import (
    DEFAULT_SERVER,
    ClassColumnOption,
    ClassNamesOption,
    DelimiterOption,
    JsonOption,
    MissingOption,
    ModelArgument,
    ServerOption,
    out,
    print_json,
    report,
    words_of,
)
from quercus.cli.inspect import (
    COLUMN_OPTIONS,
    NO_CHOICES,
    class_choice,
    print_remarks,
    remark_json,
    telling_rows,
)
from quercus.cli.model_options import BinsOption, CutsOption, with_branches, with_model_options
from quercus.cli.options import with_options
from quercus.cli.specfile import read_guidance, read_presentation, read_specification, to_dict
from quercus.client.client import Client
from quercus.client.places import naming_places
from quercus.client.results import Model
from quercus.client.specifications import Specification
from quercus.files import open_table
from quercus.files.faults import naming_columns
from quercus.files.inspection import Remark
from quercus.files.schema import class_column, infer_schema, which_class
from quercus.files.words import typed_attribute
from quercus.specification.attributes import Attribute
from quercus.specification.model import CHANGEABLE
from quercus.view.terminal.models import model_page, models_table
from quercus.view.words import counted

app = typer.Typer(no_args_is_help=True, help="List, show, create, change and delete models.")


@app.command("list")
def list_models(server: ServerOption = DEFAULT_SERVER, as_json: JsonOption = False) -> None:
    """List the models.

    Columns: classes, rows, answers, open queries, the newest tree, the number of events that it has not learned from
    yet, and the age of the oldest of them.

    Try:

        quercus models list
    """
    with Client(server) as client:
        models = list(client.models())
    none = "no models yet; create one with: quercus models create NAME FILE --class COLUMN"
    report(as_json, [model_json(model) for model in models], models_table(models) if models else none)


@app.command("show")
def show_model(
    name: ModelArgument, server: ServerOption = DEFAULT_SERVER, as_json: JsonOption = False
) -> None:
    """Show a model: its specification and its progress.

    quercus models create accepts the output of --json.

    Try:

        quercus models show wine
        quercus models show wine --json > wine.json
    """
    with Client(server) as client:
        model = client.get_model(name)
    report(as_json, model_json(model), model_page(model))


@app.command("create")
@with_model_options()
@with_options(COLUMN_OPTIONS, NO_CHOICES, into="columns")
def create_model(
    *,
    name: Annotated[
        str,
        typer.Argument(
            help="Name of the model: 1 to 63 characters of a-z 0-9 _ -, beginning with a letter.",
            show_default=False,
        ),
    ],
    file: Annotated[
        Path,
        typer.Argument(
            help="CSV or ARFF (may be compressed), Parquet, Arrow, or a specification: .toml, .json.",
            exists=True,
            dir_okay=False,
            readable=True,
            show_default=False,
        ),
    ],
    class_name: ClassColumnOption = None,
    classes: ClassNamesOption = None,
    columns: dict[str, Any],
    bins: BinsOption = None,
    cuts: CutsOption = None,
    options: dict[str, Any],
    delimiter: DelimiterOption = ",",
    missing: MissingOption = None,
    server: ServerOption = DEFAULT_SERVER,
    as_json: JsonOption = False,
) -> None:
    """Create a model from a specification (.toml, .json) or the columns of a file (CSV, ARFF, Parquet, Arrow).

    By default the model is an active-forest: a forest that asks for labels, up to --budget answers, with a tree beside
    it for people to read. --learner chooses another learner.

    At its end the command reports what looks wrong in the file, which columns were left out, and the flags that change
    this; ``quercus inspect`` shows the same without a server. No rows are pushed: use ``quercus push``.

    Try:

        quercus models create wine wine.csv --class class --budget 40
        quercus models create triage triage.toml
    """
    labelled, remarks = "", tuple[Remark, ...]()
    naming: AbstractContextManager[None]
    if file.suffix.lower() in {".toml", ".json"}:
        if any((class_name, classes, missing, *columns.values())) or bins is not None or cuts is not None:
            raise typer.BadParameter(
                "--class, --classes, --ignore, --nominal, --numeric, --attribute, --missing, --bins and --cuts "
                "describe a data file, not a specification"
            )
        specification = read_specification(file)
        naming = naming_places(specification)
    else:
        table = open_table(file, delimiter=delimiter, missing=words_of(missing), quietly=True)
        frame, column = class_choice(table, class_name, classes)
        if column is None and classes is None:
            raise typer.BadParameter(which_class(table, ", or give the classes with --classes A,B,C"))
        with telling_rows(table) as told:
            schema = infer_schema(told, class_column=column, frame=frame, **columns)
        specification = Specification(with_branches(schema.attributes, bins, cuts), schema.classes)
        remarks = schema.remarks
        labelled = f"{schema.labelled:,} of {schema.rows:,}" if schema.labelled else ""
        naming = naming_columns(table, specification, class_column(table, class_name))
    with Client(server) as client, naming:
        model = client.create_model(name, replace(specification, **options))
    if as_json:
        print_json(model_json(model) | {"remarks": [remark_json(each) for each in remarks]})
        return
    out.print(model_page(model))
    if remarks:
        out.print()
        print_remarks(remarks, out)
    out.print(f"\ncreated; push rows with: quercus push {name} FILE")
    if labelled:
        flags = "--labels" if class_name is None else f"--labels --class {shlex.quote(class_name)}"
        hint = f"{labelled} rows of {file.name} are labelled; their labels are sent only with {flags}"
        out.print(hint, soft_wrap=True)
    if not model.budget:
        hint = f"give it one with: quercus models update {name} --budget N"
        out.print(f"its budget is 0, so it will ask no queries; {hint}", soft_wrap=True)


@app.command("update")
@with_model_options(changeable=True)
def update_model(
    *,
    name: ModelArgument,
    options: dict[str, Any],
    presentation: Annotated[
        Path | None,
        typer.Option(
            "--presentation",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="How rows are shown to labellers: TOML or JSON, see docs/display.md.",
        ),
    ] = None,
    guidance: Annotated[
        Path | None,
        typer.Option(
            "--guidance",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="Title, guidelines and examples for labellers: TOML or JSON, see docs/labelling.md.",
        ),
    ] = None,
    add_class: Annotated[
        list[str] | None,
        typer.Option(
            "--add-class", metavar="NAME", help="A further class, added after the existing ones; repeatable."
        ),
    ] = None,
    add_attribute: Annotated[
        list[str] | None,
        typer.Option(
            "--add-attribute",
            metavar="NAME:KIND",
            help="A further attribute, of kind number, names, or its first names as in colour:red,green; repeatable.",
        ),
    ] = None,
    server: ServerOption = DEFAULT_SERVER,
    as_json: JsonOption = False,
) -> None:
    """Change parameters, budget, strategy, presentation or guidance of a model; the grower updates the tree.

    What is not given stays as it is. Classes and attributes may be added; the existing ones stay unchanged. Rows pushed
    earlier have no value of a new attribute. Labels given earlier exclude a new class, unless they are vacuous.

    Try:

        quercus models update wine --budget 60
        quercus models update wine --add-class rosé --add-attribute age:number
    """
    if presentation is not None:
        options["presentation"] = read_presentation(presentation)
    if guidance is not None:
        options["guidance"] = read_guidance(guidance)
    attributes = [_added_attribute(each) for each in add_attribute or ()]
    if not (options or add_class or attributes):
        flags = ", ".join(f"--{field.replace('_', '-')}" for field in CHANGEABLE)
        raise typer.BadParameter(f"nothing to change: give {flags}, --add-class or --add-attribute")
    with Client(server) as client:
        if add_class or attributes:
            model = client.extend_model(name, classes=add_class or (), attributes=attributes)
        if options:
            model = client.update_model(name, **options)
    report(as_json, model_json(model), model_page(model))


def _added_attribute(text: str) -> Attribute:
    """Return the attribute that --add-attribute describes."""
    try:
        return typed_attribute(text)
    except InvalidInput as error:
        raise typer.BadParameter(f"--add-attribute {error.reason}") from None


@app.command("delete")
def delete_model(
    name: ModelArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Delete without asking for confirmation.")] = False,
    server: ServerOption = DEFAULT_SERVER,
    as_json: JsonOption = False,
) -> None:
    """Delete a model with its rows, answers and trees.

    This cannot be undone.

    Try:

        quercus models delete wine --yes
    """
    with Client(server) as client:
        model = client.get_model(name)
        if not yes:
            if as_json or not sys.stdin.isatty():
                raise typer.BadParameter("there is no terminal to ask for confirmation: give --yes")
            rows, answers = counted(model.instance_count, "row"), counted(model.queries_answered, "answer")
            typer.confirm(f"delete {name!r} with its {rows} and {answers}?", abort=True)
        client.delete_model(name)
    report(as_json, {"deleted": name}, f"deleted {name}")


def model_json(model: Model) -> dict[str, Any]:
    """Return a model as JSON; its specification has the form that ``models create`` reads."""
    recent = model.accuracy
    return {each.name: getattr(model, each.name) for each in fields(model)} | {
        "specification": to_dict(model.specification),
        "created_at": model.created_at.isoformat(),
        "lag": model.lag,
        "accuracy": recent
        and {name: getattr(recent, name) for name in ("rows", "precise_rows", "accuracy", "expected")}
        | {"blocks": [asdict(block) for block in recent.blocks]},
        "average_confidence": model.average_confidence and asdict(model.average_confidence),
        "other_names": dict(model.other_names),
        "drift": model.drift and asdict(model.drift),
        "extensions": [asdict(each) for each in model.extensions],
    }
