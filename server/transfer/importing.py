"""Validation of an exported log as the service reads it: no event comes in that a grower could not learn from."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from quercus.belief.codec import decode
from quercus.belief.errors import InvalidInput, shown
from quercus.server.wire.displays import decode_displays
from quercus.server.wire.models import decode_specification
from quercus.specification.attributes import Nominal
from quercus.specification.model import Specification
from quercus.specification.parameters import BUDGET
from quercus.storage import EventKind
from quercus.trees import check_values, cut_counts
from quercus.v1 import display_pb2, model_pb2

FIXED = ("attributes", "frame", "warmup_rows")
"""Fields of a specification that no later one may change."""


class LogChecker:
    """Checks an exported log, see `quercus.storage.admin.transfer_log.LogValidator`."""

    _specification: Specification

    def check_head(self, specification: bytes, budget: int, learned: list[tuple[int, str]]) -> None:
        """Take the first line."""
        self._specification = _decode_specification(specification)
        BUDGET.check(budget)
        attributes = self._specification.attributes
        more = Counter(attribute for attribute, _ in learned)
        for k, value in learned:
            attribute = attributes[k] if k < len(attributes) else None
            if not isinstance(attribute, Nominal) or value in attribute.values:
                raise InvalidInput(
                    "vocabulary",
                    f"has {shown(value)} of attribute {k}, which is no new value of a nominal attribute",
                )
        counts: dict[int, int] = {}
        for k, attribute in enumerate(attributes):
            if not isinstance(attribute, Nominal):
                continue
            count, most = len(attribute.values) + more[k], attribute.most_values
            if count > most:
                raise InvalidInput(
                    "vocabulary", f"has {count} values of attribute {k}, at most {most} are allowed"
                )
            counts[k] = attribute.index_count if count == most else count
        self._values = (
            counts  # indices of each nominal attribute: of its values, and of its bucket once it is full
        )
        self._splits = sum(max(1, cuts) for cuts in cut_counts(self._specification.attributes))
        self._labels: set[bytes] = set()  # that were found to be right

    def check_events(self, events: Sequence[dict[str, Any]]) -> None:
        """Take the next events. Their values are checked as one table: row by row that takes a fifth of an import."""
        rows = [event["values"] for event in events if event.get("values") is not None]
        if rows:
            self._check_values(np.frombuffer(b"".join(rows), "<f8").reshape(len(rows), -1))
        for event in events:
            if event["kind"] == EventKind.SPECIFICATION:
                new = _decode_specification(event["specification"])
                for name in FIXED:
                    if getattr(new, name) != getattr(self._specification, name):
                        raise InvalidInput("specification", f"has other {name} than the first one")
                self._specification = new
            label = event.get("label")
            if label is not None and label not in self._labels:
                decode(label, self._specification.frame.size)
                self._labels.add(label)
            if event.get("asked") is not None:
                self.check_asked(event["asked"])
            if event.get("display") is not None:
                try:
                    decode_displays([display_pb2.Display.FromString(event["display"])], 1)
                except DecodeError:
                    raise InvalidInput("display", "is not a serialised quercus.v1.Display") from None

    def check_asked(self, data: bytes) -> None:
        """Check the place of a query in its round, as `quercus.server.wire.agenda.encode_asked` writes it."""
        try:
            path, attribute, code, rivals = json.loads(data.decode())  # of bytes it would read UTF-16 too
            rivals = list(rivals)
            named = [split for split, _ in path] + rivals
            codes = [branch for _, branch in path] + ([] if code is None else [code])
        except (ValueError, TypeError, RecursionError):
            raise InvalidInput(
                "asked", "is not the position of a query (JSON: [path, attribute, code, rivals])"
            ) from None
        in_round = attribute in rivals if attribute is not None else code is None
        if not (
            in_round
            and (attribute is None) == (code is None)
            and all(type(split) is int and 0 <= split < self._splits for split in named)
            and all(type(branch) is int and branch >= 0 for branch in codes)
        ):
            raise InvalidInput(
                "asked", f"is {shown(data.decode())}, which is no place in a tree of {self._splits} splits"
            )

    def _check_values(self, rows: np.ndarray[Any, np.dtype[np.float64]]) -> None:
        check_values(self._specification, rows)
        for k, known in self._values.items():
            unknown = rows[rows[:, k] >= known, k]
            if len(unknown):
                name = self._specification.attributes[k].name
                raise InvalidInput(
                    "values",
                    f"have number {unknown[0]:g} of attribute {shown(name)}, which has {known} values",
                )


def _decode_specification(data: bytes) -> Specification:
    try:
        return decode_specification(model_pb2.Specification.FromString(data))
    except DecodeError:
        raise InvalidInput("specification", "is not a serialised quercus.v1.Specification") from None
