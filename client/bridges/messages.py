"""Messages of a broker as rows: each is a JSON object, or a list of objects."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from quercus.belief.errors import shown
from quercus.client.values import Value, uncertain_of_json

MOST_WHOLE: Final = 10**308
"""Largest integer in a message: a float holds it exactly."""
MAX_ROWS: Final = 1_000
"""Maximum number of rows in a message."""


class BadMessageError(ValueError):
    """A message that contains no valid row; the text gives the reason."""


@dataclass(frozen=True)
class MessageRow:
    """A row with its id; ``label`` is a class, a list of classes, plausibilities by class, or None: nothing known."""

    id: str
    values: Mapping[str, Value]
    label: Any = None


@dataclass(frozen=True)
class MessageFormat:
    """The format of messages.

    Attributes
    ----------
    id_field
        The field that holds the id of a row. A row without it gets an id derived from the message.
    label_field
        The field that holds its label, if there is one.
    ignored
        Fields that are not attributes, such as a time.
    """

    id_field: str = "id"
    label_field: str = ""
    ignored: Collection[str] = ()

    def rows(self, payload: bytes, made_id: str) -> list[MessageRow | BadMessageError]:
        """Return the rows of a message, with an error in place of each invalid one.

        ``made_id`` is the id of the first row if it has none; later rows have their position appended.

        Raises
        ------
        BadMessageError
            If the message is neither a JSON object nor a list of objects.

        Examples
        --------
        >>> MessageFormat(ignored={"at"}).rows(b'{"id": "7", "at": 12, "size": 1, "hue": "red"}', "m")
        [MessageRow(id='7', values={'size': 1, 'hue': 'red'}, label=None)]
        """
        try:
            content = json.loads(payload.decode("utf-8"))
            if b"\\u" in payload:
                json.dumps(content, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise BadMessageError("has half of a surrogate pair, which is not a character") from None
        except (ValueError, RecursionError) as error:  # ValueError also for an integer of thousands of digits
            raise BadMessageError(f"is not JSON in UTF-8: {error}") from None
        entries = content if isinstance(content, list) else [content]
        if not 1 <= len(entries) <= MAX_ROWS:
            raise BadMessageError(f"has {len(entries):,} rows, must have 1 to {MAX_ROWS:,}")
        rows: list[MessageRow | BadMessageError] = []
        for k, entry in enumerate(entries):
            try:
                rows.append(self._message_row(entry, made_id if k == 0 else f"{made_id}-{k}"))
            except BadMessageError as error:
                rows.append(error)
        return rows

    def _message_row(self, entry: object, made_id: str) -> MessageRow:
        if not isinstance(entry, dict):
            raise BadMessageError(
                f"has a row that is {type(entry).__name__}, must be an object of attributes"
            )
        fields = dict(entry)
        given = fields.pop(self.id_field, None)
        if given is not None and not isinstance(given, str | int):
            raise BadMessageError(f"{self.id_field} is {shown(given)}, must be text or a whole number")
        label = fields.pop(self.label_field, None) if self.label_field else None
        values = {name: value for name, value in fields.items() if name not in self.ignored}
        for name, value in values.items():
            if isinstance(value, int) and abs(value) > MOST_WHOLE:
                raise BadMessageError(f"{name} is too large a number")
            if isinstance(value, list | dict):
                values[name] = uncertain_of_json(value)
                if values[name] is None:
                    must = (
                        "must be a number, text, null, a list of several names, or an object of low and high"
                    )
                    raise BadMessageError(f"{name} is {type(value).__name__}, {must}")
        return MessageRow(made_id if given is None else str(given), values, label)
