"""A model in words: its state, its numbers, its accuracy, its attributes, its labelling policy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from quercus.client.results import AverageConfidence, Labeller, LabellingPolicy, Model, RecentAccuracy
from quercus.specification.attributes import Attribute, Nominal, plain_number
from quercus.specification.shares import percent_text
from quercus.view.bars import sparkline
from quercus.view.words import counted

MAX_NAMED: Final = 12
"""Maximum number of values or edges listed of an attribute."""
ASKED_ARE_HARDEST: Final = (
    "rows that were asked about are the hardest: on all rows the accuracy is usually higher"
)
STATES: Final = {
    "growing": ("growing", "The tree is learning from new events."),
    "done": ("budget spent", "The budget is spent."),
    "asking": ("has queries", "It has queries for labellers."),
    "quiet": ("no queries", "It has no queries now."),
    "silent": ("never asks", "It never asks: its budget is 0."),
}
"""The states of `growth_state`, each as a short label and a sentence."""
_CORRECTORS: Final = {"own": "by their author", "anyone": "by anybody", "nobody": "by nobody"}


def nominal_names(model: Model) -> frozenset[str]:
    """Return the names of a model's nominal attributes."""
    return frozenset(each.name for each in model.specification.attributes if isinstance(each, Nominal))


def growth_state(model: Model) -> str:
    """Return the state of growth.

    ``growing``: events wait for the tree; ``silent``: the budget is 0; ``done``: it is spent; ``asking``: it has
    queries; else ``quiet``.
    """
    if model.lag:
        return "growing"
    if not model.budget:
        return "silent"
    if model.queries_answered >= model.budget:
        return "done"
    return "asking" if model.queries_open or model.queries_leased else "quiet"


def state_text(model: Model) -> str:
    """Return the current activity of a model, in a sentence."""
    return STATES[growth_state(model)][1]


def lag_text(model: Model) -> str:
    """Return the lag of a model's tree behind its log in words: events and seconds, or "up to date"."""
    if not model.lag:
        return "up to date"
    return f"{counted(model.lag, 'event')} and {model.lag_s:.1f} s behind"


def tree_text(model: Model) -> str:
    """Return the version of the newest tree, and its lag."""
    if not model.tree_version:
        return f"none yet, {lag_text(model)}" if model.lag else "none yet"
    return f"version {model.tree_version:,}, {lag_text(model)}"


def answers_text(model: Model) -> str:
    """Return the number of answers and the budget, or that the model never asks."""
    return f"{model.queries_answered:,} of {model.budget:,}" if model.budget else STATES["silent"][0]


def progress_text(model: Model) -> str:
    """Return the progress towards the budget, to be read on its own."""
    return f"{answers_text(model)} answers" if model.budget else STATES["silent"][1]


def number_rows(model: Model) -> Iterator[tuple[str, str]]:
    """Yield the numbers of a model, each with its name."""
    yield "rows", f"{model.instance_count:,}"
    yield "answers", answers_text(model)
    yield "refused", f"{model.queries_refused:,}"
    yield "open queries", f"{model.queries_open:,}"
    yield "leased queries", f"{model.queries_leased:,}"
    yield "answers against labels that rows came with", f"{model.conflicts:,}"
    yield "tree", tree_text(model)
    if model.growth_stopped:
        yield "growth stopped", model.growth_stopped
    if model.asking_stopped:
        yield "asking stopped", model.asking_stopped


def extension_texts(model: Model) -> Iterator[str]:
    """Yield a sentence for each later extension of the model.

    Examples
    --------
    >>> from quercus.client.results import Extension
    >>> from types import SimpleNamespace
    >>> list(extension_texts(SimpleNamespace(extensions=[Extension(1501, ("rust",), ("humidity", "wind"))])))
    ['class rust and attributes humidity, wind came with event 1,501']
    """
    for each in model.extensions:
        words = ("class", "classes", each.classes), ("attribute", "attributes", each.attributes)
        parts = [
            f"{one if len(names) == 1 else many} {', '.join(names)}" for one, many, names in words if names
        ]
        yield f"{' and '.join(parts)} came with event {each.sequence:,}"


def drift_texts(model: Model) -> Iterator[str]:
    """Yield a sentence for each recent change in the data.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from quercus.client.results import AccuracyFall, ChangedAttribute, Drift
    >>> drift = Drift(AccuracyFall(0.874, 0.61, 250), (ChangedAttribute("humidity", 0.35),))
    >>> for text in drift_texts(SimpleNamespace(drift=drift)):
    ...     print(text)
    the accuracy fell from 87.4 % to 61.0 % over the last 250 labels
    values of humidity moved: 35 % of the last 500 rows lie elsewhere than those before
    """
    if model.drift is None:
        return
    if fall := model.drift.accuracy:
        shares = f"from {percent_text(fall.before, 1)} to {percent_text(fall.since, 1)}"
        yield f"the accuracy fell {shares} over the last {counted(fall.labels, 'label')}"
    for each in model.drift.attributes[:MAX_NAMED]:
        share = percent_text(each.distance)
        yield f"values of {each.name} moved: {share} of the last 500 rows lie elsewhere than those before"
    if (more := len(model.drift.attributes) - MAX_NAMED) > 0:
        yield f"{counted(more, 'further attribute')} changed"


