"""The calls for rows and for the log."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterable
from contextlib import aclosing
from typing import Any

from quercus.client import pushing
from quercus.client.aio.models import ModelCalls
from quercus.client.aio.push_line import AsyncPushLine
from quercus.client.errors import QuercusError
from quercus.client.messages import enum_value, filled
from quercus.client.resources import instance_resource, model_resource
from quercus.client.results import Example, Instance, LogEvent
from quercus.client.row_filter import RowFilter, RowOrder, RowPage
from quercus.client.rows import Row, async_row_chunks
from quercus.client.treeview import replaced_error
from quercus.client.unseen import PushReport
from quercus.v1 import instance_pb2


class InstanceCalls(ModelCalls):
    """The calls for rows and for the log."""

    async def push(
        self,
        model: str,
        rows: AsyncIterable[Row] | Iterable[Row] | Any,
        labels: pushing.Labels = None,
        ids: Iterable[str] | None = None,
        *,
        displays: pushing.Displays = None,
        batch_rows: int = 1000,
        window: int = pushing.WINDOW_BATCHES,
        on_progress: pushing.Progress | None = None,
        on_rejected: pushing.OnRejected | None = None,
    ) -> PushReport:
        """Push rows. When this returns, all are committed except those that `on_rejected` received.

        Parameters
        ----------
        model
            Name of the model.
        rows
            Dicts by attribute name, sequences in attribute order, an array (n, K) or a DataFrame. The
            rows may be an async iterable.
        labels
            One per row, each as in :meth:`answer`, or plausibilities: an array (n, l), or a DataFrame with a
            column per class. If omitted, all labels are vacuous.
        ids
            One per row, unique in the model: rows with a known id are not stored again.
        displays
            The display of each row, which labellers see beside it: a list of items
            (:mod:`quercus.specification.display`), or ``None``. It is not part of the evidence.
        batch_rows, window
            Number of rows per message, and maximum number of unacknowledged messages.
        on_progress
            Called after each acknowledgement.
        on_rejected
            Called with rows that are refused because of a wrong value, label, display or id: each with its position,
            its id and its error. All other rows are stored. If omitted, the push ends at the first such row, and the
            rows before its message are stored. If the server refuses the row because of its id, later messages that are
            already on their way may be stored as well.

        Raises
        ------
        QuercusError
            ``error.report`` has the number of acknowledged rows; ``error.row`` is the position of the refused row. A
            broken connection is retried first.
        """
        pushing.check_sizes(batch_rows, window)
        form = await self._row_format(model)
        batcher = pushing.Batcher(
            model,
            form.specification,
            labels,
            ids,
            batch_rows=batch_rows,
            uid=form.uid,
            displays=displays,
            row_by_row=on_rejected is not None,
            former=form.former,
        )
        outage_s = self._outage.outage_s
        ledger = pushing.PushState(window, on_progress, outage_s, on_rejected, form.specification)
        async with AsyncPushLine(self, ledger) as line:
            try:
                async for chunk in async_row_chunks(rows, batcher.batch_rows):
                    if batcher.wants_renewal(chunk):
                        self._forms.forget_format(model)
                        form = await self._row_format(model)
                        batcher.use_specification(form.specification)
                        ledger.specification = form.specification
                    await line.send_batch(batcher.encode_chunk(chunk))
                    await line.settle_batches(until=window - 1)
                await line.settle_batches(until=0)
                batcher.check_leftovers(ledger.report.rows + ledger.report.rejected)
            except Exception as error:
                self._forms.forget_format(model)
                # If the stream did not fail, a row is invalid: batches on their way still count.
                if not (isinstance(error, QuercusError) and error.report is not None):
                    await line.settle_batches(until=0)
                raise ledger.with_report(error) from error.__cause__
            finally:
                report = ledger.report
                if ledger.has_taught:
                    self._forms.forget_format(model)  # the model has learned new names
                if report.batches:
                    self._sequences.record_sequence(model, report.model_uid, report.committed_sequence)
        return ledger.report

    async def examples(self, model: str) -> tuple[Example, ...]:
        """Return the example rows of a model's classes that its guidance names."""
        request = filled(instance_pb2.ListExamplesRequest, model=model_resource(model))
        return tuple(map(Example.from_message, (await self._call(request)).examples))

    async def get_instance(self, model: str, instance: str) -> Instance:
        """Return a row with the history of its label."""
        request = filled(instance_pb2.GetInstanceRequest, name=instance_resource(model, instance))
        return Instance.from_message(await self._call(request), await self._fetch_classes(model))

    async def instances(
        self,
        model: str,
        wanted: RowFilter | None = None,
        order: RowOrder | str = "pushed",
        *,
        with_guesses: bool = False,
    ) -> AsyncIterator[Instance]:
        """Yield rows with the history of their labels.

        Parameters
        ----------
        model
            Name of the model.
        wanted
            Filter of rows; ``None``: all.
        order
            ``"pushed"``: by the time of the push; ``"said"``: by the time of the newest label; ``"doubt"``: by the
            doubt of the newest tree. Each may be followed by ``" desc"``.
        with_guesses
            Whether rows contain the guess of the newest tree.
        """
        classes = await self._fetch_classes(model)
        request = _list_request(model, wanted, order, with_guesses, 1000)
        async with aclosing(self._list(request, lambda page: page.instances)) as found:
            async for each in found:
                classes = await self._classes_for(each.contour, model, classes)
                yield Instance.from_message(each, classes)

    async def row_page(
        self,
        model: str,
        wanted: RowFilter | None = None,
        order: RowOrder | str = "pushed",
        *,
        page: str = "",
        size: int = 100,
    ) -> RowPage:
        """Return one page of rows, with the guesses of the newest tree.

        Parameters
        ----------
        model, wanted, order
            As in :meth:`instances`.
        page
            Token of the page, as in `RowPage.next_page`; empty: the first.
        size
            Maximum number of rows, 1 to 1,000.
        """
        request = _list_request(model, wanted, order, True, size)
        request.page_token = page
        found = await self._call(request)
        classes = await self._fetch_classes(model)
        rows = [Instance.from_message(each, classes) for each in found.instances]
        return RowPage(rows, found.next_page_token, found.total_size)

    async def watch_events(
        self,
        model: str,
        after: int = 0,
        *,
        kinds: Iterable[str] = (),
        with_values: bool = False,
        model_uid: str = "",
        timeout_s: float | None = None,
        on_position: Callable[[str, int], None] | None = None,
    ) -> AsyncGenerator[LogEvent, None]:
        """Yield the events of the log after a number, in order, then each new event.

        The call waits for the end of an outage; no event is lost or repeated. A program that keeps the uid of the model
        and the number of the last event that it handled can continue there after a restart.

        Parameters
        ----------
        model
            Name of the model.
        after
            Number of the last event that was handled; 0: start with the first.
        kinds
            ``"instance"`` (rows), ``"answer"``, ``"refusal"``, ``"specification"``, ``"correction"``, ``"opinion"``,
            ``"statement"``. If omitted, all.
        with_values
            Whether the events of rows contain their values.
        model_uid
            Uid of the model that ``after`` belongs to. Raises :class:`FailedPrecondition` if the name now belongs to
            another model.
        timeout_s
            Seconds after which to raise :class:`DeadlineExceeded`; ``None``: run until you stop, the model is deleted,
            or the server is unreachable for longer than ``outage_s``.
        on_position
            Called from time to time with the uid of the model and the number up to which all events were handled or are
            of other kinds.
        """
        request = filled(
            instance_pb2.WatchEventsRequest,
            model=model_resource(model),
            after_sequence=after,
            model_uid=model_uid,
            kinds=[
                enum_value(instance_pb2.LogEvent.Kind.DESCRIPTOR, "kinds", each)
                for each in ([kinds] if isinstance(kinds, str) else kinds)
            ],
            include_values=with_values,
        )
        classes = await self._fetch_classes(model)
        async with aclosing(self._stream_messages(request, timeout_s)) as pages:
            async for page in pages:
                if request.model_uid not in {"", page.model_uid}:
                    raise replaced_error(model)
                request.model_uid = page.model_uid
                for each in page.events:
                    sequence = each.evidence.sequence
                    yield LogEvent.from_message(
                        each, classes, sequence=sequence, model=model, model_uid=page.model_uid
                    )
                    request.after_sequence = sequence  # where the next stream continues after an outage
                request.after_sequence = page.sequence
                if on_position is not None:
                    on_position(page.model_uid, page.sequence)


def _list_request(
    model: str, wanted: RowFilter | None, order: str, with_guesses: bool, size: int
) -> instance_pb2.ListInstancesRequest:
    return filled(
        instance_pb2.ListInstancesRequest,
        model=model_resource(model),
        page_size=size,
        filter=str(wanted or RowFilter()),
        order_by="" if order == "pushed" else order,
        include_guesses=with_guesses,
    )
