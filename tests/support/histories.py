"""Laws of the history of queries: one holder at a time, and every step from a state that allows it."""

from collections.abc import Sequence

from quercus.storage import HistoryRow, QueryState, Step

OPEN, LEASED, WITHDRAWN = QueryState.OPEN, QueryState.LEASED, QueryState.WITHDRAWN
SETTLED = {QueryState.ANSWERED, QueryState.REFUSED}
COMES_BACK = {OPEN, WITHDRAWN}

# From which states, to which: independent of the code, read off the page.
MAY = {
    Step.LEASED: ({OPEN}, {LEASED}),
    Step.RELEASED: ({LEASED}, COMES_BACK),
    Step.EXPIRED: ({LEASED}, COMES_BACK),
    Step.POSTPONED: ({LEASED}, COMES_BACK),
    Step.EVICTED: ({LEASED}, COMES_BACK),
    Step.SKIPPED: ({OPEN, LEASED, WITHDRAWN}, {OPEN, LEASED, WITHDRAWN}),
    Step.ANSWERED: ({OPEN, LEASED}, {QueryState.ANSWERED, OPEN}),
    Step.REFUSED: ({OPEN, LEASED}, {QueryState.REFUSED}),
    Step.WITHDRAWN: ({OPEN}, {WITHDRAWN}),
    Step.SETTLED: ({OPEN}, {QueryState.ANSWERED}),
    # of one of several answers also before it is settled
    Step.CORRECTED: ({QueryState.ANSWERED, OPEN, LEASED}, {QueryState.ANSWERED, OPEN, LEASED}),
    Step.UNDONE: ({*SETTLED, OPEN, LEASED}, {WITHDRAWN, QueryState.ANSWERED, OPEN, LEASED}),
}


def check_history(rows: Sequence[HistoryRow]) -> dict[str, int]:
    """Walk through all steps; returns how many of each there were, and how many holdings."""
    state: dict[int, QueryState] = {}
    holder: dict[int, str] = {}
    ends: dict[int, float] = {}
    clock = -float("inf")
    counts: dict[str, int] = {"holdings": 0}
    for row in rows:
        assert row.clock >= clock, "the lease clock went back"
        clock = row.clock
        counts[row.step.name] = counts.get(row.step.name, 0) + 1
        number = row.query
        if row.step is Step.OPENED:
            assert number not in state, f"query {number} was opened twice"
            assert row.state is OPEN
        else:
            before, after = MAY[row.step]
            assert state[number] in before, (
                f"{row.step.name} of query {number}, which is {state[number].name}"
            )
            assert row.state in after
        if row.step is Step.CORRECTED or (row.step is Step.UNDONE and row.state is not WITHDRAWN):
            assert row.state is state[number]  # one of several answers: nothing else changes
        if row.step is Step.LEASED:
            assert number not in holder, f"query {number} has two holders"
            holder[number], ends[number] = row.lease, row.until or 0.0
            assert row.lease
            assert ends[number] > row.clock
            counts["holdings"] += 1
        elif row.step in {Step.RELEASED, Step.EXPIRED, Step.POSTPONED, Step.EVICTED}:
            assert holder.pop(number) == row.lease, "given back by who did not hold it"
            if row.step is Step.EXPIRED:
                assert (row.until or 0.0) >= ends[number], "a lease got shorter"
                assert row.clock >= (row.until or 0.0), "expired before its end"
        elif row.step is Step.SKIPPED and holder.get(number) == row.lease:
            del holder[number]
            assert row.state in COMES_BACK
        elif row.step in {Step.ANSWERED, Step.REFUSED} and number in holder:
            assert holder.pop(number) == row.lease, "settled by who did not hold it"
        assert (row.state is LEASED) == (number in holder)
        state[number] = row.state
    return counts
