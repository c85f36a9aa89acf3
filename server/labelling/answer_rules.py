"""The answer that the store keeps for a labeller's reply, by the state of the model while the store locks it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from quercus.belief import evidence
from quercus.belief.agreement import Consensus
from quercus.belief.codec import encode
from quercus.belief.errors import InvalidInput
from quercus.belief.label import Label, Masses, contour
from quercus.server.labelling.combined_labels import (
    LabellerLabel,
    combine_answers,
    crowd_label,
    decode_labeller_label,
    label_combiner,
)
from quercus.server.labelling.reliability import Crowd
from quercus.server.wire.evidence import known_contour
from quercus.server.wire.schema import ModelSchema
from quercus.specification.bounds import MAX_AUTHOR_CHARACTERS
from quercus.storage import (
    AmendContext,
    AnswerChange,
    AnswerContext,
    CombinedAnswer,
    Event,
    EventKind,
    FailedPrecondition,
    PendingContext,
    PendingRule,
    Policy,
    Reliability,
    SubmittedAnswer,
)


class ModelReplaced(FailedPrecondition):
    """The schema belongs to an earlier model of the same name."""


class CrowdWanted(FailedPrecondition):
    """The policy says that reliability is estimated, and the labellers have not been read yet."""


@dataclass(frozen=True)
class NewAnswer:
    """The answer of a labeller who holds a query; `declared` is the reliability that was sent with it."""

    label: Label
    declared: float | None
    comment: str
    took_s: float | None
    shown: str
    is_refusal: bool = False
    """True if the label is vacuous; it counts as an answer if somebody has answered already."""


class LabellerReply:
    """Makes the answer that the store keeps, and remembers the content of the response.

    Parameters
    ----------
    schema : schema of the model, as far as it is known.
    said : NewAnswer
    crowd : the labellers, where reliability is estimated.

    Attributes
    ----------
    reliability : float
        That counts.
    together : Consensus or None
        Of one of several answers: what all say together.
    """

    def __init__(self, schema: ModelSchema, said: NewAnswer, crowd: Crowd | None) -> None:
        self._schema = schema
        self._said = said
        self._crowd = crowd
        self.reliability = 1.0
        self.together: Consensus | None = None

    def __call__(self, context: AnswerContext) -> SubmittedAnswer:
        """Return the answer; `ModelReplaced` when the model is another one, `CrowdWanted` without labellers."""
        _check_same_model(self._schema, context.key)
        if self._crowd is None and context.policy.reliability is not Reliability.DECLARED:
            raise CrowdWanted(f"the labellers of model {self._schema.model} must be read first")
        said, size = self._said, self._schema.frame.size
        partial = partial_answers(context.history, context.number, size)
        if said.is_refusal and not partial:
            return SubmittedAnswer(None, comment=said.comment, took_s=said.took_s, shown=said.shown)
        self.reliability = reliability_of(self._crowd, said.declared, context.labeller)
        is_one_of_several = context.policy.answers_per_query > 1 or labellers_with_partial_answers(
            context.history, context.number
        )
        submitted = (
            self._one_of_several(context, partial) if is_one_of_several else self._single_answer(context)
        )
        pending = pending_rule(self._schema, self._crowd) if context.spends_budget else None
        return replace(submitted, pending=pending)

    def _single_answer(self, context: AnswerContext) -> SubmittedAnswer:
        size = self._schema.frame.size
        conflict = _contradicts_history(context.history, self._said.label, self.reliability, size)
        self.together = None
        return self._make_submitted(conflict, settles=True, combined=None)

    def _one_of_several(self, context: AnswerContext, partial: dict[str, LabellerLabel]) -> SubmittedAnswer:
        """Return one of several answers: the last of them settles the query with the combination of all."""
        size, said = self._schema.frame.size, self._said
        others = {author: words for author, words in partial.items() if author != context.labeller}
        labels = others | {
            context.labeller: LabellerLabel(said.label, self.reliability, said.declared is None)
        }
        self.together = together = combine_answers(list(labels.values()), size)
        # nobody else is asked when the budget is spent
        settles = context.spends_budget or _is_enough(context.policy, len(others) + 1, together.conflict)
        combined: CombinedAnswer | None = None
        conflict = False
        if settles:
            combined, conflict = _combine_labels(labels, together, context.history, size, self._crowd)
        return self._make_submitted(conflict, settles=settles, combined=combined)

    def _make_submitted(
        self, conflict: bool, *, settles: bool, combined: CombinedAnswer | None
    ) -> SubmittedAnswer:
        said = self._said
        return SubmittedAnswer(
            encode(said.label), self.reliability, conflict, said.comment, said.took_s, settles, combined,
            declared=said.declared is not None, shown=said.shown,
        )  # fmt: skip


@dataclass(frozen=True)
class Amendment:
    """Makes the correction that the store keeps of a labeller's new words.

    Attributes
    ----------
    schema : schema of the model, as far as it is known.
    labeller : the labeller who amends the answer.
    label : the new label; None: the labeller takes the answer back.
    declared : the reliability that was sent with it.
    comment : sent with it.
    permitted : whatever the policy says.
    crowd : the labellers, where reliability is estimated.
    """

    schema: ModelSchema
    labeller: str
    label: Label | None
    declared: float | None
    comment: str
    permitted: bool
    crowd: Crowd | None

    def __call__(self, context: AmendContext) -> AnswerChange:
        """Return the correction; `ModelReplaced` when the model is another one."""
        _check_same_model(self.schema, context.key)
        label, size = self.label, self.schema.frame.size
        said = None if label is None else encode(label)
        reliability = 1.0 if label is None else reliability_of(self.crowd, self.declared, self.labeller)
        make = partial(
            AnswerChange, self.labeller, said, reliability=reliability, comment=self.comment,
            permitted=self.permitted, declared=label is None or self.declared is not None,
        )  # fmt: skip
        if self.labeller not in labellers_with_partial_answers(context.history, context.number):
            # the one answer, or (who may) what overrules all
            conflict = label is not None and _contradicts_history(
                context.history[:1], label, reliability, size
            )
            return make(label=said, conflict=conflict)
        if not context.settled:
            return make(label=None, among=True, pending=True)
        return self._change_one_of_several(context, partial(make, among=True), reliability)

    def _change_one_of_several(
        self, context: AmendContext, make: Callable[..., AnswerChange], reliability: float
    ) -> AnswerChange:
        """Change one of several answers: the new combination of all replaces the old one."""
        size = self.schema.frame.size
        given = partial_answers(context.history, context.number, size)
        given.pop(self.labeller, None)
        if self.label is not None:
            given[self.labeller] = LabellerLabel(self.label, reliability, self.declared is None)
        if not given:
            return make(label=None)
        together = combine_answers(list(given.values()), size)
        combined, conflict = _combine_labels(given, together, context.history[:1], size, self.crowd)
        return make(label=combined.label, conflict=conflict)


def pending_rule(schema: ModelSchema, crowd: Crowd | None) -> PendingRule:
    """Return what settles queries with the answers that they have; `ModelReplaced` when the model is another one.

    Parameters
    ----------
    schema : schema of the model, as far as it is known.
    crowd : the labellers, where reliability is estimated.
    """
    size = schema.frame.size

    def combine_pending(context: PendingContext) -> tuple[CombinedAnswer, bool]:
        _check_same_model(schema, context.key)
        given = partial_answers(context.history, context.number, size)
        together = combine_answers(list(given.values()), size)
        return _combine_labels(given, together, context.history, size, crowd)

    return PendingRule(combine_pending, label_combiner(size, crowd))


def _combine_labels(
    labels: Mapping[str, LabellerLabel],
    together: Consensus,
    history: Sequence[Event],
    size: int,
    crowd: Crowd | None,
) -> tuple[CombinedAnswer, bool]:
    """Return the label of several answers, `together` their combination, and whether it contradicts the history."""
    label = crowd_label(labels, size, crowd) or Masses(together.mass)
    author = " + ".join(labels)[:MAX_AUTHOR_CHARACTERS]
    return CombinedAnswer(encode(label), author), _contradicts_history(history, label, 1.0, size)


def _check_same_model(schema: ModelSchema, key: int) -> None:
    if key != schema.key:
        raise ModelReplaced(f"model {schema.model} was replaced by another of its name")


def _contradicts_history(history: Sequence[Event], label: Label, reliability: float, size: int) -> bool:
    """Return whether a label contradicts what is known of an instance by these events."""
    return evidence.update(known_contour(history, size), contour(label, size), reliability).conflict


def _is_enough(policy: Policy, count: int, conflict: float) -> bool:
    """Return whether `count` answers with a degree of conflict settle a query."""
    wanted = policy.answers_per_query
    return count >= wanted and (conflict <= policy.max_conflict or count >= 2 * wanted)


def labellers_with_partial_answers(history: Sequence[Event], number: int) -> set[str]:
    """Return the labellers who gave one of several answers to a query, taken back or not."""
    return {event.author for event in history if event.kind is EventKind.OPINION and event.query == number}


def partial_answers(history: Sequence[Event], number: int, size: int) -> dict[str, LabellerLabel]:
    """Return the current answer of each labeller to a query that wants several, by name."""
    said: dict[str, LabellerLabel] = {}
    for event in history:
        if event.kind is not EventKind.OPINION or event.query != number:
            continue
        said.pop(event.author, None)
        if event.label is not None:
            said[event.author] = decode_labeller_label(event, event.label, size)
    return said


def check_declared(reliability: float | None) -> None:
    """Raise ``InvalidInput`` for a reliability that was sent and is none."""
    if reliability is not None and not 0.0 < reliability <= 1.0:
        raise InvalidInput("reliability", f"is {reliability!r}, must lie in (0, 1]")


def reliability_of(crowd: Crowd | None, declared: float | None, labeller: str) -> float:
    """Return the reliability that was declared, else that of the labeller."""
    check_declared(declared)
    if declared is not None:
        return declared
    return 1.0 if crowd is None else crowd.reliability_of(labeller)
