"""Exports of annotation tools: the labels of items by labellers.

*Label Studio*: the exports JSON, JSON-MIN and CSV, choices only. *Argilla*: records with responses. *doccano*: JSON
lines with a list of labels, or CSV with ``#`` between them. *Prodigy*: JSON lines of choices, or of single labels that
were accepted or rejected; all acceptances and rejections of a row by a person are one statement.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from quercus.belief.errors import shown
from quercus.client.bridges.label_studio_tasks import (
    BadTaskError,
    choices_of,
    fields_of,
    item_of,
    labeller_of,
)
from quercus.files.answers import FileAnswer
from quercus.files.errors import FileError
from quercus.files.table import numbered_lines
from quercus.specification.values import Spellings, canonical_cell
from quercus.specification.written_labels import write_label

MOST_BYTES: Final = 1 << 30
_Reader = Callable[["_Source", Sequence[dict[str, Any]]], list[FileAnswer]]
_ItemReader = Callable[["_Source", dict[str, Any], int], Iterator[FileAnswer]]


class _Source:
    """A file to read: its path, the classes, the field of ids and the question."""

    def __init__(self, path: Path, classes: Sequence[str], id_field: str, question: str) -> None:
        self.path, self.classes = path, tuple(classes)
        self.id_field, self.question = id_field, question

    def item_id(self, places: Sequence[dict[str, Any]], number: int) -> str:
        """Return the id of an item, from the first place with the id field."""
        found = item_of(places, self.id_field)
        if found is None:
            raise FileError(
                self.path, f"item {number} has no field {shown(self.id_field)}; name another with --item"
            )
        return found

    def make_answer(self, number: int, item: str, labeller: str, names: object) -> FileAnswer:
        """Return an answer: one class, or one of several."""
        spellings = Spellings(self.classes)
        chosen: list[str] = []
        for name in names if isinstance(names, list) else [names]:
            text = canonical_cell(name) if isinstance(name, str | bool | int) else None
            found = None if text is None else spellings.of(name if isinstance(name, str) else text)
            if found is None:
                known = ", ".join(self.classes)
                raise FileError(
                    self.path,
                    f"item {number}: {shown(name)} is not a class of the model; its classes are {known}",
                )
            chosen.append(found)
        label: str | frozenset[str] = chosen[0] if len(chosen) == 1 else frozenset(chosen)
        return FileAnswer(number, item, labeller, label, write_label(sorted(set(chosen))))


def read_annotations(
    path: Path, form: str, classes: Sequence[str], *, id_field: str = "id", question: str = ""
) -> list[FileAnswer]:
    """Return the answers of a file, in order.

    Parameters
    ----------
    path
        The file.
    form
        One of `FORMS`.
    classes
        The frame of the model.
    id_field
        Field with the id of the row, in the data of an item or in the item itself.
    question
        Name of the question, if a file has several.

    Raises
    ------
    FileError
        For an invalid item; it names the item (from 1) and the error.
    """
    source, reader = _Source(path, classes, id_field, question), FORMS[form]
    items = _read_items(path)
    for number, item in enumerate(items, 1):
        if not isinstance(item, dict):
            raise FileError(path, f"item {number} is {type(item).__name__}, must be an object")
    return reader(source, items)


def _one_by_one(read_item: _ItemReader) -> _Reader:
    """Return the reader of a file in which each item is read separately."""
    return lambda source, items: [
        answer for number, item in enumerate(items, 1) for answer in read_item(source, item, number)
    ]


def _read_items(path: Path) -> list[Any]:
    """Return the items of a JSON list or of JSON lines, or the rows of a CSV file as objects with texts."""
    if path.name.lower().endswith(".csv"):
        try:
            return list(csv.DictReader((text for _, text in numbered_lines(path)), strict=True))
        except csv.Error as error:
            raise FileError(path, f"malformed CSV: {error}") from None
    try:
        if path.stat().st_size > MOST_BYTES:
            raise FileError(path, f"has more than {MOST_BYTES >> 20:,} MiB: split it")
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise FileError(path, f"byte {error.start + 1} is not UTF-8") from None
    except OSError as error:
        raise FileError(path, f"cannot be read: {error.strerror}") from None
    if text.lstrip().startswith("["):
        found: list[Any] = _parse_json(path, text, 0)
        return found
    # not splitlines, since texts in JSON may contain paragraph separators and other characters at which it splits
    return [_parse_json(path, line, k) for k, line in enumerate(text.split("\n"), 1) if line.strip()]


def _parse_json(path: Path, text: str, line: int) -> Any:
    try:
        content = json.loads(text)
        if "\\u" in text:
            json.dumps(content, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise FileError(path, "has half of a surrogate pair, which is not a character", line) from None
    except json.JSONDecodeError as error:
        raise FileError(path, f"is not JSON: {error.msg}", line or error.lineno, error.colno) from None
    except RecursionError:
        raise FileError(path, "is nested too deep", line) from None
    except ValueError:
        raise FileError(path, "has a whole number of thousands of digits", line) from None
    return content


def _list_or_empty(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _label_studio(source: _Source, task: dict[str, Any], number: int) -> Iterator[FileAnswer]:
    if "annotation_id" in task and "annotations" not in task:
        yield from _label_studio_row(source, task, number)
        return
    for annotation in map(fields_of, _list_or_empty(task.get("annotations"))):
        try:
            names = choices_of(annotation, source.question)
        except BadTaskError as error:
            raise FileError(source.path, f"item {number} {error}") from None
        if names is not None:
            item = source.item_id((fields_of(task.get("data")), task), number)
            yield source.make_answer(number, item, labeller_of(annotation), names)


def _label_studio_row(source: _Source, row: dict[str, Any], number: int) -> Iterator[FileAnswer]:
    """Yield the answer in a row of the exports JSON-MIN and CSV, which have data and choices in one object."""
    chosen = {name: names for name, value in row.items() if (names := _chosen_names(value))}
    if source.question:
        questions = [source.question] if source.question in chosen else []
    else:
        own = ("id", "annotator", "annotation_id", source.id_field)
        questions = [name for name, names in chosen.items() if name not in own and names[0] in source.classes]
        if len(questions) != 1:
            what = f"several choices ({', '.join(questions)})" if questions else "no choices of classes"
            raise FileError(source.path, f"item {number} has {what}; name the question with --question")
    for question in questions:
        who = labeller_of({"completed_by": row.get("annotator")})
        yield source.make_answer(number, source.item_id((row,), number), who, chosen[question])


def _chosen_names(value: object) -> list[str]:
    """Return the choices in a field: one, a list, or an object with ``choices``, also as JSON text; else none."""
    if isinstance(value, str) and value.startswith(("{", "[")):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return []
    if isinstance(value, dict):
        value = value.get("choices")
    if isinstance(value, str) and value:
        return [value]
    names = _list_or_empty(value)
    return names if all(isinstance(name, str) for name in names) else []


def _doccano_answers(source: _Source, document: dict[str, Any], number: int) -> Iterator[FileAnswer]:
    """Yield the answer about a document; in a multi-label project it may be a set of classes, ``a#b`` in CSV."""
    if "label" not in document:
        raise FileError(
            source.path, f"item {number} has no field 'label': export the labels of a text classification"
        )
    said = document["label"]
    if isinstance(said, str):
        said = [said] if said in source.classes else [name for name in said.split("#") if name]
    if said:
        item = source.item_id((document, fields_of(document.get("meta"))), number)
        yield source.make_answer(number, item, str(document.get("annotator") or ""), said)


