"""``quercus induce``: grow a model from a file, without a server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table as RichTable

from quercus.belief.errors import InvalidInput
from quercus.cli.common import (
    DelimiterOption,
    FileArgument,
    JsonOption,
    LabelColumnOption,
    LabelFileOption,
    MissingOption,
    err,
    fail,
    needs_extra,
    out,
    words_of,
)
from quercus.cli.inspect import COLUMN_OPTIONS, NO_CHOICES, print_remarks
from quercus.cli.model_options import BinsOption, CutsOption, with_branches, with_model_options
from quercus.cli.options import with_options
from quercus.cli.output_files import refuse_input
from quercus.cli.tree import TREE_OPTIONS, write_trees
from quercus.client.places import plain_text
from quercus.client.specifications import Specification
from quercus.files import FileError, open_table, read
from quercus.files.labels import FileLabel, label_of, truth_column

if TYPE_CHECKING:  # the server extra
    from quercus.cli.offline_model import OfflineModel
    from quercus.trees import UncertainValues


LEARNER = "abc45"
"""The default learner: its tree is easy to read, and is also the one beside a forest."""


@with_model_options(by="default", learner=LEARNER)
@with_options(COLUMN_OPTIONS, NO_CHOICES, into="columns")
@with_options(TREE_OPTIONS, {"rules": False}, into="output")
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
    columns: dict[str, Any],
    bins: BinsOption = None,
    cuts: CutsOption = None,
    options: dict[str, Any],
    delimiter: DelimiterOption = ",",
    missing: MissingOption = None,
    output: dict[str, Any],
    as_json: JsonOption = False,
) -> None:
    """Grow the trees of any learner from files, without a server.

    The options are those of quercus models create, and the result is what a server would serve for the same rows,
    labels and answers. Only the default learner differs: abc45, which also grows the tree beside active-forest. If true
    classes are known, the accuracy of the predictions is printed. Columns that cannot help, such as ids, are left out,
    and remarks say what looks wrong in the file: see quercus inspect. Nominal values are sorted (ARFF: in declared
    order); the classes are in the order of the label file's header, else sorted. For the trees of the papers:
    --split-significance 0.

    Try:

        quercus induce wine.csv --class class
        quercus induce wine.csv --cuts 32 --svg wine.svg --depth 4
        quercus induce wine.csv --learner c45 --onnx wine.onnx
        quercus induce wine.csv --learner c45 -p confidence=0.1 --rules
        quercus induce wine.csv --learner forest -p base=c45 --member 3
        quercus induce data.csv --label-file l.csv --truth t.csv --budget 5
    """
    with needs_extra("induce"):
        from quercus.belief.given import LabelReader  # noqa: PLC0415  (the server extra)
        from quercus.cli.offline_model import checked_specification, grow_offline  # noqa: PLC0415
        from quercus.trees import UncertainValues  # noqa: PLC0415
    for name in ("dot", "svg", "onnx"):
        refuse_input(f"--{name}", output[name], file, label_file, truth_file)
    words = words_of(missing)
    table = open_table(file, delimiter=delimiter, missing=words, quietly=True)
    if class_name is not None and class_name not in table.names and label_file is None:
        table.position(class_name, "--class")
    data = read(
        file,
        class_name=class_name if class_name in table.names else None,  # it may name a column of --truth alone
        label_file=label_file,
        label_column=label_column,
        delimiter=delimiter,
        missing=words,
        quietly=True,
        **columns,
    )
    print_remarks(data.remarks, err)
    if data.labels is None:
        reason = "holds no labels: name the class column with --class, or give --label-file FILE"
        raise FileError(data.path, reason)
    if (data.weights != 1).any():
        fail(f"{data.path} gives weights to its rows; but this command counts every row once")
    labels, truth = data.labels, data.truth
    if truth_file is not None:
        given = open_table(truth_file, delimiter=delimiter, missing=words)
        k = truth_column(given, class_name, data.classes)
        truth = tuple(label_of(given, record, k, data.classes) for record in given)
        if len(truth) != len(data):
            fail(f"{given.path} has {len(truth):,} rows, {data.path} has {len(data):,}: one answer per row")
    if options.get("budget") and truth is None:
        raise typer.BadParameter("--budget needs answers: give --truth FILE")
    attributes = with_branches(data.attributes, bins, cuts)
    with _failing_in_words():
        specification = checked_specification(
            Specification(attributes, data.classes, **({"learner": LEARNER} | options))
        )
    reader = LabelReader(data.classes)
    with _failing_in_words(f"{data.path}: "):
        known = [reader.read_label(label, f"row {row}") for row, label in enumerate(labels)]
        answers = [
            None if label is None else reader.read_label(label, f"answer {row}")
            for row, label in enumerate(truth or ())
        ]
        oracle = None if truth is None else answers.__getitem__
        cells = UncertainValues(data.values, data.parts)
        model = grow_offline(specification, cells, known, oracle)
    if model.queries and not as_json:
        asked = RichTable("asked", "row", "in node", "for", "score", box=None)
        for number, query in enumerate(model.queries, 1):
            path = ", ".join(f"{a} = {v}" for a, v in query["path"]) or "root"
            asked_for = "itself" if query["attribute"] is None else f"{query['attribute']} = {query['value']}"
            asked.add_row(str(number), str(query["row"]), path, asked_for, f"{query['score']:.4f}")
        out.print(asked)
        out.print()
    more: dict[str, Any] = {"queries": list(model.queries)}
    if truth is not None and truth is not labels:
        more["accuracy"] = _count_right(model, cells, labels, truth)
    with _failing_in_words():
        write_trees(model, as_json, **output, **more)
    if "accuracy" in more and not as_json:
        err.print(_accuracy_text(**more["accuracy"]))


@contextmanager
def _failing_in_words(prefix: str = "") -> Iterator[None]:
    try:
        yield
    except InvalidInput as error:
        fail(f"{prefix}{plain_text(error)}")


def _count_right(
    model: OfflineModel, cells: UncertainValues, labels: Sequence[FileLabel], truth: Sequence[FileLabel]
) -> dict[str, int]:
    """Count correct predictions: of all rows with a true class, and of those among them without a label."""
    rows = [row for row, klass in enumerate(truth) if isinstance(klass, str)]
    said = model.predicted_classes(cells)
    right = {row for row in rows if said[row] == truth[row]}
    untold = [row for row in rows if labels[row] is None and row not in model.answered]
    return {
        "rows": len(rows),
        "right": len(right),
        "unlabelled_rows": len(untold),
        "unlabelled_right": len(right.intersection(untold)),
    }


def _accuracy_text(rows: int, right: int, unlabelled_rows: int, unlabelled_right: int) -> str:
    if not rows:
        return "accuracy unknown: no row has a single true class"
    text = f"accuracy {right / rows:.4f} ({right:,} of {rows:,})"
    if unlabelled_rows:
        share = f"{unlabelled_right / unlabelled_rows:.4f} ({unlabelled_right:,} of {unlabelled_rows:,})"
        text += f"; {share} on rows without a label or an answer"
    return text
