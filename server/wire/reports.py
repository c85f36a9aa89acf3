"""The report of the grower about a model, stored beside its trees."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from quercus.trees import AccuracyBlock, AverageConfidence, Drift, accuracy_fall
from quercus.v1 import model_pb2, values_pb2


def encode_report(
    accuracy: Iterable[AccuracyBlock],
    confidence: AverageConfidence | None = None,
    other_names: Mapping[str, int] | None = None,
    labelled_rows: int = 0,
    drift: Drift | None = None,
    names: Sequence[str] = (),
) -> bytes:
    """Return the stored form of a report.

    Parameters
    ----------
    accuracy
        Blocks of accuracy, oldest first.
    confidence
        The trees' own confidence; None if not known.
    other_names
        Number of rows with a name beyond the limit of an attribute, by attribute.
    labelled_rows
        Number of rows with a label.
    drift, names
        Recent changes, and the names of all attributes.
    """
    blocks = [
        model_pb2.AccuracyBlock(
            rows=block.rows,
            precise_rows=block.precise_rows,
            right=block.right,
            expected=block.expected,
            unasked_rows=block.unasked_rows,
            unasked_expected=block.unasked_expected,
            confusion=[
                values_pb2.ConfusionCell(said=said, holds=holds, rows=rows)
                for said, holds, rows in block.confusion
            ],
        )
        for block in accuracy
    ]
    recent = model_pb2.RecentAccuracy(blocks=blocks, labelled_rows=labelled_rows)
    own = (
        None
        if confidence is None
        else model_pb2.AverageConfidence(rows=confidence.rows, mean=confidence.mean)
    )
    return model_pb2.GrowthReport(
        accuracy=recent,
        average_confidence=own,
        other_names={name: rows for name, rows in (other_names or {}).items() if rows},
        drift=None if drift is None else _drift_message(drift, names),
    ).SerializeToString()


def _drift_message(drift: Drift, names: Sequence[str]) -> model_pb2.Drift | None:
    if drift == Drift():
        return None
    message, fall = model_pb2.Drift(), drift.accuracy
    if fall is not None:
        message.accuracy.before, message.accuracy.since, message.accuracy.labels = (
            fall.before,
            fall.since,
            fall.labels,
        )
    for k, distance in drift.attributes:
        message.attributes.add(name=names[k], distance=distance)
    return message


def with_changes(report: bytes, attributes: Sequence[tuple[int, float]], names: Sequence[str]) -> bytes:
    """Return a report about learned trees with drift added: of its accuracy, and of `attributes`, by number."""
    changed = model_pb2.GrowthReport.FromString(report)
    drift = Drift(accuracy_fall(accuracy_in(report)), tuple(attributes))
    changed.ClearField("drift")
    if (message := _drift_message(drift, names)) is not None:
        changed.drift.CopyFrom(message)
    return changed.SerializeToString()


def drift_in(report: bytes) -> model_pb2.Drift:
    """Return the drift in a report; empty if there is none."""
    return model_pb2.GrowthReport.FromString(report).drift


def with_stop(report: bytes, most_bytes: int) -> bytes:
    """Return a report which says that growth was stopped because it takes more than `most_bytes` of memory."""
    changed = model_pb2.GrowthReport.FromString(report)
    changed.stopped_above_bytes = most_bytes
    return changed.SerializeToString()


def stopped_above(report: bytes) -> int:
    """Return the memory limit, in bytes, at which growth was stopped; 0 if it was not."""
    return int(model_pb2.GrowthReport.FromString(report).stopped_above_bytes)


def stop_text(most_bytes: int) -> str:
    """Return why growth was stopped, and how to continue; empty for 0 bytes, when it was not stopped."""
    if not most_bytes:
        return ""
    return (
        f"growing it takes more than {most_bytes / 1e6:,.0f} MB of memory, the limit of a model "
        "(max_model_memory_bytes). Its newest tree classifies, and rows and answers are taken. To grow it further, "
        f"start the server with a higher limit (quercus serve --limit max_model_memory_bytes={2 * most_bytes}), or "
        "make a model with fewer attributes, classes or rows"
    )


def accuracy_in(report: bytes) -> tuple[AccuracyBlock, ...]:
    """Return the blocks of accuracy in a report, oldest first."""
    blocks = model_pb2.GrowthReport.FromString(report).accuracy.blocks
    return tuple(
        AccuracyBlock(
            each.rows,
            each.precise_rows,
            each.right,
            each.expected,
            each.unasked_rows,
            each.unasked_expected,
            tuple((cell.said, cell.holds, cell.rows) for cell in each.confusion),
        )
        for each in blocks
    )


def other_names_in(report: bytes) -> int:
    """Return the number of values that are names beyond the limit of their attribute."""
    return sum(model_pb2.GrowthReport.FromString(report).other_names.values())
