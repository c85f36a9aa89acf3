"""The one transition function, against the rules written as a table of who may do what."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quercus.labelling.errors import Refused
from quercus.labelling.lifecycle import (
    NEVER,
    Correct,
    Evict,
    Extend,
    LeaseRecord,
    NoLongerWanted,
    NoMoreAnswers,
    QueryLifecycle,
    Reply,
    ReturnLease,
    Take,
    UndoReply,
    after_expiry,
    apply_event,
)
from quercus.storage import QueryState

OPEN, LEASED, ANSWERED, REFUSED, WITHDRAWN = QueryState
SETTLED = {ANSWERED, REFUSED}
TOKENS = st.sampled_from(("a", "b", "c"))
TIMES = st.sampled_from((0.0, 5.0, 10.0, 20.0))
leases = st.builds(LeaseRecord, TOKENS, TIMES, st.booleans(), st.booleans())
events = st.one_of(
    st.builds(Take, TOKENS, st.sampled_from((15.0, 30.0))),
    st.builds(Extend, leases, st.sampled_from((15.0, 30.0))),
    st.builds(ReturnLease, leases, st.sampled_from((NEVER, 25.0))),
    st.builds(Reply, leases, st.sampled_from((OPEN, ANSWERED, REFUSED))),
    st.just(NoLongerWanted()),
    st.just(NoMoreAnswers()),
    st.just(Evict()),
    st.builds(Correct, st.booleans()),
    st.builds(UndoReply, st.booleans()),
)


@st.composite
def lives(draw: st.DrawFn) -> QueryLifecycle:
    state = draw(st.sampled_from(list(QueryState)))
    held = state in {LEASED, *SETTLED}
    return QueryLifecycle(
        state,
        draw(TOKENS) if held else "",
        draw(TIMES) if state is LEASED else NEVER,
        draw(st.sampled_from((NEVER, 5.0, 25.0))) if state is OPEN else NEVER,
        draw(st.booleans()) if state in {OPEN, LEASED} else True,
        0 if state in {REFUSED, WITHDRAWN} else draw(st.integers(state is ANSWERED, 3)),
    )


@settings(max_examples=20 * settings.default.max_examples)  # what is rare is a combination of five things
@given(lives(), events, TIMES)
def test_a_step_follows_the_rules(before: QueryLifecycle, event: object, now: float) -> None:
    lifecycle = after_expiry(before, now)
    if not may(lifecycle, event, now):
        with pytest.raises(Refused, match=r"."):
            apply_event(before, event, now)  # type: ignore[arg-type]
        return
    after = apply_event(before, event, now)  # type: ignore[arg-type]
    # what holds of every life
    assert (after.state is LEASED) == (after.ends != NEVER)
    no_lease = isinstance(event, NoMoreAnswers)  # what the store itself settles has no lease
    assert (after.token != "") == (after.state in {LEASED, *SETTLED} and not no_lease)
    assert after.not_before == NEVER or after.state is OPEN
    # nobody loses a live lease but by the own word
    if lifecycle.state is LEASED and after.token != lifecycle.token:
        assert isinstance(event, ReturnLease | Reply | Evict)
        assert isinstance(event, Evict) or event.lease.token == lifecycle.token
    # what is settled stays so, but for being taken back
    if lifecycle.state in SETTLED and after != lifecycle:
        assert isinstance(event, Correct | UndoReply)
        assert after.state in {lifecycle.state, WITHDRAWN}
    # answers are counted one by one; what is answered has one at least, what is refused or withdrawn none
    assert after.answers - lifecycle.answers in counts(event, lifecycle)
    assert (after.answers > 0) >= (after.state is ANSWERED)
    assert (after.answers == 0) >= (after.state in {REFUSED, WITHDRAWN})
    # what nobody wants and nobody answered is not open after anything was taken back
    if isinstance(event, UndoReply) and after.state is OPEN:
        assert after.wanted or after.answers


def counts(event: object, lifecycle: QueryLifecycle) -> set[int]:
    """By how many answers a life may have more after a step."""
    match event:
        case Reply(_, into):
            return {int(into is not REFUSED)} if into is not REFUSED else {-lifecycle.answers}
        case Correct(again):
            return {int(again)}
        case UndoReply(every):
            return {-lifecycle.answers} if every or lifecycle.state is REFUSED else {-1}
        case NoLongerWanted() | ReturnLease() | Evict():
            return {0, -lifecycle.answers}
    return {0}


def may(lifecycle: QueryLifecycle, event: object, now: float) -> bool:
    match event:
        case Take():
            return lifecycle.state is OPEN and lifecycle.not_before <= now
        case NoLongerWanted():
            return True
        case NoMoreAnswers():
            return lifecycle.state is OPEN and lifecycle.answers > 0
        case Evict():
            return lifecycle.state is LEASED
        case UndoReply():
            return lifecycle.state is REFUSED or lifecycle.answers > 0
        case Correct(again):
            return lifecycle.answers > 0 and (lifecycle.state is ANSWERED or not again)
        case Extend(lease, _):
            return (
                lifecycle.state is LEASED
                and lifecycle.token == lease.token
                and not lease.given_up
                and not lease.used
            )
        case ReturnLease():
            return lifecycle.state not in SETTLED
        case Reply(lease, _):
            mine = lifecycle.state is OPEN or (lifecycle.state is LEASED and lifecycle.token == lease.token)
            return mine and not lease.given_up and not lease.used
    raise AssertionError(event)


@given(lives(), TIMES, TIMES)
def test_expiry_is_final_and_time_only_goes_on(lifecycle: QueryLifecycle, now: float, later: float) -> None:
    now, later = min(now, later), max(now, later)
    assert after_expiry(after_expiry(lifecycle, now), later) == after_expiry(lifecycle, later)
    if lifecycle.state is LEASED and lifecycle.ends > now:
        assert after_expiry(lifecycle, now) is lifecycle
    elif lifecycle.state is LEASED:
        assert after_expiry(lifecycle, now).state is (
            OPEN if lifecycle.wanted or lifecycle.answers else WITHDRAWN
        )


@given(lives(), TIMES)
def test_what_growth_does_not_want_is_withdrawn_when_it_comes_back(
    lifecycle: QueryLifecycle, now: float
) -> None:
    after = apply_event(lifecycle, NoLongerWanted(), now)
    lifecycle = after_expiry(lifecycle, now)
    if lifecycle.state is LEASED:
        assert after.state is LEASED
        assert apply_event(after, ReturnLease(LeaseRecord(lifecycle.token, lifecycle.ends)), now) == (
            QueryLifecycle(OPEN, wanted=False, answers=lifecycle.answers)
            if lifecycle.answers
            else QueryLifecycle(WITHDRAWN)
        )
    elif lifecycle.state is OPEN:
        assert after.state is (OPEN if lifecycle.answers else WITHDRAWN)
