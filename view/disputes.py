"""Disputes in words: the labels and their certainty, the agreement of labellers, and who may decide."""

from __future__ import annotations

from collections.abc import Iterator

from quercus.client.keys import GRADES
from quercus.client.results import Agreement, Caller, DisputeLabel, LabellingPolicy
from quercus.specification.shares import percent_text
from quercus.specification.written_labels import read_label
from quercus.view.answers import label_words
from quercus.view.words import counted


def dispute_text(agreement: Agreement) -> str:
    """Return the number of rows in dispute, in words.

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
    """Return the certainty of a label, where possible in the words of the labelling page.

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


def said_text(label: DisputeLabel) -> str:
    """Return a label in words."""
    return label_words(read_label(label.text, tuple(label.plausibility)), label.text)


def likeliest(label: DisputeLabel) -> str | None:
    """Return the most plausible class of a label; None if several are."""
    most = max(label.plausibility.values(), default=0.0)
    top = [name for name, value in label.plausibility.items() if value >= most]
    return top[0] if len(top) == 1 else None


def may_decide(caller: Caller, policy: LabellingPolicy) -> bool:
    """Return whether a caller may decide between labellers, for display; the server enforces the rule."""
    if not caller.may_call("QueryService/Adjudicate"):
        return False
    if not caller.needs_token:
        return policy.corrections != "nobody"
    if "corrector" in caller.roles or ("operator" in caller.roles and policy.corrections != "nobody"):
        return True
    return policy.corrections == "anyone" and (not policy.labellers or caller.name in policy.labellers)


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
    yield "in dispute", f"{agreement.disputed:,} of {counted(agreement.shared, 'row')}"
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
