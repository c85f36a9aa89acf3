"""Trees as a learner has grown them, ready to be stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from quercus.server.wire import snapshots
from quercus.server.wire.models import decode_specification, stored_specification
from quercus.server.wire.trees import encode_head
from quercus.specification.attributes import Attribute, Nominal
from quercus.specification.model import Specification
from quercus.specification.parameters import BUCKET
from quercus.trees import AverageConfidence, Edges, LearnedModel

Names = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, eq=False)
class GrownTrees:
    """The trees of an engine.

    Attributes
    ----------
    specification : in force.
    model : the trees.
    edges : inner edges in force of each attribute; none where numbers are split at thresholds.
    names : branch names of each attribute.
    confidence : how right the trees take themselves to be on the rows of the log; None without rows.
    other_names : rows that hold a name beyond the bound of an attribute, by attribute.
    """

    specification: Specification
    model: LearnedModel
    edges: Edges
    names: Names
    confidence: AverageConfidence | None = None
    other_names: Mapping[str, int] = field(default_factory=dict)

    @property
    def node_count(self) -> int:
        """Nodes of all trees."""
        return sum(flat.size for flat in self.model.flat_trees)

    def encode(self) -> bytes:
        """Return the stored form, see `quercus.server.wire.snapshots`."""
        return snapshots.encode_snapshot(encode_head(self.specification, self.edges, self.names), self.model)


def full_attributes(
    attributes: Sequence[Attribute], vocabulary: Mapping[int, Sequence[str]]
) -> Iterator[tuple[int, Nominal]]:
    """Yield the attributes, each with its place, that have all their names, so that rows may be in their bucket."""
    for k, each in enumerate(attributes):
        if not isinstance(each, Nominal) or each.overflow != BUCKET:
            continue
        if len(each.values) + len(vocabulary.get(k, ())) >= each.most_values:
            yield k, each


def specification_of(data: bytes) -> Specification:
    """Return a stored specification."""
    return decode_specification(stored_specification(data))
