"""Disputes in words: who said what and how surely, how far labellers agree, and who may decide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from quercus.client.keys import GRADES
from quercus.client.results import Agreement, Caller, ConfusionCell, Dispute, DisputeLabel, LabellingPolicy
from quercus.specification.shares import percent_text
from quercus.view.words import counted

MAY_DECIDE: Final = {"corrector", "operator"}
"""Roles that may decide between labellers unless the policy lets nobody correct; a corrector even then."""


def dispute_text(agreement: Agreement) -> str:
    """Return how many rows are in dispute.

    Examples
    --------
    >>> dispute_text(Agreement(43, 10)), dispute_text(Agreement(1, 0))
    ('10 of 43 rows are in dispute', '0 of 1 row is in dispute')
    >>> dispute_text(Agreement(0))
    'no row has labels of two labellers'
    """
    if not agreement.shared:
        return "no row has labels of two labellers"
    verb = "is" if agreement.shared == 1 else "are"
    return f"{agreement.disputed:,} of {counted(agreement.shared, 'row')} {verb} in dispute"


def sureness_text(label: DisputeLabel) -> str:
    """Return how sure a label is, in the words of the labelling page where it has them.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> def said(reliability, **plausibility):
    ...     at = datetime(2026, 11, 27, tzinfo=UTC)
    ...     return sureness_text(DisputeLabel(1, "ann", at, "answered", "counts", plausibility, "", reliability))
    >>> said(1.0, a=1.0, b=0.0), said(1.0, a=1.0, b=0.7), said(0.8, a=1.0, b=0.0), said(1.0, a=1.0, b=1.0, c=0.0)
    ('sure', 'only a guess', 'sure, reliability 0.8', 'one of 2')
    >>> said(1.0, a=1.0, b=0.5), said(1.0, a=1.0, b=1.0)
    ('not sure', 'knows nothing')
    """
    values = sorted(label.plausibility.values(), reverse=True)
    top = [value for value in values if value >= values[0]]
    if len(top) == len(values):
        word = "knows nothing"
    elif len(top) > 1:
        word = f"one of {len(top)}"
    else:
        rest = set(values[1:])
        word = next((grade.name for grade in GRADES if rest == {grade.others}), "not sure")
    return word if label.reliability >= 1.0 else f"{word}, reliability {label.reliability:.2g}"


def likeliest(label: DisputeLabel) -> str | None:
    """Return the one most plausible class of a label; None if there are several."""
    most = max(label.plausibility.values(), default=0.0)
    top = [name for name, value in label.plausibility.items() if value >= most]
    return top[0] if len(top) == 1 else None


def voices_text(dispute: Dispute) -> str:
    """Return who said what about a row, in a line."""
    return "; ".join(f"{each.labeller}: {each.text}" for each in dispute.labels if each.kind != "adjudicated")


def may_decide(caller: Caller, policy: LabellingPolicy) -> bool:
    """Return whether a caller may decide between labellers; the server decides in the end."""
    if not caller.may_call("QueryService/Adjudicate"):
        return False
    if not caller.needs_token:
        return policy.corrections != "nobody"
    if "corrector" in caller.roles or policy.corrections == "anyone":
        return True
    return "operator" in caller.roles and policy.corrections == "own"


def who_decides(policy: LabellingPolicy) -> str:
    """Return who may decide between labellers, in a sentence."""
    if policy.corrections == "anyone":
        return "By the labelling policy every labeller may decide, and so may correctors and operators."
    if policy.corrections == "nobody":
        return "By the labelling policy only tokens with the role corrector may decide."
    return "Tokens with the role corrector or operator may decide; labellers, where the policy lets anyone correct."


def figure(value: float | None) -> str:
    """Return a coefficient of agreement.

    Examples
    --------
    >>> figure(0.6512), figure(-0.1), figure(None)
    ('0.65', '−0.10', '–')
    """
    return "–" if value is None else f"{value:.2f}".replace("-", "−")


def agreement_rows(agreement: Agreement) -> Iterator[tuple[str, str]]:
    """Yield the figures over all labellers, each with its name."""
    yield "in dispute", dispute_text(agreement)
    if agreement.adjudicated:
        yield "adjudicated", counted(agreement.adjudicated, "row")
    of = f"{counted(agreement.alpha_labels, 'label')} of {counted(agreement.alpha_rows, 'row')}"
    yield "Krippendorff's alpha", f"{figure(agreement.alpha)} ({of})"
    if agreement.is_partial:
        yield "counted", "the newest 20,000 labels; there are more"


def pair_rows(agreement: Agreement) -> list[tuple[str, str, int, int, str, str]]:
    """Return for each pair: names, rows, rows with the same class, their share, and Cohen's kappa."""
    return [
        (
            each.first,
            each.second,
            each.rows,
            each.same,
            percent_text(each.same / each.rows),
            figure(each.kappa),
        )
        for each in agreement.pairs
        if each.rows
    ]


@dataclass(frozen=True)
class ConfusionTable:
    """A confusion matrix for people; classes that do not occur are left out.

    Attributes
    ----------
    classes
        Those that were said or hold, in the order of the model.
    rows
        For each class that holds: its name, how often each class was said, and the share that was right, in words.
    precision
        For each class the share that was right where it was said, in words.
    count, right
        Rows in all, and those on the diagonal.
    """

    classes: tuple[str, ...]
    rows: tuple[tuple[str, tuple[int, ...], str], ...]
    precision: tuple[str, ...]
    count: int
    right: int


def confusion_table(cells: Sequence[ConfusionCell], classes: Sequence[str]) -> ConfusionTable:
    """Return a confusion matrix for people.

    Examples
    --------
    >>> cells = [ConfusionCell(0, 0, 8), ConfusionCell(0, 2, 2), ConfusionCell(2, 2, 6)]
    >>> table = confusion_table(cells, ("oak", "ash", "elm"))
    >>> table.classes, table.rows, table.precision
    (('oak', 'elm'), (('oak', (8, 0), '100 %'), ('elm', (2, 6), '75 %')), ('80 %', '100 %'))
    >>> table.count, table.right
    (16, 14)
    """
    counts = {
        (each.said, each.holds): each.rows for each in cells if max(each.said, each.holds) < len(classes)
    }
    there = sorted({k for pair in counts for k in pair})
    rows, precision = [], []
    for k in there:
        said = tuple(counts.get((other, k), 0) for other in there)
        rows.append((classes[k], said, _share(counts.get((k, k), 0), sum(said))))
        precision.append(_share(counts.get((k, k), 0), sum(counts.get((k, other), 0) for other in there)))
    right = sum(counts.get((k, k), 0) for k in there)
    return ConfusionTable(
        tuple(classes[k] for k in there), tuple(rows), tuple(precision), sum(counts.values()), right
    )


def _share(part: int, whole: int) -> str:
    return percent_text(part / whole) if whole else "–"
