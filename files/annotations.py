"""Files that annotation tools export: the labels of items by labellers, in JSON.

*Label Studio*: the JSON export, choices only. *Argilla*: records with responses. *Prodigy*: JSON lines of choices, or
of one label that was accepted or rejected; a rejected label leaves the other classes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from quercus.client.bridges.label_studio_tasks import (
    BadTaskError,
    choices_of,
    fields_of,
    item_of,
    labeller_of,
)
from quercus.client.labels import LabelLike
from quercus.files.answers import FileAnswer
from quercus.files.errors import FileError

MOST_BYTES: Final = 1 << 30
_Reader = Callable[["_Source", dict[str, Any], int], Iterator[FileAnswer]]


class _Source:
    """A file that is read: its path, the classes, and how items are found."""

    def __init__(self, path: Path, classes: Sequence[str], id_field: str, question: str) -> None:
        self.path, self.classes = path, tuple(classes)
        self.id_field, self.question = id_field, question

    def item_id(self, places: Sequence[dict[str, Any]], number: int) -> str:
        """Return the id of an item: the named field of the first place that has it."""
        found = item_of(places, self.id_field)
        if found is None:
            raise FileError(
                self.path, f"item {number} has no field {self.id_field!r}; name another with --item"
            )
        return found

    def make_answer(self, number: int, item: str, labeller: str, names: object) -> FileAnswer:
        """Return an answer: one class, or one of several."""
        chosen: list[Any] = names if isinstance(names, list) else [names]
        for name in chosen:
            if not isinstance(name, str) or name not in self.classes:
                known = ", ".join(self.classes)
                raise FileError(
                    self.path, f"item {number}: {name!r} is no class of the model; its classes are {known}"
                )
        label: LabelLike = chosen[0] if len(chosen) == 1 else frozenset(chosen)
        return FileAnswer(number, item, labeller, label, "|".join(sorted(set(chosen))))


def read_annotations(
    path: Path, form: str, classes: Sequence[str], *, id_field: str = "id", question: str = ""
) -> list[FileAnswer]:
    """Return the answers of a file in their order there.

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
    answers: list[FileAnswer] = []
    for number, item in enumerate(_read_items(path), 1):
        if not isinstance(item, dict):
            raise FileError(path, f"item {number} is {type(item).__name__}, must be an object")
        answers += reader(source, item, number)
    return answers


def _read_items(path: Path) -> list[Any]:
    """Return the items of a JSON list, or of JSON lines."""
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
    # not splitlines: a text in JSON may have a separator of paragraphs, and more that it takes for the end of a line
    return [_parse_json(path, line, k) for k, line in enumerate(text.split("\n"), 1) if line.strip()]


def _parse_json(path: Path, text: str, line: int) -> Any:
    try:
        content = json.loads(text)
        if "\\u" in text:
            json.dumps(content, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise FileError(path, "has half of a surrogate pair, which is no character", line) from None
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
    for annotation in map(fields_of, _list_or_empty(task.get("annotations"))):
        try:
            names = choices_of(annotation, source.question)
        except BadTaskError as error:
            raise FileError(source.path, f"item {number} {error}") from None
        if names is not None:
            item = source.item_id((fields_of(task.get("data")), task), number)
            yield source.make_answer(number, item, labeller_of(annotation), names)


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


def _prodigy_answers(source: _Source, task: dict[str, Any], number: int) -> Iterator[FileAnswer]:
    said = task.get("answer")
    if said not in ("accept", "reject"):  # whatever it is: a set would want to hash it
        return  # ignored
    item = source.item_id((task, fields_of(task.get("meta"))), number)
    who = str(task.get("_annotator_id") or task.get("_session_id") or "")
    if "accept" in task:
        if said == "accept" and task["accept"]:
            yield source.make_answer(number, item, who, task["accept"])
        return
    label = task.get("label")
    if label is None:
        raise FileError(source.path, f"item {number} has neither accept nor label")
    if said == "accept":
        yield source.make_answer(number, item, who, label)
        return
    source.make_answer(number, item, who, label)  # it must be a class
    yield source.make_answer(number, item, who, [name for name in source.classes if name != label])


FORMS: Final[dict[str, _Reader]] = {
    "argilla": _argilla_answers,
    "label-studio": _label_studio,
    "prodigy": _prodigy_answers,
}
"""The reader of an item, by the name of the tool."""
