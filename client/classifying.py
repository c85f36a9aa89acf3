"""The memory of models that both clients share, and classification: the requests, and their responses in one result."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from quercus.client import resources, transport
from quercus.client.classifications import Classifications, classifications, no_classifications
from quercus.client.messages import filled
from quercus.client.rows import Row, RowEncoder, row_chunks
from quercus.client.specifications import Specification
from quercus.v1 import classify_pb2

FRESH_S: Final = 1.0
"""Seconds for which a remembered specification is used: a client that sends single rows requests it once a second.

Learned values may be missing from the remembered specification; they travel by name. Rows given by name could be
misread only if the model was deleted and created again with other attributes within this time. Pushed rows
name the model that they were encoded for, and the server refuses them.
"""


@dataclass(frozen=True)
class ClassifyOptions:
    """The options of a classification; see `Client.classify`."""

    min_sequence: int = 0
    paths: bool = False
    masses: bool = False


class RowFormat:
    """The encoding of the rows of a model.

    Parameters
    ----------
    specification, uid
        Specification and uid of the model.
    """

    def __init__(self, specification: Specification, uid: str = "") -> None:
        self.specification, self.uid = specification, uid
        self.classes = tuple(specification.classes)
        self._encoder = RowEncoder(specification, uncertain=True)
        self._size = transport.classify_rows(len(specification.attributes), len(self.classes))

    def classify_requests(
        self, model: str, rows: Iterable[Row] | Any, wanted: ClassifyOptions
    ) -> Iterator[classify_pb2.ClassifyRequest]:
        """Yield as few requests as the message limit allows."""
        size = transport.mass_rows(self._size, len(self.classes)) if wanted.masses else self._size
        for chunk in row_chunks(rows, size):
            yield filled(
                classify_pb2.ClassifyRequest,
                model=resources.model_resource(model),
                rows=self._encoder.encode(chunk)[0],
                min_sequence=wanted.min_sequence,
                want_paths=wanted.paths,
                want_masses=wanted.masses,
            )

    def merged_result(
        self, answers: list[classify_pb2.ClassifyResponse], want_paths: bool
    ) -> Classifications:
        """Return the responses as one result."""
        if not answers:
            return no_classifications(self.classes, want_paths)
        return classifications(answers, want_paths)


class RowFormats:
    """The row formats of the recently used models.

    Parameters
    ----------
    clock
        Function that returns seconds, which never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[str, tuple[float, RowFormat]] = {}

    def get_fresh(self, model: str) -> RowFormat | None:
        """Return the format if it was learned less than ``FRESH_S`` ago."""
        learned, form = self._known.get(model, (float("-inf"), None))
        return form if self._clock() - learned < FRESH_S else None

    def remember_format(self, model: str, specification: Specification, uid: str = "") -> RowFormat:
        """Remember and return the format."""
        form = RowFormat(specification, uid)
        self._known[model] = (self._clock(), form)
        return form

    def forget_format(self, model: str) -> None:
        """Forget the format: the model is deleted, or a request failed."""
        self._known.pop(model, None)
