"""``quercus induce``: the algorithm itself, offline, on files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.table import Table as RichTable

from quercus.cli.common import (
    AttributeOption,
    DelimiterOption,
    DepthOption,
    FileArgument,
    IgnoreOption,
    JsonOption,
    LabelColumnOption,
    LabelFileOption,
    MissingOption,
    NominalOption,
    SvgOption,
    fail,
    needs_server_extra,
    out,
    print_json,
    words_of,
)
from quercus.cli.options import option
from quercus.cli.whole_files import refuse_input, write_picture
from quercus.client.results import Floats
from quercus.files import FileData, FileError, FileTable, open_table, read
from quercus.files.labels import FileLabel, label_of, truth_column
from quercus.specification import parameters
from quercus.specification.attributes import Numeric

if TYPE_CHECKING:
    from quercus.trees.ask.query import Query
    from quercus.trees.growth.abc45 import Induction
    from quercus.trees.tree.node import Node
    from quercus.trees.tree.text_drawing import TreeNames


def induce(
    *,
    file: FileArgument,
    class_name: Annotated[
        str | None,
        typer.Option("--class", metavar="COLUMN", help="Class column (default: class; ARFF: the last)."),
    ] = None,
    label_file: LabelFileOption = None,
    label_column: LabelColumnOption = None,
    truth_file: Annotated[
        Path | None,
        typer.Option(
            "--truth",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="True classes that answer the queries, a line per row (? = cannot tell). Default: the class column.",
        ),
    ] = None,
    alpha: Annotated[float, option(parameters.ALPHA)] = parameters.ALPHA.default,
    budget: Annotated[int, option(parameters.BUDGET)] = parameters.BUDGET.default,
    min_instances: Annotated[int, option(parameters.MIN_INSTANCES)] = parameters.MIN_INSTANCES.default,
    max_depth: Annotated[int | None, option(parameters.MAX_DEPTH)] = None,
    split_significance: Annotated[
        float, option(parameters.SPLIT_SIGNIFICANCE)
    ] = parameters.SPLIT_SIGNIFICANCE.default,
    strategy: Annotated[str, option(parameters.STRATEGY)] = parameters.STRATEGY.default,
    bins: Annotated[int, option(parameters.BINS)] = parameters.BINS.default,
    ignore: IgnoreOption = None,
    nominal: NominalOption = None,
    attribute: AttributeOption = None,
    delimiter: DelimiterOption = ",",
    missing: MissingOption = None,
    svg: SvgOption = None,
    depth: DepthOption = None,
    as_json: JsonOption = False,
) -> None:
    """Grow an active belief decision tree (ABC4.5) from files, without a server.

    Nominal values are sorted (ARFF: in declared order); the classes are in the order of the label file's header, else
    sorted. Numeric columns are divided into equal-width bins over the file.

    Try:

        quercus induce wine.csv --class class
        quercus induce wine.csv --class class --svg wine.svg --depth 4
        quercus induce data.csv --label-file l.csv --truth t.csv --budget 5
    """
    with needs_server_extra("induce"):
        import quercus.trees.growth.abc45  # noqa: F401, PLC0415  (the server extra)
    refuse_input("--svg", svg, file, label_file, truth_file)
    words = words_of(missing)
    table = open_table(file, delimiter=delimiter, missing=words)
    if class_name is not None and class_name not in table.names and label_file is None:
        table.position(class_name, "--class")
    data = read(
        file,
        class_name=class_name if class_name in table.names else None,  # it may name a column of --truth alone
        label_file=label_file,
        label_column=label_column,
        ignore=ignore or [],
        nominal=nominal or [],
        attributes=attribute or [],
        delimiter=delimiter,
        missing=words,
    )
    labels = _label_contours(data)
    answers = None if truth_file is None else open_table(truth_file, delimiter=delimiter, missing=words)
    oracle = _make_oracle(data, class_name, answers)
    if budget and oracle is None and label_file is not None:
        raise typer.BadParameter("--budget needs answers: give --truth FILE")
    induction, names = _grow_tree(
        data=data,
        labels=labels,
        bins=bins,
        alpha=alpha,
        budget=budget,
        oracle=oracle,
        min_instances=min_instances,
        max_depth=max_depth,
        split_significance=split_significance,
        strategy=strategy,
    )
    if svg is not None:
        from quercus.trees.tree.svg_drawing import to_svg  # noqa: PLC0415  (the server extra)

        write_picture(svg, to_svg(induction.tree, names, depth))
    if as_json:
        queries = [_query_json(query, names) for query in induction.queries]
        print_json({"tree": _node_json(induction.tree, names), "queries": queries})
    else:
        _print_induction(induction, names, depth)


def _label_contours(data: FileData) -> Floats:
    """Return the labels of a file as contours (n, l)."""
    if data.labels is None:
        reason = "holds no labels: name the class column with --class, or give --label-file FILE"
        raise FileError(data.path, reason)
    if (data.weights != 1).any():
        fail(f"{data.path} gives weights to its rows; this command counts every row once")
    return np.array(
        [_label_contour(label, data.classes, f"row {row}") for row, label in enumerate(data.labels)]
    )


def _label_contour(label: FileLabel, classes: tuple[str, ...], field: str) -> Floats:
    from quercus.belief.given import LabelReader  # noqa: PLC0415  (the server extra)
    from quercus.belief.label import contour  # noqa: PLC0415

    return contour(LabelReader(classes).read_label(label, field), len(classes))


def _make_oracle(
    data: FileData, class_name: str | None, table: FileTable | None
) -> Callable[[int], Floats | None] | None:
    answers = data.truth
    if table is not None:
        k = truth_column(table, class_name, data.classes)
        answers = tuple(label_of(table, record, k, data.classes) for record in table)
        if len(answers) != len(data):
            fail(f"{table.path} has {len(answers):,} rows, {data.path} has {len(data):,}: one answer per row")
    if answers is None:
        return None
    known = answers
    return lambda row: (
        None if known[row] is None else _label_contour(known[row], data.classes, f"answer {row}")
    )


def _grow_tree(
    *,
    data: FileData,
    labels: Floats,
    bins: int,
    alpha: float,
    budget: int,
    oracle: Callable[[int], Floats | None] | None,
    min_instances: int,
    max_depth: int | None,
    split_significance: float,
    strategy: str,
) -> tuple[Induction, TreeNames]:
    from quercus.belief.errors import InvalidInput  # noqa: PLC0415  (the server extra)
    from quercus.belief.frame import Frame  # noqa: PLC0415
    from quercus.specification.model import Specification  # noqa: PLC0415
    from quercus.trees.growth import abc45  # noqa: PLC0415
    from quercus.trees.tree import encoding, text_drawing  # noqa: PLC0415

    try:
        attributes = tuple(replace(a, bins=bins) if isinstance(a, Numeric) else a for a in data.attributes)
        spec = Specification(attributes, Frame(data.classes), warmup_rows=len(data))
        edges = encoding.edges_in_force(spec, data.values)
        codes = encoding.Encoder(spec.attributes, edges).codes(data.values)
        branches = encoding.branch_names(spec.attributes, edges)
        induction = abc45.induce(
            codes,
            [len(names) for names in branches],
            labels,
            alpha=alpha,
            budget=budget,
            oracle=oracle,
            min_instances=min_instances,
            max_depth=max_depth,
            split_significance=split_significance,
            strategy=strategy,
            ordered=[bins if isinstance(a, Numeric) else 0 for a in attributes],
        )
    except InvalidInput as error:
        fail(f"{data.path}: {error}")
    return induction, text_drawing.TreeNames(data.classes, tuple(a.name for a in attributes), branches)


def _node_json(node: Node, names: TreeNames) -> dict[str, Any]:
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


def _query_json(query: Query, names: TreeNames) -> dict[str, Any]:
    k, code = query.attribute, query.code
    return {
        "row": query.instance,
        "path": [[names.attributes[at], names.branch(at, branch)] for at, branch in query.path],
        "attribute": None if k is None else names.attributes[k],
        "value": None if k is None or code is None else names.branch(k, code),
        "score": query.score,
    }


def _print_induction(induction: Induction, names: TreeNames, depth: int | None) -> None:
    from quercus.trees.tree.text_drawing import to_text  # noqa: PLC0415  (the server extra)

    if induction.queries:
        table = RichTable("asked", "row", "in node", "for", "score", box=None)
        for number, query in enumerate(induction.queries, 1):
            each = _query_json(query, names)
            path = ", ".join(f"{a} = {v}" for a, v in each["path"]) or "root"
            asked_for = "itself" if each["attribute"] is None else f"{each['attribute']} = {each['value']}"
            table.add_row(str(number), str(each["row"]), path, asked_for, f"{each['score']:.4f}")
        out.print(table)
        out.print()
    out.print(to_text(induction.tree, names, depth), markup=False, soft_wrap=True)