def _argilla_answers(source: _Source, record: dict[str, Any], number: int) -> Iterator[FileAnswer]:
    responses = fields_of(record.get("responses"))
    names = [source.question] if source.question else list(responses)
    if len(names) > 1:
        raise FileError(
            source.path, f"item {number} has the questions {', '.join(names)}; name one with --question"
        )
    for name in names:
        for response in map(fields_of, _list_or_empty(responses.get(name))):
            if response.get("status", "submitted") != "submitted" or response.get("value") is None:
                continue
            item = source.item_id(
                (record, fields_of(record.get("metadata")), fields_of(record.get("fields"))), number
            )
            yield source.make_answer(number, item, str(response.get("user_id") or ""), response["value"])


def _prodigy_answers(source: _Source, tasks: Sequence[dict[str, Any]]) -> list[FileAnswer]:
    """Return the answers of all records: one for each choice, and one for all binary records of a row by a person."""

    def place_of(task: dict[str, Any], number: int) -> tuple[str, str]:
        """Return the item and the labeller of a record."""
        item = source.item_id((task, fields_of(task.get("meta"))), number)
        return item, str(task.get("_annotator_id") or task.get("_session_id") or "")

    answers: list[FileAnswer] = []
    verdicts: dict[tuple[str, str], list[_Verdict]] = {}
    for number, task in enumerate(tasks, 1):
        said = task.get("answer")
        if said not in ("accept", "reject"):  # a tuple, since the value may not be hashable
            continue  # ignored
        if "accept" in task:
            if said == "accept" and task["accept"]:
                answers.append(source.make_answer(number, *place_of(task, number), task["accept"]))
            continue
        if (label := task.get("label")) is None:
            raise FileError(source.path, f"item {number} has neither accept nor label")
        place = place_of(task, number)
        source.make_answer(number, *place, label)  # it must be a class
        time = task.get("_timestamp")
        at = float(time) if isinstance(time, int | float) else None
        verdicts.setdefault(place, []).append(_Verdict(number, label, said == "accept", at))
    answers += [_combined_answer(source, *place, given) for place, given in verdicts.items()]
    return sorted(answers, key=lambda answer: answer.line)


@dataclass(frozen=True)
class _Verdict:
    """A label that a person accepted or rejected: the number of the record, and its time if there is one."""

    number: int
    label: str
    is_accepted: bool
    time: float | None


def _combined_answer(source: _Source, item: str, who: str, verdicts: list[_Verdict]) -> FileAnswer:
    """Return the statement of a person on a row: the accepted class, or all classes that were not rejected.

    If verdicts contradict each other, the newest counts, since a row has one class.
    """
    if all(each.time is not None for each in verdicts):
        verdicts = sorted(verdicts, key=lambda each: each.time or 0.0)
    newest = {each.label: each for each in verdicts}
    accepted = [each.label for each in verdicts if each.is_accepted and newest[each.label] is each]
    left = accepted[-1:] or [name for name in source.classes if name not in newest]
    number = max(each.number for each in verdicts)
    if not left:
        reason = f"rejects the last class of {shown(item)}: none is left. Remove the records of this row"
        raise FileError(source.path, f"item {number} {reason}")
    return source.make_answer(number, item, who, left)


FORMS: Final[dict[str, _Reader]] = {
    "argilla": _one_by_one(_argilla_answers),
    "doccano": _one_by_one(_doccano_answers),
    "label-studio": _one_by_one(_label_studio),
    "prodigy": _prodigy_answers,
}
"""The reader of a file's items, by the name of the tool."""
