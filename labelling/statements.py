"""Statements: labels that labellers give to instances without being asked.

A statement is an event of the log. It spends no budget and settles no query: an open query about its instance is
withdrawn, a leased one stays with its holder. After the statements, and after every later answer, a CORRECTION without
a query has the combination of all labels of the instance, asked for or not (`combining.joint_event`).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from quercus.labelling.answers import reliability_of
from quercus.labelling.combining import joint_event
from quercus.labelling.crowds.labellers import Crowd
from quercus.labelling.errors import Refused
from quercus.labelling.event import Event, EventKind
from quercus.labelling.policy import Corrections, Policy

WHY_STATED = "its label was stated unasked"
LABEL_KINDS = frozenset({EventKind.ANSWER, EventKind.OPINION, EventKind.CORRECTION, EventKind.STATEMENT})

_Words: TypeAlias = tuple[str, str, bytes | None]
"""Id of the instance, labeller, and label of a statement."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a labeller about an instance (its id); without a label, it takes the earlier statement back.

    `reliability` is None if none was sent: the same label with a new estimate is not a new statement.
    """

    instance: str
    labeller: str
    label: bytes | None
    reliability: float | None = None
    comment: str = ""

    @property
    def words(self) -> _Words:
        """The statement without its reliability and comment."""
        return self.instance, self.labeller, self.label


@dataclass(frozen=True, slots=True)
class StatementBatch:
    """Statements that are stored together or not at all.

    Attributes
    ----------
    request : str
        Name of the batch: a batch sent again under the same name is acknowledged, but not stored again.
    statements : sequence of Statement
    permitted : bool
        Whether the sender acts for others, so that statements may be in the name of labellers whom the policy does not
        name.
    """

    request: str
    statements: Sequence[Statement]
    permitted: bool = False


@dataclass(frozen=True, slots=True)
class StatementPlan:
    """The events that a batch adds, planned on the log as it was at one event.

    Attributes
    ----------
    as_of : int
        Number of that event, then the newest.
    instances : frozenset of int
        Instances of the batch.
    fresh : sequence of Event
        The statements to store; sequences and times are set when they are stored, here and in `joints`.
    joints : sequence of Event
        The combination of all labels of each instance in `fresh`.
    corrects : bool
        Whether a labeller changes an earlier statement, which the policy may forbid.
    """

    as_of: int
    instances: frozenset[int]
    fresh: Sequence[Event]
    joints: Sequence[Event]
    corrects: bool

    def is_overtaken(self, policy: Policy, spoken: Collection[int], *, permitted: bool = False) -> bool:
        """Return whether the plan is out of date.

        It is if the policy may now forbid it, or one of its instances is in `spoken`, those that got events since.
        `permitted` is that of the `StatementBatch`.
        """
        forbidden = (self.corrects and policy.corrections is Corrections.NOBODY) or not (
            permitted or all(policy.may_label(event.author) for event in self.fresh)
        )
        return forbidden or not self.instances.isdisjoint(spoken)

    def events(self, committed: int, at: float, request: str) -> list[Event]:
        """Return the events to append after number `committed`, at time `at`, for the batch of name `request`."""
        fresh = [replace(event, request=request) for event in self.fresh]
        found = enumerate([*fresh, *self.joints], committed + 1)
        return [replace(event, sequence=sequence, created_at=at) for sequence, event in found]


def plan(
    statements: Sequence[Statement],
    places: Mapping[str, int],
    said: Mapping[int, Sequence[Event]],
    policy: Policy,
    crowd: Crowd | None,
    size: int,
    committed: int,
    *,
    permitted: bool = False,
) -> StatementPlan:
    """Plan the events of a batch.

    Parameters
    ----------
    statements
        The statements of the batch.
    places
        Number of each instance's INSTANCE event, by id.
    said
        All events of each instance, oldest first, by number of its INSTANCE event.
    policy, crowd
        Of the model; `crowd` is None unless the policy says that reliability is estimated.
    size
        Number of classes.
    committed
        Number of the newest event of the log.
    permitted
        See `StatementBatch`.

    Raises
    ------
    Refused
        If there is nothing to take back, or the policy forbids corrections or does not name the labeller.
    """
    after = {instance: list(events) for instance, events in said.items()}
    fresh: list[Event] = []
    corrects = False
    for given in statements:
        events = after[places[given.instance]]
        own = _newest_of_labeller(events, given.labeller)
        if _is_known(own, given):
            continue
        if not (permitted or policy.may_label(given.labeller)):
            raise Refused(f"{given.labeller} may not label this model: its labelling policy names others")
        if own and policy.corrections is Corrections.NOBODY:
            raise Refused(
                f"{given.labeller} has stated a different label for instance {given.instance!r} before, and the "
                "labelling policy of this model allows no corrections"
            )
        corrects |= own is not None
        event = _event_of(given, places, crowd, committed + len(fresh) + 1)
        events.append(event)
        fresh.append(event)
    touched = dict.fromkeys(event.instance for event in fresh)
    joints = [joint_event(after[instance], size, crowd, policy.combination, 0, 0.0) for instance in touched]
    return StatementPlan(committed, frozenset(said), fresh, joints, corrects)


def statement_events(statements: Sequence[Statement], places: Mapping[str, int]) -> list[Event]:
    """Return statements as events, to estimate reliability from; those about instances not in `places` are left out."""
    return [_event_of(given, places, None, 0) for given in statements if given.instance in places]


def not_stored(batch: StatementBatch, stored: Sequence[tuple[_Words, float]]) -> Sequence[Statement] | None:
    """Return the statements of a batch that an earlier request of the same name did not store.

    Return None if that request stored statements that the batch does not have.

    Parameters
    ----------
    batch
        The batch that was sent now.
    stored
        The statements that the earlier request stored, with their reliabilities.
    """
    reliabilities: dict[_Words, set[float]] = {}
    for words, reliability in stored:
        reliabilities.setdefault(words, set()).add(reliability)
    if not reliabilities.keys() <= {given.words for given in batch.statements}:
        return None
    return [given for given in batch.statements if not _is_stored(given, reliabilities)]


def were_known(statements: Sequence[Statement], before: Mapping[str, Sequence[Event]]) -> bool:
    """Return whether all statements were in the log already; `before` has each instance's earlier events, by id."""
    return all(
        (own := _newest_of_labeller(before[given.instance], given.labeller)) is not None
        and _is_known(own, given)
        for given in statements
    )


