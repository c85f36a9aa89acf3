"""The accuracy of a model, and what more answers would gain, from predictions made before the labels arrived.

The learning curve is a straight line of the log-odds of a right prediction over the logarithm of the number of labels,
fitted by maximum likelihood to the blocks, each at its middle. Its uncertainty is that of the two coefficients, widened
if the blocks scatter more than by chance. The number of answers needed for an accuracy is the interval in which the
band of the line covers it (inverse estimation; Fieller 1954). There is no extrapolation beyond ``REACH`` times the
number of labels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from quercus.client.results import ConfusionCell, RecentAccuracy
from quercus.specification.shares import Z, percent_text, wilson_interval
from quercus.view.words import counted

TARGETS: Final = (0.8, 0.9, 0.95, 0.99)
"""Accuracies for which the number of answers needed is shown."""
REACH: Final = 4.0
"""Extrapolation ends at this multiple of the number of labels."""
LEAST_BLOCKS, LEAST_ROWS = 3, 60
"""Minimum for fitting a curve."""
LEAST_UNASKED: Final = 100
"""Minimum of labelled rows without a query for the curve to be based on them alone."""


@dataclass(frozen=True)
class CurvePoint:
    """The accuracy in a block.

    Attributes
    ----------
    first, last
        Positions of its rows among the labels, from 1.
    rows
        Rows that count: all of the block, or those that no query asked about.
    right
        Expected number of right predictions; a row with an uncertain label counts fractionally.
    """

    first: int
    last: int
    rows: int
    right: float

    @property
    def share(self) -> float:
        """The accuracy."""
        return min(1.0, max(0.0, self.right / self.rows))

    @property
    def middle(self) -> float:
        """Number of labels at the middle of the block."""
        return (self.first + self.last) / 2

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's interval of the accuracy."""
        return wilson_interval(self.right, self.rows)


def curve_points(recent: RecentAccuracy | None) -> list[CurvePoint]:
    """Return the points of the curve, oldest first: of rows that no query asked about, or else of all rows.

    Examples
    --------
    >>> from quercus.client.results import AccuracyBlock
    >>> blocks = (AccuracyBlock(40, 40, 20, 20.0), AccuracyBlock(50, 50, 40, 40.0))
    >>> [(point.first, point.last, point.share) for point in curve_points(RecentAccuracy(blocks, 100))]
    [(11, 50, 0.5), (51, 100, 0.8)]
    """
    if recent is None:
        return []
    unasked = is_of_unasked(recent)
    last = max(0, recent.labelled_rows - sum(block.rows for block in recent.blocks))
    points = []
    for block in recent.blocks:
        first, last = last + 1, last + block.rows
        rows, right = (
            (block.unasked_rows, block.unasked_expected) if unasked else (block.rows, block.expected)
        )
        if rows:
            points.append(CurvePoint(first, last, rows, right))
    return points


def is_of_unasked(recent: RecentAccuracy) -> bool:
    """Return whether the curve is based on rows that no query asked about."""
    return sum(block.unasked_rows for block in recent.blocks) >= LEAST_UNASKED


def basis_text(recent: RecentAccuracy) -> str:
    """Return the rows on which the curve is based, in a sentence.

    Examples
    --------
    >>> from quercus.client.results import AccuracyBlock
    >>> basis_text(RecentAccuracy((AccuracyBlock(50, 50, 40, 40.0, 0, 0.0),), 60))
    'Measured on 50 answers, each predicted before it was learned. Rows that were asked about are the hardest.'
    """
    asked = sum(block.rows - block.unasked_rows for block in recent.blocks)
    unasked = sum(block.unasked_rows for block in recent.blocks)
    if is_of_unasked(recent):
        right = sum(block.unasked_expected for block in recent.blocks) / unasked
        other = sum(block.expected - block.unasked_expected for block in recent.blocks)
        beside = (
            f"; on {counted(asked, 'answer')}, which are harder, {percent_text(other / asked, 1)}"
            if asked
            else ""
        )
        return (
            f"Measured on {counted(unasked, 'row')} that no query asked about, each predicted before it was learned: "
            f"{percent_text(right, 1)}{beside}."
        )
    came = f"{counted(unasked, 'row')} that no query asked about"
    told = " and ".join(filter(None, [counted(asked, "answer") if asked else "", came if unasked else ""]))
    hard = " Rows that were asked about are the hardest." if asked else ""
    return f"Measured on {told}, each predicted before it was learned.{hard}"


@dataclass(frozen=True)
class LearningCurve:
    """A fitted learning curve: log-odds = level + slope * (log(labels) - centre).

    Attributes
    ----------
    level, slope
        The coefficients.
    centre
        Weighted mean of log(labels), where both are independent.
    level_variance, slope_variance
        Their variances.
    labels
        Labels at the end of the last block.
    """

    level: float
    slope: float
    centre: float
    level_variance: float
    slope_variance: float
    labels: int

    def log_odds(self, labels: float) -> tuple[float, float]:
        """Return the log-odds at a number of labels, and half the width of the band."""
        x = math.log(labels) - self.centre
        return self.level + self.slope * x, Z * math.sqrt(self.level_variance + self.slope_variance * x * x)

    def accuracy(self, labels: float) -> tuple[float, float, float]:
        """Return lower end, estimate and upper end of the accuracy at a number of labels."""
        middle, half = self.log_odds(labels)
        return _expit(middle - half), _expit(middle), _expit(middle + half)


