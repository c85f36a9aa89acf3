"""Statements: worked out before the model is held, stored when it is."""

import pytest

from quercus.storage import (
    AlreadyExists,
    Corrections,
    Event,
    EventKind,
    FailedPrecondition,
    NotFound,
    Policy,
)
from quercus.storage.log.statements import CombinedStatement, StatementBatch, StatementRecord


@pytest.fixture
def said(store, helper):
    """A model with instances a, b, c (1..3)."""
    helper.create(budget=9)
    helper.push("a", "b", "c")
    return store


def join(history: list[Event]) -> CombinedStatement:
    """All words in their order: whoever reads them sees what they were made of."""
    return CombinedStatement(
        b"".join(
            event.label or b"" for event in history[1:] if event.query or event.kind is EventKind.STATEMENT
        ),
        "all",
    )


def batch(request: str, *statements: tuple[str, str, bytes]) -> StatementBatch:
    return StatementBatch(request, [StatementRecord(*each) for each in statements])


def last(store, instance: int) -> bytes | None:
    return store.history("m", [instance])[instance][-1].label


def test_a_plan_is_kept_where_only_others_were_spoken_of(said, helper):
    mine = batch("r", ("a", "ann", b"x"), ("b", "ann", b"y"))
    planned = said.plan_statements("m", mine, join)
    assert said.get_model("m").sequence_committed == 3  # nothing is stored yet
    helper.push("d")
    said.state("m", batch("other", ("c", "bob", b"z")), join)
    report = said.state("m", mine, None, planned)  # whoever joined again would fail
    assert (report.committed_sequence, report.stored, report.known) == (10, 2, 0)
    assert [event.sequence for event in said.read_events("m")] == list(range(1, 11))
    assert (last(said, 1), last(said, 2), last(said, 3)) == (b"x", b"y", b"z")


def test_a_plan_that_was_overtaken_is_made_anew(said):
    mine = batch("r", ("a", "ann", b"x"), ("b", "ann", b"y"))
    planned = said.plan_statements("m", mine, join)
    said.state("m", batch("other", ("a", "bob", b"z"), ("b", "ann", b"y")), join)
    report = said.state("m", mine, join, planned)
    assert (report.stored, report.known) == (1, 1)  # ann has said y of b meanwhile
    assert (last(said, 1), last(said, 2)) == (b"zx", b"y")


def test_a_plan_that_the_policy_forbids_by_now_is_not_stored(said):
    said.state("m", batch("first", ("a", "ann", b"x")), join)
    other, new = batch("other", ("a", "ann", b"y")), batch("new", ("b", "ann", b"y"))
    plans = [said.plan_statements("m", each, join) for each in (other, new)]
    said.set_policy("m", Policy(corrections=Corrections.NOBODY))
    with pytest.raises(FailedPrecondition, match="allows no corrections"):
        said.state("m", other, join, plans[0])
    assert said.state("m", new, None, plans[1]).stored == 1
    assert (last(said, 1), last(said, 2)) == (b"x", b"y")


def test_a_request_that_comes_with_more_statements_is_refused(said):
    """It was acknowledged as known, and what was new in it was lost."""
    said.state("m", batch("other", ("c", "bob", b"z")), join)
    mine = (("a", "ann", b"x"), ("c", "bob", b"z"))  # the second is known, and not stored again
    first = said.state("m", batch("r", *mine), join)
    assert (first.stored, first.known) == (1, 1)
    said.state("m", batch("third", ("b", "bob", b"y")), join)
    for new in (("b", "ann", b"y"), ("b", "bob", b"y"), ("c", "bob", b"x")):
        with pytest.raises(AlreadyExists, match="request r already exists in model m with other statements"):
            said.state("m", batch("r", *mine, new), join)
    with pytest.raises(NotFound, match="'nowhere'"):
        said.state("m", batch("r", *mine, ("nowhere", "ann", b"y")), join)
    again = said.state("m", batch("r", *mine), join)
    assert (again.stored, again.known) == (0, 2)


def test_a_request_that_comes_with_what_was_said_once_is_refused(said):
    """A label that a labeller stated before, but not last, or with another reliability, is new, and was lost."""
    said.state("m", batch("1", ("c", "ann", b"z")), join)
    said.state("m", batch("2", ("c", "ann", b"y"), ("b", "bob", b"y")), join)
    first = StatementRecord("a", "ann", b"x", 0.5)
    known = StatementRecord("b", "bob", b"y", 1.0)
    report = said.state("m", StatementBatch("r", [first, known]), join)
    assert (report.stored, report.known) == (1, 1)
    for other in (
        [first, known, StatementRecord("c", "ann", b"z")],
        [first, StatementRecord("b", "bob", b"y", 0.5)],
        [StatementRecord("a", "ann", b"x", 0.8), known],
    ):
        with pytest.raises(AlreadyExists, match="request r already exists in model m with other statements"):
            said.state("m", StatementBatch("r", other), join)
    estimated = [
        StatementRecord("a", "ann", b"x", 0.6, declared=False),
        StatementRecord("b", "bob", b"y", 0.7, declared=False),
    ]
    for same in ([first, known], [known, first, first], estimated):
        again = said.state("m", StatementBatch("r", same), join)
        assert (again.stored, again.known) == (0, len(same))


def test_a_request_that_said_one_thing_in_two_ways_is_acknowledged_again(said):
    said.state("m", batch("1", ("a", "ann", b"x"), ("b", "ann", b"x")), join)
    mine = [
        StatementRecord("a", "ann", b"x"),  # known
        StatementRecord("a", "ann", b"x", 0.5),
        StatementRecord("a", "ann", None),
        StatementRecord("a", "ann", b"x", 0.5),
        StatementRecord("b", "ann", None),
    ]
    report = said.state("m", StatementBatch("r", mine), join)
    assert (report.stored, report.known) == (4, 1)
    again = said.state("m", StatementBatch("r", mine), join)
    assert (again.stored, again.known) == (0, 5)


def test_what_was_acknowledged_needs_no_plan(said):
    mine = batch("r", ("a", "ann", b"x"))
    report = said.state("m", mine, join, said.plan_statements("m", mine, join))
    assert said.plan_statements("m", mine, join) is None
    again = said.state("m", mine, join)
    assert (again.committed_sequence, again.stored, again.known) == (report.committed_sequence, 0, 1)
    kinds = [event.kind for event in said.read_events("m")][3:]
    assert kinds == [EventKind.STATEMENT, EventKind.CORRECTION]
