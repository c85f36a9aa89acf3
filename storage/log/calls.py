"""The part of `Store` for the log. Every call is one transaction."""

from collections.abc import Sequence

from quercus.labelling.event import Event
from quercus.storage.calls import StoreCalls
from quercus.storage.log import event_log, reading
from quercus.storage.log.append import Outcome, append_all
from quercus.storage.log.displays import read_displays
from quercus.storage.records import AppendedBatch, Float64, LogSegment, NewValue, Push


class LogCalls(StoreCalls):
    """The calls that append instances and read events; see `Store`."""

    def append_instances(
        self,
        model: str,
        ids: Sequence[str],
        values: Float64,
        labels: Sequence[bytes],
        new_values: Sequence[NewValue] = (),
    ) -> AppendedBatch:
        """Append a batch of instances, completely or not at all.

        Parameters
        ----------
        ids : sequence of str
            One per row. A row whose id is stored with the same values and label is not stored again.
        values : float64 (n, K)
            NaN where a value is missing.
        labels : sequence of bytes
            The source's labels, encoded by `belief.codec`.
        new_values : sequence of NewValue
            Nominal values that this batch has for the first time; stored with it.

        Raises
        ------
        AlreadyExists
            If an id is stored with other content (`name` = the id).
        Stale
            If a new value's index is not the next free one: read `vocabulary` again and retry.
        """
        (outcome,) = self.append_group([Push(model, ids, values, labels, new_values)])
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def append_group(self, pushes: Sequence[Push]) -> list[Outcome]:
        """Append several batches in one commit (group commit), in order; each is stored completely or not at all.

        Returns
        -------
        list
            For each push its outcome, or the exception that `append_instances` would have raised; the other pushes are
            stored nevertheless. A `StoreError` is raised instead, and nothing of the group is stored.
        """
        return append_all(self._database.write, pushes, self._clocks)

    def vocabulary(self, model: str) -> dict[int, tuple[str, ...]]:
        """Return the learned nominal values by attribute, in order of arrival; attributes without any are absent."""
        with self._database.read() as connection:
            return event_log.read_vocabulary(connection, model)

    def read_events(self, model: str, after: int = 0, limit: int = 10_000) -> list[Event]:
        """Return events after sequence number `after`, in order."""
        with self._database.read() as connection:
            return event_log.read_events(connection, model, after, limit)

    def read_log(
        self, model: str, after: int = 0, *, rows: int = 20_000, size_bytes: int = 2**24
    ) -> LogSegment:
        """Read the log after sequence number `after`, with instances as columns, to read the whole log fast.

        Parameters
        ----------
        rows : int
            Most events in the result.
        size_bytes : int
            The result ends soon after its values and labels exceed this size; it has at least one event if there is
            one.
        """
        with self._database.read() as connection:
            return reading.read_log(connection, model, after, rows, size_bytes)

    def get_instance(self, model: str, id: str) -> list[Event]:  # noqa: A002 - its name on the wire
        """Return the events of one instance, oldest first, beginning with its INSTANCE event."""
        with self._database.read() as connection:
            return event_log.get_instance(connection, model, id)

    def list_instances(self, model: str, after_sequence: int = 0, limit: int = 1000) -> list[Event]:
        """Return INSTANCE events after a sequence number, in order."""
        with self._database.read() as connection:
            return event_log.list_instances(connection, model, after_sequence, limit)

    def row_ids(self, model: str, after: int = 0, limit: int = 10_000) -> list[str]:
        """Return the ids of the instances after a sequence number, in order."""
        with self._database.read() as connection:
            return event_log.row_ids(connection, model, after, limit)

    def history(self, model: str, instances: Sequence[int]) -> dict[int, list[Event]]:
        """Return the events of instances, oldest first, by the sequence of their INSTANCE event."""
        with self._database.read() as connection:
            return event_log.instance_history(connection, model, instances)

    def newest_rows(self, model: str, limit: int) -> list[int]:
        """Return the sequences of the instances of the last `limit` label events, and of the last `limit` pushed."""
        with self._database.read() as connection:
            spoken = event_log.newest_spoken(connection, model, limit)
            return sorted({*spoken, *event_log.newest_instances(connection, model, limit)})

    def displays(self, model: str, instances: Sequence[int]) -> dict[int, bytes]:
        """Return the displays of instances that have one, by the sequence of their INSTANCE event."""
        with self._database.read() as connection:
            return read_displays(connection, model, instances)