def fit_curve(points: Sequence[CurvePoint]) -> LearningCurve | None:
    """Return the learning curve; None if there are too few rows, or all or none are right.

    Examples
    --------
    >>> points = [CurvePoint(50 * k + 1, 50 * k + 50, 50, 50 * (k + 1) ** 0.5 / (1 + (k + 1) ** 0.5)) for k in range(8)]
    >>> curve = fit_curve(points)
    >>> round(curve.slope, 2), round(curve.accuracy(400)[1], 2)
    (0.39, 0.74)
    """
    rows = sum(point.rows for point in points)
    right = sum(point.share * point.rows for point in points)
    if len(points) < LEAST_BLOCKS or rows < LEAST_ROWS or right in (0.0, float(rows)):
        return None
    xs = [math.log(point.middle) for point in points]
    level, slope, centre = math.log(right / (rows - right)), 0.0, 0.0
    for _ in range(50):  # Newton's method; the likelihood is concave
        shares = [_expit(level + slope * (x - centre)) for x in xs]
        weights = [max(point.rows * p * (1 - p), 1e-9) for point, p in zip(points, shares, strict=True)]
        total = sum(weights)
        mean = sum(w * x for w, x in zip(weights, xs, strict=True)) / total
        level, centre = level + slope * (mean - centre), mean
        spread = sum(w * (x - mean) ** 2 for w, x in zip(weights, xs, strict=True))
        if spread < 1e-9:
            return None
        excess = [point.rows * (point.share - p) for point, p in zip(points, shares, strict=True)]
        steps = sum(excess) / total, sum(e * (x - mean) for e, x in zip(excess, xs, strict=True)) / spread
        level, slope = level + max(-2.0, min(2.0, steps[0])), slope + max(-2.0, min(2.0, steps[1]))
        if max(map(abs, steps)) < 1e-9:
            break
    chi_square = sum(e * e / w for e, w in zip(excess, weights, strict=True))
    scatter = max(1.0, chi_square / max(1, len(points) - 2))
    return LearningCurve(level, slope, centre, scatter / total, scatter / spread, points[-1].last)


@dataclass(frozen=True)
class AnswersNeeded:
    """The labels that are still needed for an accuracy.

    Attributes
    ----------
    target
        The accuracy.
    least, most
        Ends of the interval, in further labels; `most` is None if it is beyond the reach.
    state
        ``reached``, ``needed``, ``beyond`` (out of reach even at best) or ``unknown`` (not enough data yet).
    """

    target: float
    least: int = 0
    most: int | None = None
    state: str = "unknown"


def answers_needed(curve: LearningCurve | None, target: float) -> AnswersNeeded:
    """Return the interval of the number of further labels that an accuracy needs.

    Examples
    --------
    >>> curve = LearningCurve(1.0, 0.5, 5.0, 0.01, 0.005, 200)
    >>> answers_needed(curve, 0.6).state, answers_needed(None, 0.9).state
    ('reached', 'unknown')
    >>> answers_needed(curve, 0.78)
    AnswersNeeded(target=0.78, least=0, most=175, state='needed')
    >>> answers_needed(curve, 0.8)
    AnswersNeeded(target=0.8, least=28, most=296, state='needed')
    >>> answers_needed(curve, 0.9)
    AnswersNeeded(target=0.9, least=600, most=None, state='beyond')
    """
    if curve is None:
        return AnswersNeeded(target)
    goal, end = math.log(target / (1 - target)), int(curve.labels * REACH)
    middle, half = curve.log_odds(curve.labels)
    if middle - half >= goal:
        return AnswersNeeded(target, 0, 0, "reached")
    least = _first_labels(curve, goal, end, 1.0)
    if curve.slope - Z * math.sqrt(curve.slope_variance) <= 0:
        return AnswersNeeded(target)  # possibly the model does not learn at all
    if least is None:
        return AnswersNeeded(target, end - curve.labels, None, "beyond")
    most = _first_labels(curve, goal, end, -1.0)
    return AnswersNeeded(
        target, least - curve.labels, None if most is None else most - curve.labels, "needed"
    )


