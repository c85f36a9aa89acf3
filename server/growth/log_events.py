"""The events of a log in the form for engines: decoded, divided by kind, with instances by their ordinals."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quercus.belief.evidence import ReportedLabel
from quercus.belief.label import Label
from quercus.labelling.history import reported_label
from quercus.server.growth.grown_trees import specification_of
from quercus.specification.model import Specification
from quercus.storage import Event, EventKind, InstanceColumns


class LabelUpdate(NamedTuple):
    """An event about the label of an instance.

    Attributes
    ----------
    instance : ordinal of the instance.
    reported : its label, as the event reports it.
    asked : position of the query that the event settles; empty if there is none.
    """

    instance: int
    reported: ReportedLabel[Label]
    asked: bytes


class LogEvents:
    """The events of one log, and its instances so far.

    Parameters
    ----------
    size : number of classes.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._instances = array("q")  # sequence of each instance, by ordinal
        self.specification = b""
        """The newest that a SPECIFICATION event brought, as it is stored; empty: none did."""

    def sequence_of(self, instance: int) -> int:
        """Return the sequence of an instance."""
        return self._instances[instance]

    @property
    def sequences(self) -> NDArray[np.int64]:
        """The sequence of each instance, by ordinal."""
        return np.array(self._instances, np.int64)  # a view would keep the array from growing

    def restore_instances(self, sequences: NDArray[np.int64], specification: bytes) -> None:
        """Continue behind these instances."""
        self._instances = array("q", sequences.tobytes())
        self.specification = specification

    def read_entries(
        self, parts: Sequence[InstanceColumns | Event]
    ) -> Iterator[InstanceColumns | LabelUpdate | Specification]:
        """Yield the events of the next part of the log: rows, label events, a specification in force."""
        for part in parts:
            if isinstance(part, InstanceColumns):
                self._instances.extend(range(part.first, part.first + len(part.labels)))
                yield part
            elif part.kind is EventKind.SPECIFICATION:
                self.specification = part.specification or b""
                yield specification_of(self.specification)
            elif (reported := reported_label(part, self._size)) is not None:
                yield LabelUpdate(bisect_left(self._instances, part.instance), reported, part.asked or b"")
