"""Statements: worked out before the model is held, stored when it is."""

from dataclasses import replace

import numpy as np
import pytest
from support import words

from quercus.belief.codec import decode
from quercus.labelling.errors import UnreadableLabel
from quercus.storage import (
    AlreadyExists,
    Corrections,
    EventKind,
    FailedPrecondition,
    KnownModel,
    ModelReplaced,
    NotFound,
    Policy,
    Statement,
    StatementBatch,
)


@pytest.fixture
def said(store, helper):
    """A model with instances a, b, c (1..3)."""
    helper.create(budget=9)
    helper.push("a", "b", "c")
    return store


def batch(request: str, *statements: tuple[str, str, bytes]) -> StatementBatch:
    return StatementBatch(request, [Statement(*each, 1.0) for each in statements])


def last(store, instance: int) -> bytes | None:
    return store.history("m", [instance])[instance][-1].label


def known(store) -> KnownModel:
    return KnownModel(8, store.get_model("m").key)


def unreadable(store) -> KnownModel:
    """By which no label can be combined: whoever tries it fails."""
    return KnownModel(0, store.get_model("m").key)


def test_a_plan_is_kept_where_only_others_were_spoken_of(said, helper):
    mine = batch("r", ("a", "ann", words.A), ("b", "ann", words.B))
    planned = said.plan_statements("m", mine, known(said))
    assert said.get_model("m").sequence_committed == 3  # nothing is stored yet
    helper.push("d")
    said.state("m", batch("other", ("c", "bob", words.C)), words.KNOWN)
    report = said.state("m", mine, unreadable(said), planned)
    assert (report.committed_sequence, report.stored, report.known) == (10, 2, 0)
    assert [event.sequence for event in said.read_events("m")] == list(range(1, 11))
    assert (last(said, 1), last(said, 2), last(said, 3)) == (words.A, words.B, words.C)
    with pytest.raises(UnreadableLabel):
        said.state("m", batch("new", ("b", "bob", words.C)), unreadable(said), planned)


def test_a_plan_that_was_overtaken_is_made_anew(said):
    mine = batch("r", ("a", "ann", words.A), ("b", "ann", words.B))
    planned = said.plan_statements("m", mine, known(said))
    said.state("m", batch("other", ("a", "bob", words.C), ("b", "ann", words.B)), known(said))
    report = said.state("m", mine, known(said), planned)
    assert (report.stored, report.known) == (1, 1)  # ann has said B of b meanwhile
    both = decode(last(said, 1), 8).mass.contour()  # of two who contradict each other
    np.testing.assert_allclose(both[[0, 2, 1]], [0.01 / 0.0199, 0.01 / 0.0199, 0.0001 / 0.0199])
    assert last(said, 2) == words.B


def test_whom_the_policy_does_not_name_states_nothing(said):
    """Not even by a plan that was made before the policy; but whoever acts for others may."""
    mine = batch("r", ("a", "ann", words.A), ("b", "carl", words.B))
    planned = said.plan_statements("m", mine, known(said))
    said.set_policy("m", Policy(labellers=("ann",)))
    for plan in (planned, None):
        with pytest.raises(
            FailedPrecondition, match="carl may not label this model: its labelling policy names"
        ):
            said.state("m", mine, known(said), plan)
    assert said.get_model("m").sequence_committed == 3
    acting = replace(mine, permitted=True)
    assert said.state("m", acting, unreadable(said), planned).stored == 2  # as planned
    assert said.state("m", batch("s", ("c", "ann", words.C)), known(said)).stored == 1


def test_a_plan_that_the_policy_forbids_by_now_is_not_stored(said):
    said.state("m", batch("first", ("a", "ann", words.A)), known(said))
    other, new = batch("other", ("a", "ann", words.B)), batch("new", ("b", "ann", words.B))
    plans = [said.plan_statements("m", each, known(said)) for each in (other, new)]
    said.set_policy("m", Policy(corrections=Corrections.NOBODY))
    with pytest.raises(FailedPrecondition, match="allows no corrections"):
        said.state("m", other, known(said), plans[0])
    assert said.state("m", new, unreadable(said), plans[1]).stored == 1
    assert (last(said, 1), last(said, 2)) == (words.A, words.B)


