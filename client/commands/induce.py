"""``quercus induce``: the algorithm itself, offline, on files."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.table import Table as RichTable

from quercus.client.commands.common import (
    DelimiterOption,
    FileArgument,
    JsonOption,
    fail,
    needs_server_extra,
    out,
    print_json,
)
from quercus.client.files import FileError, Table, open_table
from quercus.client.files.labels import contours, truth_column
from quercus.client.files.schema import Binding, class_of, infer
from quercus.client.results import Floats, Nominal, Specification

if TYPE_CHECKING:
    from quercus.trees.abc45 import Induction
    from quercus.trees.drawing import Names
    from quercus.trees.query import Query
    from quercus.trees.tree import Node


def induce(
    *,
    file: FileArgument,
    class_name: Annotated[
        str | None, typer.Option("--class", metavar="COLUMN", help="Class column (class; ARFF: the last).")
    ] = None,
    contours_file: Annotated[
        Path | None,
        typer.Option(
            "--contours",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="The labels: a column of plausibilities a class; its header is the frame. Default: the class column.",
        ),
    ] = None,
    truth_file: Annotated[
        Path | None,
        typer.Option(
            "--truth",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="Who answers: the true classes, a line a row (? = cannot tell). Default: the class column.",
        ),
    ] = None,
    alpha: Annotated[float, typer.Option("--alpha", min=0, max=1, help="Level of the likelihood cut.")] = 0.8,
    budget: Annotated[int, typer.Option("--budget", min=0, help="Most answers.")] = 0,
    min_instances: Annotated[
        int, typer.Option("--min-instances", min=1, help="A node with fewer rows is a leaf.")
    ] = 2,
    max_depth: Annotated[
        int | None, typer.Option("--max-depth", min=0, help="Every node at this depth is a leaf.")
    ] = None,
    bins: Annotated[
        int, typer.Option("--bins", min=2, max=256, help="Equal-width bins of numeric columns.")
    ] = 4,
    ignore: Annotated[list[str] | None, typer.Option("--ignore", metavar="COLUMN", help="Leave out.")] = None,
    nominal: Annotated[
        list[str] | None, typer.Option("--nominal", metavar="COLUMN", help="Numbers that are names.")
    ] = None,
    delimiter: DelimiterOption = ",",
    as_json: JsonOption = False,
) -> None:
    """Grow an active belief decision tree (ABC4.5) from files, without a server.

    Nominal values stand in sorted order (ARFF: as declared), the frame in the order of the contour file's
    header, else sorted. Numeric columns are cut into equal-width bins over the file.

    Try:

        quercus induce wine.csv --class class
        quercus induce data.csv --contours labels.csv --truth truth.csv --budget 5
    """
    with needs_server_extra("induce"):
        import quercus.trees.abc45  # noqa: F401, PLC0415  (the server extra)
    data = _read(
        table=open_table(file, delimiter=delimiter),
        class_name=class_name,
        contours_file=contours_file,
        ignore=ignore or [],
        nominal=nominal or [],
    )
    oracle = _oracle(data, class_name, truth_file, delimiter)
    if budget and oracle is None and contours_file is not None:
        raise typer.BadParameter("--budget needs somebody who answers: give --truth FILE")
    induction, names = _induce(
        data=data,
        bins=bins,
        alpha=alpha,
        budget=budget,
        oracle=oracle,
        min_instances=min_instances,
        max_depth=max_depth,
    )
    if as_json:
        queries = [_query_json(query, names) for query in induction.queries]
        print_json({"tree": _node_json(induction.tree, names), "queries": queries})
    else:
        _print(induction, names)


@dataclass(frozen=True)
class _Data:
    """What the files say: rows as text and numbers, contours (n, l), true classes if a column has them."""

    path: Path
    specification: Specification
    rows: list[list[Any]]
    contours: Floats
    truth: list[str | None] | None


def _read(
    *,
    table: Table,
    class_name: str | None,
    contours_file: Path | None,
    ignore: list[str],
    nominal: list[str],
) -> _Data:
    column = _class_column(table, class_name, contours_file)
    schema = infer(table, class_column=column, ignore=ignore, nominal=nominal)
    source = None if contours_file is None else open_table(contours_file)
    classes = schema.classes if source is None else source.names
    specification = Specification(schema.attributes, classes)
    binding = Binding(table, specification)
    rows = list(binding)
    truth = None
    if column is not None:
        k = table.names.index(column)
        truth = [class_of(table, record, k, classes) for record in table]
    if source is not None:
        labels = list(contours(source, classes))
    elif truth is not None:
        labels = [_contour(name, classes) for name in truth]
    else:
        reason = "holds no labels: name the class column with --class, or give --contours FILE"
        raise FileError(table.path, reason)
    if len(labels) != len(rows):
        fail(f"{contours_file} has {len(labels):,} rows, {table.path} has {len(rows):,}: one contour a row")
    return _Data(table.path, specification, rows, np.array(labels), truth)


def _class_column(table: Table, given: str | None, contours_file: Path | None) -> str | None:
    """The class column; with contours there need not be one (``--class`` may then name it in ``--truth``)."""
    if given is not None:
        if given not in table.names and contours_file is None:
            table.position(given, "--class")
        return given if given in table.names else None
    if "class" in table.names:
        return "class"
    return table.names[-1] if table.is_arff and contours_file is None else None


def _contour(name: str | None, classes: tuple[str, ...] | Any) -> Floats:
    if name is None:
        return np.ones(len(classes))
    return np.array([1.0 if name == each else 0.0 for each in classes])


def _oracle(
    data: _Data, class_name: str | None, truth_file: Path | None, delimiter: str
) -> Callable[[int], Floats | None] | None:
    classes = data.specification.classes
    answers = data.truth
    if truth_file is not None:
        table = open_table(truth_file, delimiter=delimiter)
        k = truth_column(table, class_name)
        answers = [class_of(table, record, k, classes) for record in table]
        if len(answers) != len(data.rows):
            fail(
                f"{truth_file} has {len(answers):,} rows, {data.path} has {len(data.rows):,}: one answer a row"
            )
    if answers is None:
        return None
    known = answers
    return lambda row: None if known[row] is None else _contour(known[row], classes)


def _induce(
    *,
    data: _Data,
    bins: int,
    alpha: float,
    budget: int,
    oracle: Callable[[int], Floats | None] | None,
    min_instances: int,
    max_depth: int | None,
) -> tuple[Induction, Names]:
    from quercus.belief.errors import InvalidInput  # noqa: PLC0415  (the server extra)
    from quercus.belief.frame import Frame  # noqa: PLC0415
    from quercus.trees import abc45, drawing, encoding, specification  # noqa: PLC0415

    classes = tuple(data.specification.classes)
    try:
        attributes = tuple(
            specification.Nominal(a.name, tuple(a.values))
            if isinstance(a, Nominal)
            else specification.Numeric(a.name, bins)
            for a in data.specification.attributes
        )
        spec = specification.Specification(attributes, Frame(classes), warmup_rows=len(data.rows))
        values = _values(data)
        edges = encoding.edges_in_force(spec, values)
        codes = encoding.Encoder(spec.attributes, edges).codes(values)
        branches = encoding.branch_names(spec.attributes, edges)
        induction = abc45.induce(
            codes,
            [len(names) for names in branches],
            data.contours,
            alpha=alpha,
            budget=budget,
            oracle=oracle,
            min_instances=min_instances,
            max_depth=max_depth,
        )
    except InvalidInput as error:
        fail(f"{data.path}: {error}")
    return induction, drawing.Names(classes, tuple(a.name for a in attributes), branches)


def _values(data: _Data) -> Floats:
    """Rows as the trees take them: numbers, indices of nominal values, NaN for missing."""
    values = np.empty((len(data.rows), len(data.specification.attributes)))
    for k, attribute in enumerate(data.specification.attributes):
        column = [row[k] for row in data.rows]
        if isinstance(attribute, Nominal):
            index = {value: i for i, value in enumerate(attribute.values)}
            values[:, k] = [math.nan if cell is None else index[cell] for cell in column]
        else:
            values[:, k] = [math.nan if cell is None else cell for cell in column]
    return values


def _node_json(node: Node, names: Names) -> dict[str, Any]:
    attribute = node.attribute
    return {
        "attribute": None if attribute is None else names.attributes[attribute],
        "class": names.classes[node.klass],
        "theta": list(node.theta),
        "count": node.count,
        "intervals": {names.attributes[k]: list(ends) for k, ends in node.intervals.items()},
        "children": {
            names.branch(attribute, code): _node_json(child, names)
            for code, child in node.children.items()
            if attribute is not None
        },
    }


def _query_json(query: Query, names: Names) -> dict[str, Any]:
    return {
        "row": query.instance,
        "path": [[names.attributes[k], names.branch(k, code)] for k, code in query.path],
        "attribute": names.attributes[query.attribute],
        "value": names.branch(query.attribute, query.code),
        "score": query.score,
    }


def _print(induction: Induction, names: Names) -> None:
    from quercus.trees.drawing import to_text  # noqa: PLC0415  (the server extra)

    if induction.queries:
        table = RichTable("asked", "row", "in node", "for", "score", box=None)
        for number, query in enumerate(induction.queries, 1):
            each = _query_json(query, names)
            path = ", ".join(f"{a} = {v}" for a, v in each["path"]) or "root"
            asked_for = f"{each['attribute']} = {each['value']}"
            table.add_row(str(number), str(each["row"]), path, asked_for, f"{each['score']:.4f}")
        out.print(table)
        out.print()
    out.print(to_text(induction.tree, names), markup=False, soft_wrap=True)
