"""Checks of the contents of a store, by reading them as the server does; see `quercus.storage.admin.verify`."""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any, Final

import numpy as np
from google.protobuf.message import DecodeError

from quercus.belief.codec import decode
from quercus.belief.errors import InvalidInput, shown
from quercus.labelling.row_values import Parts, unpack_rows
from quercus.labelling.shapes import Shape, Shapes
from quercus.server.gate.access import DIGEST_BYTES, ID_PATTERN
from quercus.server.gate.rpcs import ROLES
from quercus.server.wire.displays import decode_displays
from quercus.server.wire.models import specification_of
from quercus.server.wire.reports import accuracy_in
from quercus.server.wire.snapshots import UnreadableSnapshotError, is_earlier
from quercus.server.wire.trees import check_stored_tree
from quercus.specification.attributes import Nominal
from quercus.specification.model import Specification
from quercus.specification.parameters import BUDGET
from quercus.storage import EventKind
from quercus.trees import check_uncertain, cut_counts
from quercus.v1 import display_pb2, query_pb2

UNREADABLE: Final = (
    DecodeError,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    OverflowError,
    RecursionError,
    struct.error,
    zlib.error,
    UnreadableSnapshotError,
)
"""Errors that reading damaged bytes may raise."""


@contextmanager
def _reading(what: str) -> Iterator[None]:
    """Turn all errors of unreadable bytes into `InvalidInput`."""
    try:
        yield
    except InvalidInput:
        raise
    except UNREADABLE as error:
        raise InvalidInput(what, f"cannot be read ({type(error).__name__}: {str(error)[:200]})") from None


def _check_report(data: bytes) -> None:
    for block in accuracy_in(data):
        if not 0 <= block.right <= block.precise_rows <= block.rows:
            raise InvalidInput("report", f"counts {block.right} of {block.precise_rows} of {block.rows} rows")


def _check_snapshot(data: bytes) -> None:
    if not is_earlier(data):  # a tree of an earlier version will be grown again
        check_stored_tree(data)


def _check_digest(data: bytes) -> None:
    if len(data) != DIGEST_BYTES:
        raise InvalidInput("digest", f"has {len(data)} bytes, must have {DIGEST_BYTES}")


def _check_roles(text: str) -> None:
    unknown = sorted(set(text.split()) - set(ROLES))
    if unknown or not text:
        raise InvalidInput("roles", f"are {shown(text)}, must be some of {', '.join(ROLES)}")


def _check_granted(text: str) -> None:
    names = json.loads(text)
    if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise InvalidInput("models", f"is {shown(text)}, must be a list of names")


def _check_token_id(text: str) -> None:
    if re.fullmatch(ID_PATTERN, text) is None:
        raise InvalidInput("id", f"is {shown(text)}, must be 12 hexadecimal digits")


CELLS: Final[Mapping[str, Callable[[Any], object]]] = {
    "model.report": _check_report,
    "snapshot.data": _check_snapshot,
    "query.reason": query_pb2.Reason.FromString,
    "token.id": _check_token_id,
    "token.digest": _check_digest,
    "token.roles": _check_roles,
    "token.models": _check_granted,
}
"""Checks of single cells, by table and column."""


FIXED: Final = ("warmup_rows",)
"""Fields that no later specification may change."""


