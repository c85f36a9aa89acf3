"""Explanations of a row's prediction in words, for the terminal and the console."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from quercus.client.results import RowChange, RowExplanation, RowPrediction
from quercus.client.shown import guess_in
from quercus.specification.conditions import merge_conditions
from quercus.specification.shares import percent_text
from quercus.view.answers import answer_text
from quercus.view.queries import shares_text
from quercus.view.words import counted

BESIDE = (
    "The forest's votes give the class. The path is the row's in the tree beside the forest, which learns from the "
    "same labels."
)
SEARCHED = (
    "This learner learns anew from all rows, so changes were found by bisection: a change that a later event "
    "reversed may be missing."
)


def conditions_of(prediction: RowPrediction, nominal: Collection[str]) -> list[str]:
    """Return the path of a prediction, a condition for each attribute."""
    steps = [(step.attribute, step.value) for step in prediction.path]
    return [each.text for each in merge_conditions(steps, frozenset(nominal))]


def prediction_text(prediction: RowPrediction, classes: Sequence[str]) -> str:
    """Return the likeliest classes of a prediction with their shares; says so if they are equally likely.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> prediction_text(RowPrediction(1, datetime.now(UTC), "oak", (0.75, 0.25)), ("oak", "ash"))
    'oak (75 %), or ash (25 %)'
    >>> prediction_text(RowPrediction(1, datetime.now(UTC), "", (0.5, 0.5)), ("oak", "ash"))
    'oak or ash, equally likely (50 % each)'
    >>> prediction_text(RowPrediction(1, datetime.now(UTC), "", (0.25,) * 4), ("oak", "ash", "elm", "fir"))
    'any class, all equally likely (25 % each)'
    """
    if not prediction.class_name:
        highest = max(prediction.theta)
        top = [name for name, share in zip(classes, prediction.theta, strict=True) if share >= highest - 1e-9]
        each = f"equally likely ({percent_text(highest)} each)"
        if len(top) == len(classes) > 2:
            return f"any class, all {each}"
        return f"{', '.join(top[:-1])} or {top[-1]}, {each}"
    return shares_text(classes, prediction.theta)


def cause_text(change: RowChange) -> str:
    """Return the events that changed the prediction, in words.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> after = RowPrediction(9, datetime.now(UTC), "oak", (1.0, 0.0))
    >>> cause_text(RowChange(7, 9, None, False, after)), cause_text(RowChange(9, 9, None, True, after))
    ('3 rows came', 'the definition of the model changed')
    >>> cause_text(RowChange(9, 9, None, False, after))
    '1 row came'
    """
    if change.specification:
        return "the definition of the model changed"
    if change.answer is None:
        return f"{counted(change.sequence - change.first_sequence + 1, 'row')} came"
    said = answer_text(change.answer)
    return f"{change.answer.labeller} on {change.answer.instance}: {said}"


def effect_text(
    before: RowPrediction, after: RowPrediction, classes: Sequence[str], nominal: Collection[str]
) -> str:
    """Return the effect of a change, in words: on the likeliest class, or else on the path.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> from quercus.client.results import PathStep
    >>> said = [RowPrediction(1, datetime.now(UTC), name, theta, (), path) for name, theta, path in (
    ...     ("oak", (0.75, 0.25), ()), ("ash", (0.2, 0.8), ()), ("ash", (0.1, 0.9), (PathStep("wind", "weak"),)))]
    >>> effect_text(said[0], said[1], ("oak", "ash"), ["wind"])
    'oak became ash (80 %), or oak (20 %)'
    >>> effect_text(said[1], said[2], ("oak", "ash"), ["wind"])
    'still ash (90 %), or oak (10 %), now in the leaf where wind = weak'
    >>> effect_text(said[2], said[1], ("oak", "ash"), ["wind"])
    'still ash (80 %), or oak (20 %), now in a tree of a single leaf'
    """
    now = prediction_text(after, classes)
    if before.class_name != after.class_name:
        return f"{before.class_name} became {now}" if before.class_name else f"now {now}"
    where = " and ".join(conditions_of(after, nominal))
    return f"still {now}, now {f'in the leaf where {where}' if where else 'in a tree of a single leaf'}"


def changes_in(explanation: RowExplanation, nominal: Collection[str]) -> Iterator[tuple[RowChange, str, str]]:
    """Yield each change with its cause and its effect, in order."""
    skipped = explanation.change_count > len(explanation.changes)
    before = None if skipped else explanation.then
    for change in explanation.changes:
        after = change.after
        effect = (
            f"then {prediction_text(after, explanation.classes)}"
            if before is None
            else effect_text(before, after, explanation.classes, nominal)
        )
        yield change, cause_text(change), effect
        before = after


def changes_head(explanation: RowExplanation) -> str:
    """Return the number of changes, in words.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> said = RowPrediction(1, datetime.now(UTC), "oak", (1.0, 0.0))
    >>> [changes_head(RowExplanation(("oak", "ash"), said, said, change_count=n)) for n in (0, 300)]
    ['Nothing has changed it since then.', '300 changes since then; the last 0 of them:']
    """
    count, shown = explanation.change_count, len(explanation.changes)
    if not count:
        return "Nothing has changed it since then."
    head = f"{counted(count, 'change')} since then"
    return f"{head}:" if count == shown else f"{head}; the last {shown} of them:"


def seen_text(shown: str, classes: Sequence[str]) -> str:
    """Return what a labeller saw of the model, from the description of the screen; empty if the client sent none.

    Examples
    --------
    >>> seen_text("presentation=- display=- tree=7 guess=1", ("oak", "ash"))
    'saw the reason of tree 7 and the guess ash'
    >>> seen_text("presentation=- display=- tree=7", ()), seen_text("presentation=- display=- tree=-", ())
    ('saw the reason of tree 7', 'saw no reason')
    >>> seen_text("", ("oak", "ash")), seen_text("my own screen", ("oak", "ash"))
    ('', 'saw my own screen')
    """
    parts = dict(part.partition("=")[::2] for part in shown.split())
    if "tree" not in parts:
        return f"saw {shown}" if shown else ""
    if parts["tree"] == "-":
        return "saw no reason"
    guess = guess_in(shown)
    head = f"saw the reason of tree {parts['tree']}"
    return f"{head} and the guess {classes[guess]}" if guess is not None and guess < len(classes) else head
