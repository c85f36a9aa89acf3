"""Check of the history of a model's queries: steps follow one another legally, and a query has one holder at a time."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlalchemy import Connection, select

from quercus.labelling.lifecycle import QueryState, Step
from quercus.storage.schema import AnyRow, query, query_history

OPEN, LEASED, WITHDRAWN = QueryState.OPEN, QueryState.LEASED, QueryState.WITHDRAWN
ANSWERED, REFUSED = QueryState.ANSWERED, QueryState.REFUSED
STATES_WHEN_RETURNED = {OPEN, WITHDRAWN}
RETURNING_STEPS = {Step.RELEASED, Step.EXPIRED, Step.POSTPONED, Step.EVICTED}
SETTLING_STEPS = {Step.ANSWERED, Step.REFUSED}
# The states before and after each step. Skipping, correcting and undoing may also leave the state as it is.
ALLOWED_STATES: dict[Step, tuple[set[QueryState], set[QueryState]]] = {
    Step.LEASED: ({OPEN}, {LEASED}),
    Step.RELEASED: ({LEASED}, STATES_WHEN_RETURNED),
    Step.EXPIRED: ({LEASED}, STATES_WHEN_RETURNED),
    Step.POSTPONED: ({LEASED}, STATES_WHEN_RETURNED),
    Step.EVICTED: ({LEASED}, STATES_WHEN_RETURNED),
    Step.SKIPPED: ({OPEN, LEASED, WITHDRAWN}, {OPEN, LEASED, WITHDRAWN}),
    Step.ANSWERED: ({OPEN, LEASED}, {ANSWERED, OPEN}),
    Step.REFUSED: ({OPEN, LEASED}, {REFUSED}),
    Step.WITHDRAWN: ({OPEN}, {WITHDRAWN}),
    Step.SETTLED: ({OPEN}, {ANSWERED}),
    Step.CORRECTED: ({ANSWERED, OPEN, LEASED}, {ANSWERED, OPEN, LEASED}),
    # undoing one of several answers leaves the state as it is
    Step.UNDONE: ({ANSWERED, REFUSED, OPEN, LEASED}, {WITHDRAWN, ANSWERED, OPEN, LEASED}),
}
AMENDING_STEPS = {Step.CORRECTED, Step.UNDONE}


@dataclass(slots=True)
class _Query:
    """A query after the steps so far.

    Attributes
    ----------
    state : QueryState
    token : str
        Token of the lease that holds the query; empty if there is none.
    voices, all_voices : set of str
        Labellers whose answers count, and all who ever gave one.
    """

    state: QueryState
    token: str = ""
    voices: set[str] = field(default_factory=set)
    all_voices: set[str] = field(default_factory=set)


def history_faults(connection: Connection, model_id: int) -> Iterator[str]:
    """Yield the faults in the history of a model's queries, for the user."""
    known: dict[int, _Query] = {}
    clock = -float("inf")
    steps = select(query_history).where(query_history.c.model_id == model_id).order_by(query_history.c.id)
    for row in connection.execute(steps.execution_options(yield_per=1000)):
        if row.clock < clock:
            yield f"step {row.id} of its queries lies before the one that was taken earlier"
        clock = max(clock, row.clock)
        if row.step == Step.OPENED and row.number not in known:
            known[row.number] = _Query(QueryState(row.state))
        elif row.number in known:
            yield from _faults_of_step(known[row.number], row)
        else:
            yield f"step {row.id}: query {row.number} was {Step(row.step).name} before it was opened"
            known[row.number] = _Query(QueryState(row.state), row.token or "")
    columns = (query.c.number, query.c.state, query.c.token, query.c.answers)
    for row in connection.execute(select(*columns).where(query.c.model_id == model_id)):
        if (found := known.pop(row.number, None)) is None:
            yield f"query {row.number} has no history"
        else:
            yield from _faults_of_end(found, row)
    for number in sorted(known):
        yield f"query {number} is not there, and its history is"


def _faults_of_end(of: _Query, row: AnyRow) -> Iterator[str]:
    """Yield the differences between a query and the end of its history."""
    if of.state != row.state:
        yield f"query {row.number} is {QueryState(row.state).name}, its history ends with {of.state.name}"
    elif row.state == LEASED and row.token != of.token:
        yield f"query {row.number} is held under another lease than its history says"
    if row.answers != len(of.voices):
        yield f"query {row.number} counts {row.answers} answers, by its history {len(of.voices)} count"


def _faults_of_step(of: _Query, row: AnyRow) -> Iterator[str]:
    """Apply a step, and yield its faults."""
    step, state, what = Step(row.step), QueryState(row.state), f"step {row.id}: query {row.number}"
    before, after = ALLOWED_STATES.get(step, (set(), set()))
    stays = step not in AMENDING_STEPS or state in {of.state, WITHDRAWN}
    if of.state not in before or state not in after or not stays:
        yield f"{what} was {of.state.name}, {step.name} and then {state.name}, which cannot be"
    if step in RETURNING_STEPS | SETTLING_STEPS and of.token and row.token != of.token:
        yield f"{what} was {step.name} by one while another held it"
    if step is Step.LEASED:
        if of.token:
            yield f"{what} was leased to two at once"
        of.token = row.token or ""
    elif state != LEASED:
        of.token = ""
    of.state = state
    yield from _faults_of_voices(of, row, step, what)


def _faults_of_voices(of: _Query, row: AnyRow, step: Step, what: str) -> Iterator[str]:
    """Update the labellers whose answers count after a step, and yield faults."""
    if step is Step.ANSWERED or (step is Step.CORRECTED and row.labeller in of.all_voices):
        of.voices.add(row.labeller)
        of.all_voices.add(row.labeller)
    elif step is Step.UNDONE and of.state != WITHDRAWN:
        if row.labeller not in of.voices:
            yield f"{what} has no answer of {row.labeller} that could be UNDONE"
        of.voices.discard(row.labeller)
    if of.state in {WITHDRAWN, REFUSED}:
        of.voices.clear()
    if of.state == ANSWERED and not of.voices:
        yield f"{what} is ANSWERED, and all its answers were taken back"