def accuracy_text(recent: RecentAccuracy | None) -> str:
    """Return the accuracy of recent predictions in words."""
    if recent is None or not recent.rows:
        return "not known yet"
    digits = 0 if recent.rows < 1_000 else 1  # further digits would be noise
    rows = f"of the last {counted(recent.rows, 'label')} that came after a prediction"
    if recent.accuracy is None or recent.precise_rows < recent.rows:
        return f"{percent_text(recent.expected, digits)} right {rows}, uncertain ones by their shares"
    return f"{percent_text(recent.accuracy, digits)} right {rows}"


def accuracy_line(recent: RecentAccuracy | None) -> str:
    """Return the accuracy of recent predictions in words, and a curve of one character per 50 rows."""
    if recent is None or not recent.rows:
        return accuracy_text(recent)
    shares = [block.expected / block.rows for block in recent.blocks if block.rows]
    return f"{accuracy_text(recent)}  {sparkline(shares, ends=(0.0, 1.0))}"


def confidence_text(own: AverageConfidence) -> str:
    """Return the accuracy that a model itself expects, in words.

    Examples
    --------
    >>> from quercus.client.results import AverageConfidence
    >>> confidence_text(AverageConfidence(178, 0.85214))
    '85.2 % right by its own estimate, the mean over 178 rows'
    """
    return f"{percent_text(own.mean, 1)} right by its own estimate, the mean over {counted(own.rows, 'row')}"


def attribute_words(attribute: Attribute, others: int = 0) -> tuple[str, str]:
    """Return the kind of an attribute, and its values or cuts in words.

    Parameters
    ----------
    attribute
        The attribute.
    others
        Number of rows with a name beyond the bound of its names.

    Examples
    --------
    >>> from quercus.specification.attributes import Numeric
    >>> attribute_words(Nominal("X", "ab", max_values=2), 1)
    ('names', 'a, b; 2 names, the most it may have; others count as (other names), so far in 1 row')
    >>> attribute_words(Numeric("size", edges=(1.5, 2.5))), attribute_words(Numeric("size", cuts=32))
    (('numbers', 'cut at 1.5, 2.5'), ('numbers', 'split at one of 32 cuts'))
    """
    missing = "never missing" if attribute.missing == "reject" else ""
    if isinstance(attribute, Nominal):
        so_far = f", so far in {counted(others, 'row')}" if others else ""
        named = ", ".join(attribute.values[:MAX_NAMED])
        more = len(attribute.values) - MAX_NAMED
        named += f" and {more:,} more" if more > 0 else ""
        return "names", "; ".join(filter(None, [named, attribute.bound_text + so_far, missing]))
    edges = ", ".join(map(plain_number, attribute.edges[:MAX_NAMED]))
    edges += " …" if len(attribute.edges) > MAX_NAMED else ""
    if edges:
        cut = f"split at one of {edges}" if attribute.cuts is not None else f"cut at {edges}"
    elif attribute.cuts is not None:
        cut = f"split at one of {attribute.cuts:,} cuts"
    else:
        cut = f"in {attribute.bins} bins"
    return "numbers", "; ".join(filter(None, [cut, missing]))


def policy_rows(policy: LabellingPolicy) -> Iterator[tuple[str, str]]:
    """Yield the parts of a labelling policy, each with its name."""
    conflict = f", of different labellers; one more above a conflict of {policy.max_conflict:g}"
    yield (
        "answers to a query",
        f"{policy.answers_per_query}{conflict if policy.answers_per_query > 1 else ''}",
    )
    bounds = {
        "answers of one labeller": policy.per_labeller,
        "answers within an hour": policy.per_hour,
        "queries held at once": policy.max_held,
    }
    for name, bound in bounds.items():
        yield name, "no bound" if bound is None else f"at most {bound:,}"
    yield "answers are corrected", _CORRECTORS[policy.corrections]
    declared = policy.reliability == "declared"
    yield (
        "trust in an answer (reliability)",
        "what its labeller states" if declared else "estimated: how often labellers agree",
    )
    yield (
        "answers are combined",
        "as independent evidence (Dempster's rule)"
        if policy.combination == "dempster"
        else "as evidence that may overlap (the cautious rule)",
    )
    yield "gold questions", percent_text(policy.gold_share) if policy.gold_share else "none"
    yield "tags", ", ".join(policy.tags) or "none"
    yield "who labels", ", ".join(policy.labellers) or "everybody who may"


def gold_text(labeller: Labeller) -> str:
    """Return the number of gold questions answered right and in all, with the interval of the share.

    Examples
    --------
    >>> gold_text(Labeller("ann", gold_answered=10, gold_right=8, gold_lower=0.541, gold_upper=0.931))
    '8 of 10 (54 % to 93 %)'
    >>> gold_text(Labeller("bob"))
    '–'
    """
    if labeller.gold_lower is None or labeller.gold_upper is None:
        return "–"
    share = f"{percent_text(labeller.gold_lower)} to {percent_text(labeller.gold_upper)}"
    return f"{labeller.gold_right:,} of {labeller.gold_answered:,} ({share})"


def deviation_text(share: float | None, deviation: float | None) -> str:
    """Return an estimated share and its standard deviation.

    Examples
    --------
    >>> deviation_text(0.82, 0.05), deviation_text(None, None)
    ('0.82 ± 0.05', '–')
    """
    return "–" if share is None else f"{share:.2f} ± {deviation or 0.0:.2f}"
