"""The report of the grower about a model, stored beside its trees."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from quercus.proto.v1 import model_pb2
from quercus.trees import AccuracyBlock, AverageConfidence


def encode_report(
    accuracy: Iterable[AccuracyBlock],
    settled: bool | None = None,
    confidence: AverageConfidence | None = None,
    other_names: Mapping[str, int] | None = None,
) -> bytes:
    """Return the report as it is stored.

    Parameters
    ----------
    accuracy
        How right predictions were, the oldest block first.
    settled
        Whether the tree is settled; None if not known.
    confidence
        How right the trees take themselves to be; None if not known.
    other_names
        Rows that hold a name beyond the bound of an attribute, by attribute.
    """
    blocks = [
        model_pb2.AccuracyBlock(
            rows=block.rows, precise_rows=block.precise_rows, right=block.right, expected=block.expected
        )
        for block in accuracy
    ]
    recent = model_pb2.RecentAccuracy(blocks=blocks)
    own = (
        None
        if confidence is None
        else model_pb2.AverageConfidence(rows=confidence.rows, mean=confidence.mean)
    )
    return model_pb2.GrowthReport(
        accuracy=recent,
        settled=settled,
        average_confidence=own,
        other_names=[
            model_pb2.OtherNames(attribute=name, rows=rows)
            for name, rows in (other_names or {}).items()
            if rows
        ],
    ).SerializeToString()


def accuracy_in(report: bytes) -> tuple[AccuracyBlock, ...]:
    """Return how right predictions were, the oldest block first."""
    blocks = model_pb2.GrowthReport.FromString(report).accuracy.blocks
    return tuple(AccuracyBlock(each.rows, each.precise_rows, each.right, each.expected) for each in blocks)


def other_names_in(report: bytes) -> int:
    """Return how many values of the rows are names beyond the bound of their attribute."""
    return sum(each.rows for each in model_pb2.GrowthReport.FromString(report).other_names)
