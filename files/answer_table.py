"""Answers as a table for other programs: the answer, its row, its labeller and its state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC
from typing import Final

from quercus.client.results import Answer
from quercus.client.values import cell_of
from quercus.files.writing import OutputTable
from quercus.specification.attributes import Attribute, Numeric, column_names
from quercus.specification.written_labels import write_name

HEADER: Final[dict[str, type]] = {
    "number": int, "time": str, "item": str, "labeller": str, "answer": str, "kind": str, "state": str,
    "reliability": float, "comment": str, "took_s": float, "query": int, "former": int, "former_answer": str,
    "later": int, "conflict": bool, "class": str, "shown": str,
}  # fmt: skip


def answer_table(answers: Iterable[Answer], attributes: Sequence[Attribute] = ()) -> OutputTable:
    """Return a table with a row for each answer.

    Parameters
    ----------
    answers
        In the order of the rows.
    attributes
        Attributes whose values become columns as well; the answers contain the values.
    """
    names = column_names([each.name for each in attributes], HEADER)
    kinds = [*HEADER.values(), *(float if isinstance(each, Numeric) else str for each in attributes)]
    rows = (
        [
            each.number, each.at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            each.instance, each.labeller, each.text or None, each.kind, each.state, each.reliability,
            each.comment or None, each.took_s, each.query, each.former, each.former_text or None, each.later,
            each.conflict, each.class_name and write_name(each.class_name), each.shown or None,
            *(cell_of(each.values.get(attribute.name)) for attribute in attributes),
        ]
        for each in answers
    )  # fmt: skip
    return OutputTable([*HEADER, *names], kinds, rows)