class StoredModel:
    """Checks the contents of one model: its specifications, log, queries and trees.

    It also checks an exported log, so that no event is imported that a grower could not learn from; see
    `quercus.storage.admin.transfer.LogValidator`.
    """

    IN_LOG: Final = (
        "model.initial_specification",
        "model.specification",
        "log.values",
        "log.label",
        "log.asked",
        "log.specification",
        "display.data",
        "query.asked",
    )
    """Columns that are checked together with the log."""

    _specification: Specification

    def check_cell(self, column: str, data: bytes | str) -> None:
        """Check a single cell, of a column in `CELLS`."""
        with _reading(column.partition(".")[2]):
            CELLS[column](data)

    def check_head(
        self, specification: bytes, budget: int, learned: list[tuple[int, str]], shapes: Shapes
    ) -> None:
        """Check the first line, see `LogValidator`."""
        BUDGET.check(budget)
        self._learned, self._shapes = learned, shapes
        first = self._decode_specification(specification)
        known = shapes.steps[-1].attributes if shapes.steps else len(first.attributes)
        if unknown := [k for k, _ in learned if k >= known]:
            raise InvalidInput("vocabulary", f"has a value of attribute {unknown[0]}, there are {known}")
        self._take_shape(first, 0)

    def _decode_specification(self, data: bytes) -> Specification:
        try:
            return specification_of(data)
        except DecodeError:
            raise InvalidInput("specification", "is not a serialised quercus.v1.Specification") from None

    def _take_shape(self, specification: Specification, sequence: int) -> None:
        """Check and use the specification that sets the shape of events after a sequence number."""
        self._specification, attributes = specification, specification.attributes
        self._shape = Shape(sequence, len(attributes), specification.frame.size)
        self._check_shape(sequence)
        learned = [(k, value) for k, value in self._learned if k < len(attributes)]
        more = Counter(attribute for attribute, _ in learned)
        for k, value in learned:
            attribute = attributes[k]
            if not isinstance(attribute, Nominal) or value in attribute.values:
                raise InvalidInput(
                    "vocabulary",
                    f"has {shown(value)} of attribute {k}, which is not a new value of a nominal attribute",
                )
        counts: dict[
            int, int
        ] = {}  # number of indices of each nominal attribute: its values, and a bucket in use
        for k, attribute in enumerate(attributes):
            if not isinstance(attribute, Nominal):
                continue
            count, most = len(attribute.values) + more[k], attribute.most_values
            if count > most:
                raise InvalidInput(
                    "vocabulary", f"has {count} values of attribute {k}, at most {most} are allowed"
                )
            counts[k] = attribute.index_count if count == most else count
        self._values = counts
        self._splits = sum(max(1, cuts) for cuts in cut_counts(self._specification.attributes))
        self._labels: set[bytes] = set()  # labels that were found valid

    def check_events(self, events: Sequence[dict[str, Any]]) -> None:
        """Check the next events. Values are checked as one table, which saves a fifth of the time of an import."""
        for is_specification, run in groupby(events, lambda event: event["kind"] == EventKind.SPECIFICATION):
            part = list(run)
            if is_specification:
                for event in part:
                    self._take_specification(event)
            else:
                self._check_part(part)

    def _take_specification(self, event: dict[str, Any]) -> None:
        new, former = self._decode_specification(event["specification"]), self._specification
        for name in FIXED:
            if getattr(new, name) != getattr(former, name):
                raise InvalidInput("specification", f"has other {name} than the first one")
        if new.attributes[: len(former.attributes)] != former.attributes:
            raise InvalidInput("specification", "has other attributes than the first one")
        if new.frame.classes[: former.frame.size] != former.frame.classes:
            raise InvalidInput("specification", "has other frame than the first one")
        if (new.attributes, new.frame) == (former.attributes, former.frame):
            self._specification = new
            self._check_shape(event["sequence"])
        else:
            self._take_shape(new, event["sequence"])

    def _check_shape(self, sequence: int) -> None:
        """Raise if the shape of an event by the log's shapes differs from that of the newest specification."""
        steps = self._shapes.steps
        if (self._shapes.shape_of(sequence) if steps else Shape(0, *self._shape[1:])) != self._shape:
            raise InvalidInput("shapes", f"do not have {list(self._shape)} for event {sequence}")

    def _check_part(self, events: Sequence[dict[str, Any]]) -> None:
        """Check events of one shape."""
        for end in (events[0], events[-1]):
            self._check_shape(end["sequence"])
        rows = [event["values"] for event in events if event.get("values") is not None]
        if rows:
            self._check_values(*unpack_rows(rows))
        for event in events:
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
        """Check the position of a query in its round, as `quercus.server.wire.agenda.encode_asked` writes it."""
        try:
            path, attribute, code, rivals = json.loads(
                data.decode()
            )  # from bytes, json would also read UTF-16
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

    def _check_values(self, rows: np.ndarray[Any, np.dtype[np.float64]], parts: Parts) -> None:
        check_uncertain(self._specification, rows, parts)
        refusal = self._specification.learner.refusal_of_uncertain
        if parts and refusal:
            row, k = min(parts)
            raise InvalidInput(f"values[{row}].{self._specification.attributes[k].name}", refusal)
        for k, known in self._values.items():
            of_sets = [low for (_, other), ranges in parts.items() if other == k for low, _ in ranges]
            unknown = np.append(rows[rows[:, k] >= known, k], [low for low in of_sets if low >= known])
            if len(unknown):
                name = self._specification.attributes[k].name
                raise InvalidInput(
                    "values",
                    f"have number {unknown[0]:g} of attribute {shown(name)}, which has {known} values",
                )