def _is_stored(given: Statement, stored: Mapping[_Words, Collection[float]]) -> bool:
    """Return whether a statement is among the stored ones."""
    found = stored.get(given.words, ())
    any_will_do = given.reliability is None or given.label is None
    return bool(found) and (any_will_do or given.reliability in found)


def _newest_of_labeller(said: Sequence[Event], labeller: str) -> Event | None:
    """Return the newest label of a labeller for an instance; a refusal is not a label."""
    mine = (event for event in reversed(said) if event.author == labeller and event.kind in LABEL_KINDS)
    return next((event for event in mine if event.query or event.kind is EventKind.STATEMENT), None)


def _is_known(own: Event | None, given: Statement) -> bool:
    if own is None:
        if given.label is None:
            raise Refused(f"{given.labeller} has no statement about instance {given.instance!r} to take back")
        return False
    if given.label is None and own.kind is not EventKind.STATEMENT:
        raise Refused(
            f"{given.labeller} answered query {own.query} about instance {given.instance!r}: undo that answer"
        )
    same = given.reliability is None or given.label is None or own.reliability == given.reliability
    return own.kind is EventKind.STATEMENT and own.label == given.label and same


def _event_of(given: Statement, places: Mapping[str, int], crowd: Crowd | None, sequence: int) -> Event:
    says = given.label is not None  # a retraction has no reliability
    reliability = reliability_of(crowd, given.reliability, given.labeller) if says else 1.0
    return Event(
        sequence, EventKind.STATEMENT, places[given.instance], given.instance, None, given.label, given.labeller,
        reliability, None, False, None, 0.0, comment=given.comment, assumed=says and given.reliability is None,
    )  # fmt: skip