def test_a_plan_for_another_model_of_the_name_is_not_stored(said, helper):
    mine, was = batch("r", ("a", "ann", words.A)), known(said)
    planned = said.plan_statements("m", mine, was)
    said.delete_model("m")
    helper.create()
    helper.push("b", "a")
    with pytest.raises(ModelReplaced, match="model m was replaced"):
        said.state("m", mine, was, planned)
    assert said.state("m", mine, words.KNOWN, planned).stored == 1  # without a key it is planned anew
    assert last(said, 2) == words.A


def test_a_request_that_comes_with_more_statements_is_refused(said):
    """It was acknowledged as known, and what was new in it was lost."""
    said.state("m", batch("other", ("c", "bob", words.C)), words.KNOWN)
    mine = (("a", "ann", words.A), ("c", "bob", words.C))  # the second is known, and not stored again
    first = said.state("m", batch("r", *mine), words.KNOWN)
    assert (first.stored, first.known) == (1, 1)
    said.state("m", batch("third", ("b", "bob", words.B)), words.KNOWN)
    for new in (("b", "ann", words.B), ("b", "bob", words.B), ("c", "bob", words.A)):
        with pytest.raises(AlreadyExists, match="request r already exists in model m with other statements"):
            said.state("m", batch("r", *mine, new), words.KNOWN)
    with pytest.raises(NotFound, match="'nowhere'"):
        said.state("m", batch("r", *mine, ("nowhere", "ann", words.B)), words.KNOWN)
    again = said.state("m", batch("r", *mine), words.KNOWN)
    assert (again.stored, again.known) == (0, 2)


def test_a_request_that_comes_with_what_was_said_once_is_refused(said):
    """A label that a labeller stated before, but not last, or with another reliability, is new, and was lost."""
    said.state("m", batch("1", ("c", "ann", words.C)), words.KNOWN)
    said.state("m", batch("2", ("c", "ann", words.B), ("b", "bob", words.B)), words.KNOWN)
    first = Statement("a", "ann", words.A, 0.5)
    known = Statement("b", "bob", words.B, 1.0)
    report = said.state("m", StatementBatch("r", [first, known]), words.KNOWN)
    assert (report.stored, report.known) == (1, 1)
    for other in (
        [first, known, Statement("c", "ann", words.C, 1.0)],
        [first, Statement("b", "bob", words.B, 0.5)],
        [Statement("a", "ann", words.A, 0.8), known],
    ):
        with pytest.raises(AlreadyExists, match="request r already exists in model m with other statements"):
            said.state("m", StatementBatch("r", other), words.KNOWN)
    estimated = [
        Statement("a", "ann", words.A),
        Statement("b", "bob", words.B),
    ]
    for same in ([first, known], [known, first, first], estimated):
        again = said.state("m", StatementBatch("r", same), words.KNOWN)
        assert (again.stored, again.known) == (0, len(same))


def test_a_request_that_said_one_thing_in_two_ways_is_acknowledged_again(said):
    said.state("m", batch("1", ("a", "ann", words.A), ("b", "ann", words.A)), words.KNOWN)
    mine = [
        Statement("a", "ann", words.A, 1.0),  # known
        Statement("a", "ann", words.A, 0.5),
        Statement("a", "ann", None, 1.0),
        Statement("a", "ann", words.A, 0.5),
        Statement("b", "ann", None, 1.0),
    ]
    report = said.state("m", StatementBatch("r", mine), words.KNOWN)
    assert (report.stored, report.known) == (4, 1)
    again = said.state("m", StatementBatch("r", mine), words.KNOWN)
    assert (again.stored, again.known) == (0, 5)


def test_what_was_acknowledged_needs_no_plan(said):
    mine = batch("r", ("a", "ann", words.A))
    report = said.state("m", mine, words.KNOWN, said.plan_statements("m", mine, words.KNOWN))
    assert said.plan_statements("m", mine, words.KNOWN) is None
    again = said.state("m", mine, words.KNOWN)
    assert (again.committed_sequence, again.stored, again.known) == (report.committed_sequence, 0, 1)
    kinds = [event.kind for event in said.read_events("m")][3:]
    assert kinds == [EventKind.STATEMENT, EventKind.CORRECTION]
