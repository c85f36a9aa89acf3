"""Group commit of leases and answers: several calls in one transaction.

A transaction locks the model until it is on disk, so calls with transactions of their own would wait for one another's
commits. A server's writing thread collects the calls that arrive meanwhile, and hands them over together.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from sqlalchemy import Connection

from quercus.belief.errors import InvalidInput
from quercus.labelling.answers import AnswerOutcome
from quercus.labelling.errors import Refused
from quercus.storage.clocks import Clock, StoreClock
from quercus.storage.engine import Database
from quercus.storage.errors import BeyondLog, FailedPrecondition, NotFound, StoreError
from quercus.storage.queries.answers import answer
from quercus.storage.queries.desk import AnswerRequest, LeaseRequest, read_desk
from quercus.storage.queries.leases import lease
from quercus.storage.queries.records import Leased

GroupCall: TypeAlias = LeaseRequest | AnswerRequest
_Outcome: TypeAlias = Leased | AnswerOutcome | Exception
AT_ONCE: Final = 64
"""Most calls in one transaction."""
REFUSALS: Final = (BeyondLog, FailedPrecondition, InvalidInput, NotFound, Refused)
"""Errors with which a call fails before it writes anything, so that the others of its transaction go on."""


def run_group(database: Database, clocks: StoreClock, calls: Sequence[GroupCall]) -> list[Any]:
    """Run leases and answers, those of one model in order, at most `AT_ONCE` in a transaction.

    An exception other than `REFUSALS` rolls the transaction back, and each of its calls is then run alone. If the store
    itself failed, all of them fail.

    Returns
    -------
    list
        The result of each call, or the exception that it raised.
    """
    outcomes: list[_Outcome] = [StoreError("not done")] * len(calls)
    by_model: defaultdict[str, list[int]] = defaultdict(list)
    for place, call in enumerate(calls):
        try:
            if isinstance(call, LeaseRequest):
                call.check()
            by_model[call.model].append(place)
        except InvalidInput as error:
            outcomes[place] = error
    for model, places in by_model.items():
        for first in range(0, len(places), AT_ONCE):
            mine = places[first : first + AT_ONCE]
            done = _commit(database, clocks, model, [calls[place] for place in mine])
            for place, outcome in zip(mine, done, strict=True):
                outcomes[place] = outcome
    return outcomes


def _commit(database: Database, clocks: StoreClock, model: str, calls: Sequence[GroupCall]) -> list[_Outcome]:
    try:
        with database.write() as connection:
            return _run_in_order(connection, model, calls, Clock(clocks, connection))
    except StoreError as error:
        return [error] * len(calls)
    except Exception as error:
        if len(calls) == 1:
            return [error]
        return [_commit(database, clocks, model, [call])[0] for call in calls]


def _run_in_order(
    connection: Connection, model: str, calls: Sequence[GroupCall], clock: Clock
) -> list[_Outcome]:
    """Run calls of one model in order; the desk is read again whenever its rows do not suffice for the next call."""
    outcomes: list[_Outcome] = []
    while len(outcomes) < len(calls):
        left = calls[len(outcomes) :]
        try:
            desk = read_desk(connection, model, left, clock)
        except NotFound as error:
            return [*outcomes, *[error] * len(left)]
        for place, call in enumerate(left):
            if place and not desk.suffices_for(place, call):
                break
            try:
                if isinstance(call, LeaseRequest):
                    outcomes.append(lease(desk, call, desk.free_for(place, call)))
                else:
                    outcomes.append(answer(desk, call))
            except REFUSALS as error:
                outcomes.append(FailedPrecondition(error.reason) if isinstance(error, Refused) else error)
        desk.write()
    return outcomes
