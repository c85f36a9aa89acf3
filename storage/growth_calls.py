"""The part of `Store` for growers. Every call is one transaction."""

from collections.abc import Sequence

from quercus.labelling import checks
from quercus.specification.server import KEEP_TREES
from quercus.storage import growers, snapshots
from quercus.storage.calls import StoreCalls
from quercus.storage.growers import Fence, GrowerRecord
from quercus.storage.queries import agenda as agendas
from quercus.storage.queries.agenda import Publication
from quercus.storage.records import AgendaEntry, Snapshot


class GrowthCalls(StoreCalls):
    """The calls about trees and their growers; see `Store`."""

    # Trees

    def publish(
        self,
        model: str,
        *,
        as_of: int,
        snapshot: bytes,
        agenda: Sequence[AgendaEntry] | None,
        key: int | None = None,
        keep: int = KEEP_TREES.default,
        fence: Fence | None = None,
        report: bytes = b"",
    ) -> int:
        """Store the next tree version, and update the queries by its agenda.

        Open queries that the agenda does not name are withdrawn; those that it names keep their number and get the new
        position and reason. Leased queries stay as they are. For other instances of the agenda queries are opened,
        unless one was settled after `as_of`, since the tree does not know that answer yet.

        Parameters
        ----------
        as_of : int
            Sequence number of the last event that the tree contains.
        agenda : sequence of AgendaEntry or None
            None leaves the queries as they are, for a `publish_agenda` that follows.
        key : int, optional
            `ModelRecord.key` of the model that the tree was grown for, in case another model has its name now.
        keep : int, optional
            Number of tree versions to keep, including this one; older ones are removed.
        fence : Fence, optional
            Fence of the grower, if several growers share the store.
        report : bytes, optional
            The new `ModelRecord.report`.

        Returns
        -------
        int
            The new version. If nothing is stored: the current version if its tree contains more events than `as_of`; 0
            if the model was deleted, or does not have this `key`.

        Raises
        ------
        FailedPrecondition
            If `as_of` lies beyond the log.
        Fenced
            If another grower has taken the model.
        InvalidInput
            If the agenda names an instance twice, or an event that is not an instance.
        """
        checks.at_least("keep", keep, 1)
        published = Publication(as_of, snapshot, agenda, key, keep, fence, report)
        with self._database.write(announced=True) as connection:
            return agendas.publish_tree(connection, model, published, self._clock_of(connection))

    def publish_agenda(
        self,
        model: str,
        *,
        as_of: int,
        agenda: Sequence[AgendaEntry],
        key: int,
        fence: Fence | None = None,
    ) -> None:
        """Update the queries by the agenda of the newest tree, as `publish` does.

        Do nothing if the model was deleted, or if a tree that contains more events than `as_of` was published.
        """
        with self._database.write() as connection:
            clock = self._clock_of(connection)
            agendas.follow_agenda(connection, model, as_of, agenda, key=key, clock=clock, fence=fence)

    def replace_report(self, model: str, report: bytes, *, key: int, fence: Fence | None = None) -> None:
        """Replace `ModelRecord.report`; do nothing if the model was deleted, or does not have this `key`.

        Raises
        ------
        Fenced
            If another grower has taken the model.
        """
        with self._database.write(announced=True) as connection:
            clock = self._clock_of(connection)
            agendas.replace_report(connection, model, report, key=key, clock=clock, fence=fence)

    def has_queries(self, model: str) -> bool:
        """Return whether the model has queries that labellers can answer now or may be able to later."""
        with self._database.read() as connection:
            return agendas.has_queries(connection, model)

    def snapshot(self, model: str, version: int | None = None) -> Snapshot:
        """Return a tree version, by default the newest; raise `NotFound` ("tree version") if there is none."""
        with self._database.read() as connection:
            return snapshots.get_snapshot(connection, model, version)

    # Growers

    @property
    def may_be_shared(self) -> bool:
        """True if several growers may use the store, each as a member."""
        return not self._database.dialect.one_writer

    def renew_grower(self, member: str, place: str, duration_s: float) -> None:
        """Join the growers of the store, or renew the membership, for `duration_s` seconds from now.

        Parameters
        ----------
        member : str
            Unique identity of the grower.
        place : str
            Host and process, for people.
        duration_s : float
            Seconds after which it counts as dead, unless it renews the membership.
        """
        checks.name_text("member", member)
        checks.name_text("place", place)
        checks.duration("duration_s", duration_s)
        with self._database.write() as connection:
            now = self._clocks.now(connection)
            growers.renew_membership(connection, member, place, now.clock + duration_s, now)

    def live_growers(self) -> list[GrowerRecord]:
        """Return the live members, in order of identity."""
        with self._database.read() as connection:
            return growers.live_members(connection, self._clocks.now(connection))

    def take_model(self, key: int, member: str) -> Fence | None:
        """Take the model of this `ModelRecord.key`, to publish its trees; return None if another live member has it."""
        with self._database.write() as connection:
            return growers.take_model(connection, key, member, self._clocks.now(connection))

    def release_models(self, member: str, keys: Sequence[int] | None = None) -> None:
        """Release models, so that other members can take them: those with the given keys, or all of the member's."""
        with self._database.write() as connection:
            growers.release_models(connection, member, keys)

    def leave_growers(self, member: str) -> None:
        """End the membership, and release the member's models."""
        with self._database.write() as connection:
            growers.end_membership(connection, member)
