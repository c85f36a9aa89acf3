"""Filters of answers, and statements that labellers make without a query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from quercus.client.labels import LabelLike
from quercus.client.results import AnswerKind, AnswerState, StatementReport


@dataclass(frozen=True)
class Statement:
    """A label for an instance that is stated without a query.

    ``labeller`` may be omitted if the request or the token names one. ``retract`` takes back the labeller's statement;
    it has no label.
    """

    instance: str
    label: LabelLike = None
    labeller: str = ""
    reliability: float | None = None
    comment: str = ""
    retract: bool = False


@dataclass(frozen=True)
class AnswerFilter:
    """A filter of answers; an empty field excludes nothing.

    ``classes``: answers whose most plausible class is one of these. ``since`` is inclusive, ``until`` exclusive; times
    without a zone are UTC.
    """

    labellers: Sequence[str] = ()
    classes: Sequence[str] = ()
    kinds: Sequence[AnswerKind] = ()
    states: Sequence[AnswerState] = ()
    instances: Sequence[str] = ()
    since: datetime | None = None
    until: datetime | None = None


def merge_reports(reports: Sequence[StatementReport]) -> StatementReport:
    """Return the sum of the reports of several requests."""
    return StatementReport(
        max((each.committed_sequence for each in reports), default=0),
        sum(each.stored for each in reports),
        sum(each.known for each in reports),
        reports[-1].model_uid if reports else "",
    )
