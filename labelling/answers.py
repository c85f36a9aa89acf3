"""Answers, refusals and corrections: how they change a query, and the events that they add to the log.

No label is ever edited. A correction is a new event, which replaces all answers to the instance; a correction without
a label takes them back. The functions take the state of the locked model, and return the changes or raise `Refused`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from quercus.belief.agreement import Consensus
from quercus.belief.codec import decode, encode
from quercus.belief.errors import InvalidInput
from quercus.belief.label import ClassSet, Label, Masses
from quercus.labelling.combining import (
    combine_answers,
    contradicts,
    crowd_label,
    has_unasked,
    joined_names,
    joint_event,
)
from quercus.labelling.crowds.labellers import Crowd
from quercus.labelling.errors import Refused
from quercus.labelling.event import Event, EventKind
from quercus.labelling.history import LabellerLabel, decode_labeller_label
from quercus.labelling.lifecycle import (
    OPEN,
    SETTLED,
    Correct,
    HeldQuery,
    HistoryNote,
    NoMoreAnswers,
    QueryLifecycle,
    QueryState,
    Reply,
    Step,
    UndoReply,
    apply_event,
)
from quercus.labelling.policy import Corrections, Policy

WHY_SETTLED_EARLY = "the budget is spent"


@dataclass(frozen=True, slots=True)
class Words:
    """The answer of a labeller who holds a query.

    Attributes
    ----------
    label : bytes or None
        Encoded by `belief.codec`; None refuses the query ("cannot tell").
    reliability : float or None
        Reliability sent with the label; None if none was sent.
    comment, shown : str
        Stored with the answer; `shown` names the content of the labeller's screen.
    took_s : float or None
        Seconds that the labeller took; None stands for the time since the query was leased.
    """

    label: bytes | None
    reliability: float | None = None
    comment: str = ""
    took_s: float | None = None
    shown: str = ""


@dataclass(frozen=True, slots=True)
class Amendment:
    """A correction of the answer to a query; without a label, it takes the answer back.

    Attributes
    ----------
    labeller : str
        Who amends the answer.
    label : bytes or None
        The new label, encoded by `belief.codec`; None takes the answer back.
    reliability : float or None
        Reliability sent with the label; None if none was sent.
    comment : str
        Stored with the correction.
    permitted : bool
        True allows it whatever the policy says.
    trusted : bool
        True allows it, where the policy lets anyone correct, to labellers whom the policy does not name.
    """

    labeller: str
    label: bytes | None
    reliability: float | None = None
    comment: str = ""
    permitted: bool = False
    trusted: bool = False


@dataclass(frozen=True, slots=True)
class LabelledInstance:
    """An instance and its model, as the transaction that has locked them sees them.

    Attributes
    ----------
    said : sequence of Event
        All events about the instance, oldest first.
    size : int
        Number of classes.
    policy : Policy
    crowd : Crowd or None
        Estimates of the labellers; None unless the policy says that reliability is estimated.
    committed : int
        Number of the newest event of the log.
    clock, wall : float
        The time in seconds: of the lease clock, and of the wall clock (for times that people see).
    """

    said: Sequence[Event]
    size: int
    policy: Policy
    crowd: Crowd | None
    committed: int
    clock: float
    wall: float

    def event(self, place: int, kind: EventKind, label: bytes | None, author: str, **more: object) -> Event:
        """Return a new event about the instance, with the number `committed + place`."""
        columns = {"reliability": 1.0, "asked": None, "conflict": False, "query": 0} | more
        return Event(
            self.committed + place, kind, self.said[0].instance, self.said[0].id, None, label, author,
            specification=None, created_at=self.wall, **columns,  # type: ignore[arg-type]
        )  # fmt: skip

    def with_joint(self, events: list[Event]) -> list[Event]:
        """Return `events`, followed by the combination of all labels if some were stated or adjudicated."""
        if not has_unasked(self.said):
            return events
        said, sequence = [*self.said, *events], self.committed + len(events) + 1
        return [
            *events,
            joint_event(said, self.size, self.crowd, self.policy.combination, sequence, self.wall),
        ]


@dataclass(frozen=True, slots=True)
class Effects:
    """The changes that a call makes.

    Attributes
    ----------
    events : sequence of Event
        To append to the log.
    life : QueryLifecycle
        The query's next state.
    labeller : str or None
        Who settled the query; None if it is not settled.
    settled_by : int or None
        Number of the event that settled it.
    note : HistoryNote
        To append to the query's history.
    answered, refused, conflicts : int
        To add to the model's counts.
    """

    events: Sequence[Event]
    life: QueryLifecycle
    labeller: str | None
    settled_by: int | None
    note: HistoryNote
    answered: int = 0
    refused: int = 0
    conflicts: int = 0


@dataclass(frozen=True, slots=True)
class AnswerOutcome:
    """The outcome of an answer, a refusal or a correction.

    Attributes
    ----------
    sequence : int
        Number of its event.
    repeated : bool
        Whether the same holder had already sent the same, so that nothing was stored again.
    conflict : bool
        Whether the label contradicts the earlier evidence.
    settled : bool
        Whether the query is answered or refused; False if it wants more answers.
    reliability : float
        The reliability that counts.
    together : Consensus or None
        The combination of all answers, for a query that wants several.
    estimated : bool
        Whether the policy says that reliability is estimated.
    """

    sequence: int
    repeated: bool
    conflict: bool = False
    settled: bool = True
    reliability: float = field(default=1.0, compare=False)
    together: Consensus | None = field(default=None, compare=False)
    estimated: bool = field(default=False, compare=False)


def answer(
    held: HeldQuery, words: Words, of: LabelledInstance, *, spends_budget: bool
) -> tuple[AnswerOutcome, Effects | None]:
    """Settle a query with an answer or a refusal, or open it again for the next answer.

    Parameters
    ----------
    held : the query, and the lease that the call presents.
    words : the answer.
    of : the instance and its model.
    spends_budget : whether an answer uses up the budget. It then settles the query, however many answers are wanted.

    Returns
    -------
    tuple
        The outcome, and the effects; None in their place if the same answer was already stored.

    Raises
    ------
    Refused
        If the lease no longer counts, or was already used for a different answer.
    """
    number, labeller, size = held.number, held.given.labeller, of.size
    partial = partial_answers(of.said, number, size)
    data, sent = words.label, words.reliability
    if data is None and partial:  # others have answered, so a refusal counts as a vacuous answer
        data, sent = encode(ClassSet((1 << size) - 1)), 1.0
    reliability = 1.0 if data is None else reliability_of(of.crowd, sent, labeller)
    declared = data is None or sent is not None
    together: Consensus | None = None
    combined: tuple[bytes, str] | None = None
    settles, conflict = True, False
    if data is not None:
        label = decode(data, size)
        if of.policy.answers_per_query > 1 or labellers_with_partial_answers(of.said, number):
            labels = {author: each for author, each in partial.items() if author != labeller}
            labels[labeller] = LabellerLabel(label, reliability, not declared)
            together = combine_answers(list(labels.values()), size, of.policy.combination)
            settles = spends_budget or _is_enough(of.policy, len(labels), together.conflict)
            if settles:
                combined, conflict = _combine_labels(labels, together, of.said, of)
        else:
            conflict = contradicts(of.said, label, reliability, size)
    if held.given.sequence:  # the lease has led to an answer already
        return _answered_before(held, of, data, reliability, declared, together), None

    into = OPEN if not settles else QueryState.REFUSED if data is None else QueryState.ANSWERED
    life = held.after(Reply(held.given.lease, into), of.clock)
    is_opinion = not settles or combined is not None
    kind = EventKind.OPINION if is_opinion else EventKind.REFUSAL if data is None else EventKind.ANSWER
    own = of.event(
        1, kind, data, labeller, reliability=reliability, conflict=conflict, query=number,
        asked=None if is_opinion else held.asked, comment=words.comment, shown=words.shown, assumed=not declared,
        took_s=max(0.0, of.clock - held.given.since) if words.took_s is None else float(words.took_s),
    )  # fmt: skip
    events = [own]
    if combined is not None:  # the labeller's own label comes before the combination
        events.append(
            of.event(2, EventKind.ANSWER, *combined, conflict=conflict, query=number, asked=held.asked)
        )
    settled_by = of.committed + len(events) if settles else None
    if settles and data is not None:
        events = of.with_joint(events)
    step = Step.REFUSED if data is None else Step.ANSWERED
    note = HistoryNote(
        number, held.instance, step, life.state, labeller, held.given.lease.token, sequence=own.sequence,
        why="" if settles else "wants more answers",
    )  # fmt: skip
    is_estimated = of.crowd is not None
    outcome = AnswerOutcome(own.sequence, False, conflict, settles, reliability, together, is_estimated)
    return outcome, Effects(
        events, life, labeller if settles else None, settled_by, note, int(data is not None), int(data is None),
        _conflicts(events) if settles else 0,
    )  # fmt: skip


def settle_early(number: int, asked: bytes, life: QueryLifecycle, of: LabelledInstance) -> Effects:
    """Settle a query with the answers that it has, because the budget is spent.

    It can get no more: nobody is asked any more, and no lease is left, because answered and leased queries together
    never exceed the budget.
    """
    given = partial_answers(of.said, number, of.size)
    together = combine_answers(list(given.values()), of.size, of.policy.combination)
    combined, conflict = _combine_labels(given, together, of.said, of)
    after = apply_event(life, NoMoreAnswers(), of.clock)
    settled = of.event(1, EventKind.ANSWER, *combined, conflict=conflict, query=number, asked=asked)
    events = of.with_joint([settled])
    note = HistoryNote(
        number, settled.instance, Step.SETTLED, after.state, sequence=settled.sequence, why=WHY_SETTLED_EARLY
    )
    return Effects(events, after, None, settled.sequence, note, conflicts=_conflicts(events))


def amend(
    number: int, life: QueryLifecycle, change: Amendment, of: LabelledInstance
) -> tuple[AnswerOutcome, Effects | None]:
    """Correct the answer to a query, or take it back.

    Parameters
    ----------
    number, life : the query's number and state.
    change : the correction.
    of : the instance and its model.

    Returns
    -------
    tuple
        The outcome, and the effects; None in their place if the same correction was already stored.

    Raises
    ------
    Refused
        If the query is not answered, or the policy forbids the correction.
    """
    labeller, size = change.labeller, of.size
    settled = life.state in SETTLED
    said = [event for event in of.said if event.query == number]
    own = _own_words(said, labeller)
    reliability = 1.0 if change.label is None else reliability_of(of.crowd, change.reliability, labeller)
    declared = change.label is None or change.reliability is not None
    # an estimated reliability may have changed since, so only a declared one is compared
    if own is not None and own.label == change.label and (own.reliability == reliability or not declared):
        return _amended_before(said, own), None
    if not change.permitted:
        _check_may_amend(of.policy, change, said)

    among = labeller in labellers_with_partial_answers(of.said, number)
    pending = among and not settled
    if not settled and not pending:
        raise Refused("it is not answered")
    holds, conflict = change.label, False
    if among and settled:  # the new combination of all answers replaces the old one
        given = partial_answers(of.said, number, size)
        given.pop(labeller, None)
        if change.label is not None:
            label = decode(change.label, size)
            given[labeller] = LabellerLabel(label, reliability, not declared)
        holds = None
        if given:
            together = combine_answers(list(given.values()), size, of.policy.combination)
            (holds, _), conflict = _combine_labels(given, together, of.said[:1], of)
    elif not among and change.label is not None:  # replaces the only answer, or overrules all of them
        conflict = contradicts(of.said[:1], decode(change.label, size), reliability, size)
    again = own is not None and own.label is None
    every = not pending and holds is None
    step = UndoReply(every) if change.label is None else Correct(again)
    after = apply_event(life, step, of.clock)

    events = []
    if among:  # the labeller's own label, then the combination that replaces the old one
        events.append(of.event(
            1, EventKind.OPINION, change.label, labeller, reliability=reliability, query=number,
            comment=change.comment, assumed=not declared,
        ))  # fmt: skip
    if not pending:
        events.append(of.event(
            len(events) + 1, EventKind.CORRECTION, holds, labeller, conflict=conflict, query=number,
            reliability=1.0 if among else reliability, comment="" if among else change.comment,
            assumed=not among and not declared,
        ))  # fmt: skip
    sequence = of.committed + len(events)
    if not pending:
        events = of.with_joint(events)
    note = HistoryNote(
        number, of.said[0].instance, Step.UNDONE if change.label is None else Step.CORRECTED, after.state, labeller,
        sequence=sequence, why=change.comment[:200],
    )  # fmt: skip
    undone = life.state is QueryState.REFUSED and change.label is None
    outcome = AnswerOutcome(sequence, False, conflict, after.state is QueryState.ANSWERED)
    return outcome, Effects(
        events, after, labeller, None, note, refused=-int(undone), conflicts=_conflicts(events)
    )


def partial_answers(history: Sequence[Event], number: int, size: int) -> dict[str, LabellerLabel]:
    """Return the current answer of each labeller to a query that wants several, by name of the labeller."""
    said: dict[str, LabellerLabel] = {}
    for event in history:
        if event.kind is not EventKind.OPINION or event.query != number:
            continue
        said.pop(event.author, None)
        if event.label is not None:
            said[event.author] = decode_labeller_label(event, event.label, size)
    return said


def labellers_with_partial_answers(history: Sequence[Event], number: int) -> set[str]:
    """Return the labellers who gave one of several answers to a query, even if they took it back."""
    return {event.author for event in history if event.kind is EventKind.OPINION and event.query == number}


def check_declared(reliability: float | None) -> None:
    """Raise ``InvalidInput`` if a reliability was sent and does not lie in (0, 1]."""
    if reliability is not None and not 0.0 < reliability <= 1.0:
        raise InvalidInput("reliability", f"is {reliability!r}, must lie in (0, 1]")


def reliability_of(crowd: Crowd | None, declared: float | None, labeller: str) -> float:
    """Return the declared reliability, or else the labeller's estimate, or else 1."""
    check_declared(declared)
    if declared is not None:
        return float(declared)
    return 1.0 if crowd is None else crowd.reliability_of(labeller)