def _first_labels(curve: LearningCurve, goal: float, end: int, side: float) -> int | None:
    """Return the first number of labels at which a side of the band reaches the goal; None if it is beyond the end."""
    low, high = curve.labels, end

    def reaches(labels: int) -> bool:
        middle, half = curve.log_odds(labels)
        return middle + side * half >= goal

    if reaches(low):
        return low
    step = max(1, (high - low) // 400)
    first = next((labels for labels in range(low, high + 1, step) if reaches(labels)), None)
    if first is None:
        return None
    return next(labels for labels in range(max(low, first - step), first + 1) if reaches(labels))


def now_text(curve: LearningCurve | None) -> str:
    """Return the current accuracy by the curve, in a sentence; empty without a curve.

    Examples
    --------
    >>> now_text(LearningCurve(1.0, 0.5, 5.0, 0.01, 0.005, 200))
    'Now about 76 % right, between 73 % and 79 %, by the learning curve.'
    """
    if curve is None:
        return ""
    lower, middle, upper = map(percent_text, curve.accuracy(curve.labels))
    return f"Now about {middle} right, between {lower} and {upper}, by the learning curve."


def fallen_text(points: Sequence[CurvePoint]) -> str:
    """Return the current accuracy after a recent fall, which no curve describes, in a sentence; empty without points.

    Examples
    --------
    >>> fallen_text([CurvePoint(1, 50, 50, 49.0), CurvePoint(51, 100, 50, 20.0), CurvePoint(101, 150, 50, 45.0)])
    'Now about 90 % right, between 81 % and 95 %, by the newest 50 labels alone: the accuracy fell before.'
    """
    if not points:
        return ""
    newest = points[-1]
    lower, upper = map(percent_text, newest.interval)
    return (
        f"Now about {percent_text(newest.share)} right, between {lower} and {upper}, by the newest "
        f"{counted(newest.rows, 'label')} alone: the accuracy fell before."
    )


def needed_text(needed: AnswersNeeded, pace_s: float | None = None) -> str:
    """Return the number of further answers that an accuracy needs, and their time at the present pace, in words.

    Examples
    --------
    >>> needed_text(AnswersNeeded(0.9, 40, 110, "needed"), 3.0)
    '40 to 110 more answers (2 to 6 minutes at the present pace)'
    >>> needed_text(AnswersNeeded(0.9, 40, None, "needed")), needed_text(AnswersNeeded(0.9, 0, 0, "reached"))
    ('at least 40 more answers', 'reached')
    >>> needed_text(AnswersNeeded(0.9))
    'cannot be told yet'
    >>> needed_text(AnswersNeeded(0.99, 600, None, "beyond")), needed_text(AnswersNeeded(0.9, 0, 30, "needed"))
    ('more than 600 more answers, if at all', 'up to 30 more answers')
    """
    if needed.state == "beyond":
        return f"more than {counted(needed.least, 'more answer')}, if at all"
    if needed.state != "needed":
        return "reached" if needed.state == "reached" else "cannot be told yet"
    minutes: tuple[int, ...]
    if needed.most is None:
        if not needed.least:
            return "perhaps reached, perhaps out of reach: cannot be told yet"
        ends, minutes = f"at least {counted(needed.least, 'more answer')}", (needed.least,)
    elif needed.least:
        ends, minutes = (
            f"{needed.least:,} to {counted(needed.most, 'more answer')}",
            (needed.least, needed.most),
        )
    else:
        ends, minutes = f"up to {counted(needed.most, 'more answer')}", (needed.most,)
    if pace_s is None:
        return ends
    times = list(dict.fromkeys(math.ceil(labels * pace_s / 60) for labels in minutes))
    until = (
        f"{times[0]:,} to {counted(times[1], 'minute')}" if len(times) > 1 else counted(times[0], "minute")
    )
    return f"{ends} ({until} at the present pace)"


def needed_rows(
    curve: LearningCurve | None, pace_s: float | None, targets: Sequence[float] = TARGETS
) -> Iterator[tuple[str, str]]:
    """Yield each accuracy with the number of further answers that it needs, in words."""
    for target in targets:
        yield (
            percent_text(target, 0 if round(100 * target, 9).is_integer() else 1),
            needed_text(answers_needed(curve, target), pace_s),
        )


def gain_over_random(recent: RecentAccuracy | None) -> str:
    """Return the reason why the gain over random queries is unknown, in a sentence."""
    if recent is not None and any(block.unasked_rows for block in recent.blocks):
        return (
            "The gain over answers to random rows cannot be told: the rows that no query asked about taught the model "
            "too, and no second model learned without the answers."
        )
    return "The gain over answers to random rows cannot be told: every labelled row was asked about."


def difference_text(recent: RecentAccuracy | None) -> str:
    """Return why the measured accuracy and the model's own estimate differ, in a sentence or two.

    Examples
    --------
    >>> from quercus.client.results import AccuracyBlock
    >>> difference_text(RecentAccuracy((AccuracyBlock(50, 50, 40, 40.0, 0, 0.0),), 60))
    'They are of different rows: it asks about the hardest. The estimate is of all, and nobody has checked it.'
    """
    if recent is not None and is_of_unasked(recent):
        return (
            "The first is counted. The estimate is the model's opinion of itself, and nobody has checked it."
        )
    return "They are of different rows: it asks about the hardest. The estimate is of all, and nobody has checked it."


def all_cells(recent: RecentAccuracy | None) -> list[ConfusionCell]:
    """Return the sum of the confusion matrices of all blocks."""
    counts: dict[tuple[int, int], int] = {}
    for block in () if recent is None else recent.blocks:
        for cell in block.confusion:
            counts[cell.said, cell.holds] = counts.get((cell.said, cell.holds), 0) + cell.rows
    return [ConfusionCell(said, holds, rows) for (said, holds), rows in sorted(counts.items())]


def _expit(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))
