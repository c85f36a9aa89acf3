"""The calls that lease queries to labellers, one by one or in advance."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import suppress

import grpc

from quercus.client import query_calls, requests, retrying, transport
from quercus.client.aio.labelling import LabellingCalls
from quercus.client.aio.models import ModelCalls
from quercus.client.aio.query_stream import AsyncQueryStream
from quercus.client.concurrency import AsyncRepeating
from quercus.client.errors import FailedPrecondition, QuercusError
from quercus.client.filters import ANY, Filter
from quercus.client.results import Lease, Query
from quercus.client.stream_parts import StreamOptions


class LeasingCalls(LabellingCalls, ModelCalls):
    """The calls that lease queries to labellers."""

    async def lease(
        self,
        model: str,
        labeller: str,
        *,
        lease_s: float = 60.0,
        wait_s: float = 0.0,
        only: Filter | None = None,
    ) -> Lease:
        """Lease one query, waiting up to ``wait_s`` (at most 60) for one.

        :meth:`queries` calls this for you.
        """
        newest = self._sequences.newest_sequence(model)
        ask = query_calls.lease(model, labeller, lease_s, wait_s, newest, only)
        try:
            return await self._send_call(ask, self.timeout_s + wait_s)
        except FailedPrecondition as error:
            if not transport.is_beyond(error):
                raise
        self._sequences.forget_model(model)  # the known number belongs to a deleted model
        self._forms.forget_format(model)
        return await self._send_call(
            query_calls.lease(model, labeller, lease_s, wait_s, 0, only), self.timeout_s + wait_s
        )

    async def queries(
        self,
        model: str,
        labeller: str,
        *,
        lease_s: float = 60.0,
        idle_s: float | None = 10.0,
        only: Filter | None = None,
    ) -> AsyncGenerator[Query, None]:
        """Yield queries one after another; the lease of the current one is extended while you think.

        Answer or refuse each query before you request the next. An unanswered one goes to another labeller
        (or back to you) when its lease ends. If you leave the loop, the current one is returned at once.

        Parameters
        ----------
        model, labeller
            Name of the model (``"-"``: any model, in turn), and name of the labeller (1 to 100 characters).
        lease_s
            Length of a lease, 1 to 3,600 seconds: others get the query after it if this process dies.
        idle_s
            Seconds without a query after which to end; ``None``: end only when the budget is spent.
        only
            Filter of queries; ``None``: all.
        """
        patience = requests.WaitPolicy(idle_s)
        while True:
            lease = await self.lease(model, labeller, lease_s=lease_s, wait_s=patience.wait_s, only=only)
            if not lease.queries:
                now = await self.get_model(model) if lease.idle == "budget_spent" else None
                if patience.is_over(lease, now):
                    return
                continue
            patience.restart_wait()
            query = lease.queries[0]
            keeping = AsyncRepeating(
                lambda q=query: self._keep_lease(q, lease_s),  # type: ignore[misc]
                lease_s / 3,
                "quercus-lease",
            )
            await keeping.start()
            try:
                yield query
            except GeneratorExit:
                await self._give_back(query)
                raise
            finally:
                await keeping.stop()
            if model != ANY and not lease.budget_left and requests.is_spent(await self.get_model(model)):
                return

    def stream_queries(
        self,
        model: str,
        labeller: str,
        *,
        prefetch: int = 3,
        lease_s: float = 60.0,
        idle_s: float | None = 10.0,
        only: Filter | None = None,
    ) -> AsyncQueryStream:
        """Return a stream of queries to iterate over within ``with``; it fetches the next ones in advance.

        Answer on the stream (``stream.answer(query, label)``), which takes one round trip. The stream extends leases
        while you think, and continues after an outage.

        Parameters
        ----------
        model, labeller, lease_s, idle_s, only
            See :meth:`queries`.
        prefetch
            Queries that you hold at once, including the current one; 1 to 100.
        """
        return AsyncQueryStream(self, StreamOptions(model, labeller, lease_s, prefetch, only), idle_s)

    async def _keep_lease(self, query: Query, lease_s: float) -> bool:
        """Extend a lease, and return whether to continue; if not, the answer itself fails with the reason."""
        try:
            await self.extend_lease(query, lease_s)
        except QuercusError as error:  # a transient error may end before the lease
            return retrying.is_transient(error)  # else the query is answered, or another's
        except ValueError:  # the channel was closed meanwhile
            return False
        return True

    async def _give_back(self, query: Query) -> None:
        """Return a query, in one attempt: leaving the loop does not wait for the end of an outage."""
        request = query_calls.give_back(query).request
        # answered, refused, or the server is unreachable: the lease expires
        with suppress(grpc.RpcError, QuercusError, ValueError):
            await self._stubs.queries.ReturnQuery(request, timeout=transport.GIVE_BACK_S)