def _combine_labels(
    labels: Mapping[str, LabellerLabel],
    together: Consensus,
    history: Sequence[Event],
    of: LabelledInstance,
) -> tuple[tuple[bytes, str], bool]:
    """Return the combined label with its authors, and whether it contradicts the history.

    `together` is the combination by the policy's rule; it counts where the crowd gives none.
    """
    found = crowd_label(labels, of.size, of.crowd, of.policy.combination)
    label: Label = found or Masses(together.mass)
    return (encode(label), joined_names(labels)), contradicts(history, label, 1.0, of.size)


def _is_enough(policy: Policy, count: int, conflict: float) -> bool:
    """Return whether `count` answers with this degree of conflict settle a query."""
    wanted = policy.answers_per_query
    return count >= wanted and (conflict <= policy.max_conflict or count >= 2 * wanted)


def _conflicts(events: Sequence[Event]) -> int:
    """Return how many events conflict; an opinion's conflict is counted with the combination that follows it."""
    return sum(event.conflict for event in events if event.kind is not EventKind.OPINION)


def _answered_before(
    held: HeldQuery, of: LabelledInstance, label: bytes | None, reliability: float, declared: bool,
    together: Consensus | None,
) -> AnswerOutcome:  # fmt: skip
    """Return the stored outcome; refuse an answer that differs from the stored one."""
    sequence = held.given.sequence
    first = next(event for event in of.said if event.sequence == sequence)
    if first.label == label and (first.reliability == reliability or not declared):
        settled = held.life.state in SETTLED
        return AnswerOutcome(
            sequence, True, first.conflict, settled, reliability, together, of.crowd is not None
        )
    if None not in (first.label, label):
        raise Refused("already answered, with another label or reliability")
    raise Refused("already refused" if first.label is None else "already answered")


