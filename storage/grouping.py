"""Several leases and answers in one transaction, as a group commit of pushes is.

Whoever writes holds the model until its transaction is on disk, so calls that each had their own would wait for as many
commits. A server has one thread that writes, and hands over all that came meanwhile together.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, Generic, TypeVar

from sqlalchemy import Connection

from quercus.storage import deferred_writes
from quercus.storage.clocks import Clock, StoreClock
from quercus.storage.engine import Database
from quercus.storage.errors import NotFound, StoreError
from quercus.storage.queries import shared_view
from quercus.storage.queries.claims import LeaseClaim
from quercus.storage.queries.shared_view import SharedView
from quercus.storage.refusals import REFUSALS, LateRefusal
from quercus.storage.row_writes import takes_arrays

T = TypeVar("T")
AT_ONCE: Final = 64
"""Calls of one transaction at most."""


@dataclass(frozen=True, slots=True)
class GroupWork(Generic[T]):
    """The work of a call in a transaction that others share.

    Attributes
    ----------
    model : its name.
    alone : does it, reading all it needs. It may raise one of `REFUSALS` before it writes, and `LateRefusal` then.
    together : the same, by what was read for the group; None where that does not suffice, and nothing was written.
    asking : the labeller who asks for queries, and for how many; or
    claim : of which lease something is said.
    reads_alone : what is read for the group does not suffice; those behind it wait for what it does.
    """

    model: str
    alone: Callable[[Connection], T]
    together: Callable[[Connection, SharedView], T | None]
    asking: tuple[str, int] | None = None
    claim: LeaseClaim | None = None
    reads_alone: bool = False


class _Call:
    """A call of a group, and what came of it."""

    __slots__ = ("error", "result", "work")

    def __init__(self, work: GroupWork[Any]) -> None:
        self.work = work
        self.result: object = None
        self.error: Exception | None = None

    def run(self, connection: Connection) -> None:
        """Do the work within a transaction; remember why it was refused."""
        try:
            self.result = self.work.alone(connection)
        except REFUSALS as error:
            self.error = error

    def run_together(self, connection: Connection, seen: SharedView) -> bool:
        """Do the work by what was read for the group; False: it must `run`."""
        try:
            self.result = self.work.together(connection, seen)
        except REFUSALS as error:
            self.error = error
            return True
        return self.result is not None


class GroupedCalls:
    """Runs calls of one thread, those about one model in one transaction.

    Parameters
    ----------
    database : whose transactions they share.
    clocks : asked when a model is held.
    """

    def __init__(self, database: Database, clocks: StoreClock) -> None:
        self._database = database
        self._clocks = clocks

    def run(self, works: Sequence[GroupWork[Any]]) -> list[Any]:
        """Do the works, those about one model in order, `AT_ONCE` at most in a transaction.

        An exception other than `REFUSALS` undoes the transaction. Where several shared it, each is then done alone,
        unless the store itself failed: that fails for all.

        Returns
        -------
        list
            The result of each, or the exception that it raised.
        """
        calls = [_Call(work) for work in works]
        by_model: defaultdict[str, list[_Call]] = defaultdict(list)
        for call in calls:
            by_model[call.work.model].append(call)
        for model, group in by_model.items():
            for first in range(0, len(group), AT_ONCE):
                self._commit_group(model, group[first : first + AT_ONCE])
        return [call.result if call.error is None else call.error for call in calls]

    def _commit_group(self, model: str, group: list[_Call]) -> None:
        try:
            with self._database.write() as connection:
                for part in _split_by_reads(group):
                    deferred_writes.send_waiting(connection)
                    for call in self._run_together(connection, model, part):
                        deferred_writes.send_waiting(
                            connection
                        )  # the next call sees what those before it wrote
                        call.run(connection)
        except StoreError as error:
            for call in group:
                call.error = error
        except Exception as error:
            if len(group) == 1:
                group[0].error = error.refusal if isinstance(error, LateRefusal) else error
                return
            for call in group:
                call.error = None
                self._commit_group(model, [call])

    def _run_together(self, connection: Connection, model: str, group: list[_Call]) -> list[_Call]:
        """Read once for all calls, and do those for which that suffices; the others are left."""
        if len(group) == 1 or group[0].work.reads_alone or not takes_arrays(connection):
            return group
        wanted: Counter[str] = Counter()
        for call in group:
            if call.work.asking is not None and call.work.asking[1] > 0:
                wanted[call.work.asking[0]] += call.work.asking[1]
        claims = [call.work.claim for call in group if call.work.claim is not None]
        try:
            seen = shared_view.read_shared_view(
                connection, model, wanted, claims, Clock(self._clocks, connection)
            )
        except NotFound:
            return group  # each is told so
        return [call for call in group if not call.run_together(connection, seen)]


def _split_by_reads(group: Iterable[_Call]) -> list[list[_Call]]:
    """Split a group where calls that read alone begin and end, in order."""
    return [list(part) for _, part in groupby(group, lambda call: call.work.reads_alone)]
