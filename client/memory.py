"""A client's memory of the models that it uses: the end of their logs, and the encoding of their rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from quercus.client.classifications import classify_rows
from quercus.client.messages import filled
from quercus.client.resources import model_resource
from quercus.client.rows import Row, RowEncoder, row_chunks
from quercus.client.specifications import Specification
from quercus.v1 import classify_pb2

FRESH_S: Final = 1.0
"""Seconds for which a remembered specification is used: a client that pushes single rows fetches it once a second.

Values learned since may be missing from it; they are sent by name. Encoded rows could be misread only if, within this
time, the model was deleted and created again with other attributes. Pushed rows have the uid of the model that they
were encoded for, so that the server refuses them then.
"""


class SeenSequences:
    """The newest sequence number that this client has seen of each model, for reading its own writes.

    A number belongs to a uid: a new model of the same name starts at 1 again.
    """

    def __init__(self) -> None:
        self._newest: dict[str, tuple[str, int]] = {}

    def record_sequence(self, model: str, uid: str, sequence: int) -> None:
        """Record ``sequence`` if it is newer. A lost race leaves an older bound, never a wrong one."""
        known, newest = self._newest.get(model, (uid, 0))
        if known != uid or sequence > newest:
            self._newest[model] = (uid, sequence)

    def record_uid(self, model: str, uid: str) -> None:
        """Record the uid of the model; forget the number if it belongs to another model."""
        self.record_sequence(model, uid, 0)

    def forget_model(self, model: str) -> None:
        """Forget the number of a deleted model, or of one whose log ends before it."""
        self._newest.pop(model, None)

    def model_uid(self, model: str) -> str:
        """Return the uid of the model that last had this name; empty if none is known."""
        return self._newest.get(model, ("", 0))[0]

    def newest_sequence(self, model: str) -> int:
        """Return the newest number seen; 0 if there is none."""
        return self._newest.get(model, ("", 0))[1]


class RowFormat:
    """The encoding of the rows of a model.

    Parameters
    ----------
    specification, uid
        Specification and uid of the model.
    former
        See `RowEncoder`.
    """

    def __init__(self, specification: Specification, uid: str = "", former: Sequence[int] = ()) -> None:
        self.specification, self.uid, self.former = specification, uid, former
        self._encoder = RowEncoder(specification, former=former)

    def classify_requests(
        self,
        model: str,
        rows: Iterable[Row] | Any,
        min_sequence: int = 0,
        *,
        want_paths: bool = False,
        want_masses: bool = False,
        coverage: float | None = None,
        want_doubt: bool = False,
    ) -> Iterator[classify_pb2.ClassifyRequest]:
        """Yield as few requests as the message limit allows; see `Client.classify`."""
        attributes, classes = len(self.specification.attributes), len(self.specification.classes)
        for chunk in row_chunks(rows, classify_rows(attributes, classes, want_masses=want_masses)):
            yield filled(
                classify_pb2.ClassifyRequest,
                model=model_resource(model),
                rows=self._encoder.encode(chunk)[0],
                min_sequence=min_sequence,
                want_paths=want_paths,
                want_masses=want_masses,
                coverage=coverage,
                want_doubt=want_doubt,
            )


class RowFormats:
    """The row formats of the recently used models.

    Parameters
    ----------
    clock
        Monotonic clock, in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[str, tuple[float, RowFormat]] = {}

    def get_fresh(self, model: str) -> RowFormat | None:
        """Return the format if it was fetched less than ``FRESH_S`` seconds ago."""
        learned, form = self._known.get(model, (float("-inf"), None))
        return form if self._clock() - learned < FRESH_S else None

    def remember_format(
        self, model: str, specification: Specification, uid: str = "", former: Sequence[int] = ()
    ) -> RowFormat:
        """Remember and return the format."""
        form = RowFormat(specification, uid, former)
        self._known[model] = (self._clock(), form)
        return form

    def forget_format(self, model: str) -> None:
        """Forget the format: the model is deleted, or a request failed."""
        self._known.pop(model, None)
