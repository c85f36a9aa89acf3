# Generated from client/aio/client.py by `make client`; edit that file.
"""The client: models, rows, queries, classification and trees."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import grpc

from quercus.client import convert, pushing, query_calls, requests, transport
from quercus.client.classifying import ClassifyOptions, RowFormat, RowFormats
from quercus.client.comparing import same_model
from quercus.client.concurrency import Repeating, connected, sleep
from quercus.client.errors import (
    AlreadyExists,
    DeadlineExceeded,
    FailedPrecondition,
    QuercusError,
    Unavailable,
    from_rpc,
)
from quercus.client.events import EventWatch, LogEvent, OnPosition
from quercus.client.labelling_results import ANY, Filter
from quercus.client.results import (
    Caller,
    Classifications,
    Instance,
    Lease,
    Model,
    PushReport,
    Query,
    Specification,
    Status,
)
from quercus.client.rows import Row, chunks
from quercus.client.security import Security
from quercus.client.stream_parts import StreamOptions
from quercus.client.stubs import Stubs
from quercus.client.sync.labelling import LabellingCalls
from quercus.client.sync.push_line import PushLine
from quercus.client.sync.query_stream import QueryStream
from quercus.client.treeview import Tree, TreeUpdate, Watched, wanted_sequence
from quercus.proto.v1 import admin_pb2, instance_pb2, model_pb2, tree_pb2


class Client(LabellingCalls):
    """A connection to a Quercus server; threads may share it.

    Parameters
    ----------
    address
        ``host:port``, or ``tls://host:port`` for TLS. If omitted, the environment variable ``QUERCUS_SERVER``; if that
        is not set, 127.0.0.1:50051.
    timeout_s
        Deadline of each call, and of each acknowledgement of a push.
    outage_s
        How long idempotent calls, pushes, queries and watches are repeated, with pauses, if the server is away. A
        server that never answered is not waited for.
    token
        If omitted, ``QUERCUS_TOKEN``; if that is not set, the content of the file ``QUERCUS_TOKEN_FILE``.
    ca
        PEM file of the authorities that may have signed the server's certificate. If omitted, ``QUERCUS_TLS_CA``; if
        that is not set, the authorities of the system. The client's own certificate is read from
        ``QUERCUS_CLIENT_CERT`` and ``QUERCUS_CLIENT_KEY``.

    Examples
    --------
    >>> with Client("127.0.0.1:50051") as client:                                # doctest: +SKIP
    ...     client.create_model("wine", Specification([Numeric("ash")], ["red", "white"], budget=10))
    ...     client.push("wine", [{"ash": 2.4}, {"ash": 2.1}])
    ...     for query in client.queries("wine", labeller="ann"):
    ...         client.answer(query, {"red", "white"} if query.values["ash"] > 2.3 else "red")
    ...     client.classify("wine", [[2.2]]).labels
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        timeout_s: float = transport.DEFAULT_TIMEOUT_S,
        outage_s: float = transport.OUTAGE_S,
        token: str | None = None,
        ca: Path | str | None = None,
    ) -> None:
        self.address = transport.server_address(address)
        self.timeout_s = timeout_s
        self._outage = transport.Outage(outage_s)
        self._sequences = transport.SeenSequences()
        self._forms = RowFormats()
        security = Security.load(token, ca)
        self.has_token = security.token is not None
        self._channel = security.channel(self.address)
        self._stubs = Stubs(self._channel)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; calls under way fail."""
        self._channel.close()

    def _call(self, method: Callable[..., Any], request: Any, timeout_s: float | None = None) -> Any:
        trial = self._outage.trial()
        while True:
            try:
                answer = method(request, timeout=timeout_s or self.timeout_s)
            except grpc.RpcError as error:
                failed = from_rpc(error, self.address)
                pause_s = trial.pause_s(failed.retry_s) if requests.may_repeat(request, failed) else None
                if pause_s is None:
                    raise failed from None
                sleep(pause_s)
            else:
                trial.succeeded()
                return answer

    def on_outage(self, tell: Callable[[float], None]) -> None:
        """Call ``tell`` once per outage, when a server that answered before is away.

        Parameters
        ----------
        tell
            Takes the seconds for which calls wait; a thread of the client may call it.
        """
        self._outage.tell = tell

    def wait_ready(self, timeout_s: float = 10.0) -> None:
        """Wait until the server answers; :class:`Unavailable` when it does not within ``timeout_s``."""
        try:
            connected(self._channel, timeout_s)
        except TimeoutError:
            raise Unavailable(f"no server answers at {self.address} after {timeout_s:g} s") from None

    # The server

    def status(self) -> Status:
        """Return the state of the server."""
        return convert.status(self._call(self._stubs.admin.GetStatus, admin_pb2.GetStatusRequest()))

    def caller(self) -> Caller:
        """Return the name and the permissions of the caller: of this client's token."""
        return convert.caller(self._call(self._stubs.admin.GetCaller, admin_pb2.GetCallerRequest()))

    def set_log_level(self, level: str) -> str:
        """Set the level of the server's log (debug, info, warning, error) until it ends; return the level before."""
        request = admin_pb2.SetLogLevelRequest(level=level)
        previous: str = self._call(self._stubs.admin.SetLogLevel, request).previous
        return previous

    # Models

    def create_model(self, name: str, specification: Specification, *, exist_ok: bool = False) -> Model:
        """Create a model.

        Parameters
        ----------
        name
            1 to 63 of ``a-z 0-9 _ -``, a letter first.
        specification
            Attributes, classes and learner.
        exist_ok
            If a model of the same specification has the name, return that one.

        Raises
        ------
        AlreadyExists
            The name is taken; with ``exist_ok``: by a model of another specification, whose differences it names.
        """
        request = model_pb2.CreateModelRequest(
            model_id=name, specification=requests.specification(specification)
        )
        try:
            made = convert.model(self._call(self._stubs.models.CreateModel, request))
        except AlreadyExists:
            if not exist_ok:
                raise
            return same_model(self.get_model(name), specification)
        self._sequences.forget(name)
        self._forms.forget(name)
        return made

    def get_model(self, name: str) -> Model:
        """Return the model as it is now."""
        request = model_pb2.GetModelRequest(name=convert.model_resource(name))
        found = convert.model(self._call(self._stubs.models.GetModel, request))
        self._sequences.met(name, found.uid)
        return found

    model = get_model

    def models(self) -> Iterator[Model]:
        """Yield all models, in order of name."""
        request = model_pb2.ListModelsRequest()
        while True:
            page = self._call(self._stubs.models.ListModels, request)
            for each in page.models:
                yield convert.model(each)
            request.page_token = page.next_page_token
            if not request.page_token:
                return

    def update_model(self, name: str, **changes: requests.Change) -> Model:
        """Change parameters that may change once a model exists: `quercus.specification.model.CHANGEABLE`.

        ``pruning=None`` turns pruning off, ``max_depth=None`` the limit of depth.
        """
        return convert.model(self._call(self._stubs.models.UpdateModel, requests.update(name, changes)))

    def delete_model(self, name: str) -> None:
        """Delete a model with its evidence, queries and trees."""
        request = model_pb2.DeleteModelRequest(name=convert.model_resource(name))
        self._call(self._stubs.models.DeleteModel, request)
        self._sequences.forget(name)
        self._forms.forget(name)

    def _form(self, model: str) -> RowFormat:
        """Return how rows of a model are sent, remembered or requested."""
        form = self._forms.fresh(model)
        if form is None or self._sequences.uid(model) not in {
            "",
            form.uid,
        }:  # the name stands for another now
            found = self.get_model(model)
            form = self._forms.learn(model, found.specification, found.uid)
        return form

    # Instances

    def push(
        self,
        model: str,
        rows: Iterable[Row] | Any,
        labels: pushing.Labels = None,
        ids: Iterable[str] | None = None,
        *,
        displays: pushing.Displays = None,
        batch_rows: int = 1000,
        window: int = pushing.WINDOW_BATCHES,
        on_progress: pushing.Progress | None = None,
        on_rejected: pushing.OnRejected | None = None,
    ) -> PushReport:
        """Push rows; all are committed when this returns, but those that `on_rejected` took.

        Parameters
        ----------
        model
            Name of the model.
        rows
            Dicts by attribute name, sequences in attribute order, an array (n, K) or a DataFrame.
        labels
            One per row, each as in :meth:`answer`, or plausibilities: an array (n, l), or a DataFrame with a
            column per class. If omitted, nothing is known.
        ids
            One per row, unique in the model: rows with a known id are not stored again.
        displays
            For each row what labellers see beside it: a list of items (:mod:`quercus.specification.display`), or
            ``None``. It is no part of the evidence.
        batch_rows, window
            Rows per message, and unacknowledged messages at once.
        on_progress
            Called after each acknowledgement.
        on_rejected
            Takes the rows of a message that the server refuses, because a value or an id of them is wrong, and the
            push goes on. If omitted, the push ends there.

        Raises
        ------
        QuercusError
            ``error.report`` says how many rows had been acknowledged, ``error.rejected`` which rows were
            refused. A broken connection is retried first.
        """
        pushing.check_sizes(batch_rows, window)
        form = self._form(model)
        batcher = pushing.Batcher(
            model, form.specification, labels, ids, batch_rows=batch_rows, uid=form.uid, displays=displays
        )
        ledger = pushing.PushState(window, on_progress, self._outage.outage_s, on_rejected)
        with PushLine(self._stubs.instances, ledger, self.address, self.timeout_s) as line:
            try:
                for chunk in chunks(rows, batcher.batch_rows):
                    if batcher.wants_renewal(chunk):
                        self._forms.forget(model)
                        form = self._form(model)
                        batcher.renew(form.specification)
                    line.send(batcher.batch(chunk))
                    line.settle(until=window - 1)
                line.settle(until=0)
                batcher.finish(ledger.report.rows + ledger.report.rejected)
            except Exception as error:
                self._forms.forget(model)
                if not pushing.is_final(error):  # a row is wrong: what is on its way still counts
                    line.settle(until=0)
                raise ledger.failed(error) from error.__cause__
            finally:
                report = ledger.report
                if report.batches:
                    self._sequences.saw(model, report.model_uid, report.committed_sequence)
        return ledger.report

    def get_instance(self, model: str, instance: str) -> Instance:
        """Return a row with the history of its label."""
        classes = tuple(self.get_model(model).specification.classes)
        request = instance_pb2.GetInstanceRequest(name=f"models/{model}/instances/{instance}")
        return convert.instance(self._call(self._stubs.instances.GetInstance, request), classes)

    def instances(self, model: str) -> Iterator[Instance]:
        """Yield all rows with the history of their labels, in the order of the pushes."""
        classes = tuple(self.get_model(model).specification.classes)
        request = instance_pb2.ListInstancesRequest(model=convert.model_resource(model), page_size=1000)
        while True:
            page = self._call(self._stubs.instances.ListInstances, request)
            for each in page.instances:
                yield convert.instance(each, classes)
            request.page_token = page.next_page_token
            if not request.page_token:
                return

    # Queries

    def lease(
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
        newest = self._sequences.newest(model)
        ask = query_calls.lease(model, labeller, lease_s, wait_s, newest, only)
        try:
            return self._ask(ask, self.timeout_s + wait_s)
        except FailedPrecondition as error:
            if not transport.is_beyond(error):
                raise
        self._sequences.forget(model)  # what was seen was of a model that is gone
        self._forms.forget(model)
        return self._ask(
            query_calls.lease(model, labeller, lease_s, wait_s, 0, only), self.timeout_s + wait_s
        )

    def queries(
        self,
        model: str,
        labeller: str,
        *,
        lease_s: float = 60.0,
        idle_s: float | None = 10.0,
        only: Filter | None = None,
    ) -> Generator[Query, None, None]:
        """Yield queries one after another; the lease of the current one is extended while you think.

        Answer or refuse each query before you request the next. An unanswered one goes to another labeller
        (or back to you) when its lease ends. If you leave the loop, the current one is returned at once.

        Parameters
        ----------
        model, labeller
            Name of the model (``"-"``: any model, in turn), and who answers (1 to 100 characters).
        lease_s
            1 to 3,600 seconds: how soon others get the query if this process dies.
        idle_s
            End after so many seconds without a query; ``None``: only when the budget is spent.
        only
            Filter of queries; ``None``: all.
        """
        patience = requests.WaitPolicy(idle_s)
        while True:
            lease = self.lease(model, labeller, lease_s=lease_s, wait_s=patience.wait_s, only=only)
            if not lease.queries:
                now = self.get_model(model) if lease.idle == "budget_spent" else None
                if patience.ended(lease, now):
                    return
                continue
            patience.renew()
            query = lease.queries[0]
            keeping = Repeating(lambda q=query: self._keep(q, lease_s), lease_s / 3, "quercus-lease")  # type: ignore[misc]
            keeping.start()
            try:
                yield query
            except GeneratorExit:
                self._give_back(query)
                raise
            finally:
                keeping.stop()
            if model != ANY and not lease.budget_left and requests.is_spent(self.get_model(model)):
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
    ) -> QueryStream:
        """A stream of queries, to iterate over within ``with``: the next ones are there before you ask for them.

        Answer on the stream (``stream.answer(query, label)``), which takes one round trip; leases are extended while
        you think, and the stream goes on after an outage.

        Parameters
        ----------
        model, labeller, lease_s, idle_s, only
            As of :meth:`queries`.
        prefetch
            Queries that you hold at once, the one in your hands among them; 1 to 100.
        """
        return QueryStream(self, StreamOptions(model, labeller, lease_s, prefetch, only), idle_s)

    def _keep(self, query: Query, lease_s: float) -> bool:
        """Extend a lease, and return whether to go on with it; the answer itself will say why not."""
        try:
            self.extend_lease(query, lease_s)
        except (Unavailable, DeadlineExceeded):
            return True  # the server may be back before the lease ends
        except QuercusError as error:
            return error.retry_s is not None  # else the query is answered, or another's
        except ValueError:  # the channel was closed meanwhile
            return False
        return True

    def _give_back(self, query: Query) -> None:
        """Return a query, in one attempt: who leaves the loop does not wait for the end of an outage."""
        request = query_calls.give_back(query).request
        # answered, refused, or the server is away: the lease ends by itself
        with suppress(grpc.RpcError, QuercusError, ValueError):
            self._stubs.queries.ReturnQuery(request, timeout=transport.GIVE_BACK_S)

    # Classification and trees

    def classify(
        self,
        model: str,
        rows: Iterable[Row] | Any,
        *,
        min_sequence: int = 0,
        want_paths: bool = False,
        want_masses: bool = False,
    ) -> Classifications:
        """Classify rows (forms as in :meth:`push`).

        A value may be uncertain here: a set of names, or a :class:`Between` of numbers.

        Parameters
        ----------
        model, rows
            What to classify; any number of rows, sent in as few requests as the message limit allows.
        min_sequence
            Use only a tree grown from at least this much of the log (:meth:`wait_grown` waits for it).
        want_paths
            Also return the path of every row, for a model of one tree.
        want_masses
            Also return the mass function of every row, if the model has them.
        """
        wanted = ClassifyOptions(min_sequence, want_paths, want_masses)
        form = self._form(model)
        try:
            answers = [
                self._call(self._stubs.classify.Classify, request)
                for request in form.requests(model, rows, wanted)
            ]
        except QuercusError:
            self._forms.forget(model)
            raise
        return form.result(answers, want_paths)

    def tree(self, model: str, version: int | None = None, member: int = 0) -> Tree:
        """Return the newest tree, or the one of ``version``; of several trees, number ``member``."""
        request = tree_pb2.GetTreeRequest(name=convert.tree_resource(model, version), member=member)
        return convert.tree(self._call(self._stubs.trees.GetTree, request))

    def render(
        self,
        model: str,
        form: convert.RenderFormat = "text",
        version: int | None = None,
        member: int | None = None,
        depth: int | None = None,
    ) -> str:
        """Return a drawing: ``"text"``, ``"dot"`` (Graphviz) or ``"svg"``; of several trees, one or an overview.

        With ``depth``, nodes further below the root are counted, not drawn.
        """
        request = convert.render_request(model, version, form, member, depth)
        return str(self._call(self._stubs.trees.RenderTree, request).content)

    def watch(self, model: str, *, timeout_s: float | None = None) -> Generator[TreeUpdate, None, None]:
        """Yield the newest tree, then every newer one as it is grown (a slow reader skips versions).

        Parameters
        ----------
        model
            Name of the model.
        timeout_s
            Raise :class:`DeadlineExceeded` then; ``None``: run until you stop, the model is deleted, or the
            server is away for longer than ``outage_s``.
        """
        with closing(self._watch(model, timeout_s, Watched(model))) as updates:
            for update in updates:
                yield update

    def _watch(
        self, model: str, timeout_s: float | None, watched: Watched
    ) -> Generator[TreeUpdate, None, None]:
        request = tree_pb2.WatchTreeRequest(model=convert.model_resource(model))
        until = None if timeout_s is None else time.monotonic() + timeout_s
        trial = self._outage.trial()
        while True:
            left_s = None if until is None else max(0.0, until - time.monotonic())
            call = self._stubs.trees.WatchTree(request, timeout=left_s)
            try:
                for update in call:
                    trial.succeeded()
                    if watched.is_new(update):  # after an outage the newest comes again
                        yield TreeUpdate(convert.tree(update.tree), update.committed_sequence)
                return
            except grpc.RpcError as error:
                failed = from_rpc(error, self.address)
                pause_s = trial.pause_s() if isinstance(failed, Unavailable) else None
                if pause_s is None:
                    raise failed from None
            finally:
                call.cancel()
            sleep(pause_s)

    def watch_events(
        self,
        model: str,
        after: int = 0,
        *,
        kinds: Iterable[str] = (),
        with_values: bool = False,
        model_uid: str = "",
        timeout_s: float | None = None,
        on_position: OnPosition | None = None,
    ) -> Generator[LogEvent, None, None]:
        """Yield the events of the log behind a number, in order, then each that is written, as it comes.

        An outage is waited for; no event is missed or comes twice. A program that keeps the number of the last event
        that it has handled, and the uid of the model, goes on from there when it starts again.

        Parameters
        ----------
        model
            Name of the model.
        after
            Number of the last event that was handled; 0: from the first.
        kinds
            ``"instance"`` (rows), ``"answer"``, ``"refusal"``, ``"specification"``, ``"correction"``, ``"opinion"``,
            ``"statement"``. If omitted, all.
        with_values
            With the values of rows.
        model_uid
            Of the model that ``after`` is of. If another has the name by now, :class:`FailedPrecondition`.
        timeout_s
            Raise :class:`DeadlineExceeded` then; ``None``: run until you stop, the model is deleted, or the
            server is away for longer than ``outage_s``.
        on_position
            Called now and then with the uid of the model and the number up to which all events were handled or are of
            other kinds.
        """
        watch = EventWatch(
            model, after, kinds, with_values=with_values, uid=model_uid, on_position=on_position
        )
        watch.classes = self._classes(model)
        until = None if timeout_s is None else time.monotonic() + timeout_s
        trial = self._outage.trial()
        while True:
            left_s = None if until is None else max(0.0, until - time.monotonic())
            call = self._stubs.instances.WatchEvents(watch.request, timeout=left_s)
            try:
                for page in call:
                    trial.succeeded()
                    for event in watch.take(page):
                        yield event
                return
            except grpc.RpcError as error:
                failed = from_rpc(error, self.address)
                pause_s = trial.pause_s() if isinstance(failed, Unavailable) else None
                if pause_s is None:
                    raise failed from None
            finally:
                call.cancel()
            sleep(pause_s)

    def wait_grown(self, model: str, sequence: int | None = None, timeout_s: float | None = 60.0) -> Model:
        """Wait until the tree is a function of the log up to ``sequence`` (default: all of it).

        Wait for ``timeout_s`` at most; ``None``: without limit.

        Raises
        ------
        DeadlineExceeded
            If the tree did not come that far within ``timeout_s``.
        FailedPrecondition
            If the model was deleted, and another has its name.
        """
        before, now = self._sequences.uid(model), self.get_model(model)
        wanted = wanted_sequence(before, now, sequence)
        try:
            with closing(self._watch(model, timeout_s, Watched(model, now.uid))) as updates:
                for update in updates:
                    if update.tree.as_of >= wanted:
                        return self.get_model(model)
        except DeadlineExceeded:
            pass  # said better below, with how far growth came
        grown = self.get_model(model).sequence_grown
        raise DeadlineExceeded(f"the tree of {model!r} stood at {grown} of {wanted} after {timeout_s:g} s")