def _own_words(events: Sequence[Event], labeller: str) -> Event | None:
    """Return a labeller's newest answer to a query, or correction of it; None if the newest event is a refusal.

    If the labeller gave one of several answers, that is an OPINION: the combined event that follows has the same
    author, but is not the labeller's own label.
    """
    mine = [event for event in events if event.author == labeller]
    opinions = [event for event in mine if event.kind is EventKind.OPINION]
    others = [event for event in mine if event.kind in (EventKind.ANSWER, EventKind.CORRECTION)]
    if mine and mine[-1].kind is EventKind.REFUSAL:
        return None
    return next(reversed(opinions or others), None)


def _amended_before(events: Sequence[Event], own: Event) -> AnswerOutcome:
    """Return the stored outcome: the labeller's own event, or the CORRECTION that was stored with it."""
    together = (event for event in events if (event.sequence, event.author) == (own.sequence + 1, own.author))
    last = next((event for event in together if event.kind is EventKind.CORRECTION), own)
    return AnswerOutcome(last.sequence, repeated=True, conflict=last.conflict)


def _check_may_amend(policy: Policy, change: Amendment, events: Sequence[Event]) -> None:
    labeller, who = change.labeller, policy.corrections
    if who is Corrections.NOBODY:
        raise Refused("the labelling policy of this model allows no corrections")
    if labeller in {event.author for event in events}:
        return
    if who is Corrections.OWN:
        raise Refused(f"{labeller} did not answer it, and only labellers who answered may correct it")
    if not (change.trusted or policy.may_label(labeller)):
        raise Refused(
            f"{labeller} did not answer it, and is not one of the labellers of this model, any of whom may correct it"
        )
