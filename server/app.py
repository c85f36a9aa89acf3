"""Assembles a server from its parts, starts it, and stops it without losing an acknowledged write."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import uvloop
from grpc import aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from quercus.belief.errors import InvalidInput
from quercus.inference import open_inference_pb2, open_inference_pb2_grpc
from quercus.server.config import Config
from quercus.server.core.service_core import ServiceCore
from quercus.server.gate.access import TokenAuthority
from quercus.server.gate.audit import AuditLog
from quercus.server.gate.error_interceptor import DamageInterceptor, ErrorInterceptor
from quercus.server.gate.grpc_limits import grpc_options
from quercus.server.gate.guard import CallerLimits, Guard
from quercus.server.gate.handlers import Joined, Services
from quercus.server.gate.listening import HTTP, check_address, join_address
from quercus.server.gate.observing import Observer
from quercus.server.gate.throttle import (
    CallRates,
    CallsAtOnce,
    MemoryWatch,
    OpenStreams,
)
from quercus.server.gate.tls import Certificates
from quercus.server.growth.supervisor import Supervisor
from quercus.server.machine import memory_of_machine, room_for_connections
from quercus.server.plugins import choose_plugins
from quercus.server.services.admin import AdminService
from quercus.server.services.classify import ClassifyService
from quercus.server.services.inference import InferenceService
from quercus.server.services.instances import InstanceService
from quercus.server.services.models import ModelService
from quercus.server.services.queries import QueryService
from quercus.server.services.reflection import enable_reflection
from quercus.server.services.trees import TreeService
from quercus.server.telemetry import metric_table
from quercus.server.telemetry.logs import set_up_logging
from quercus.server.telemetry.metrics import Metrics
from quercus.server.telemetry.tracing import Tracing
from quercus.server.wire.errors import BadStart
from quercus.server.wire.limits import MEMORY_SHARE
from quercus.server.workers.board import KEEPER, Post
from quercus.server.workers.forwarding import (
    SERVER_OPTIONS,
    Answer,
    Arrivals,
    Forwarder,
    WorkerMetrics,
    answer_metrics,
    internal_handler,
)
from quercus.server.workers.line import LineServer, chain_of
from quercus.storage import ReadOnlyStore, StorageError, Store, TokenRecord, shown_url
from quercus.v1 import (
    admin_pb2,
    admin_pb2_grpc,
    classify_pb2,
    classify_pb2_grpc,
    instance_pb2,
    instance_pb2_grpc,
    model_pb2,
    model_pb2_grpc,
    query_pb2,
    query_pb2_grpc,
    tree_pb2,
    tree_pb2_grpc,
)

if TYPE_CHECKING:
    from quercus.server.http.listener import HttpServer

_log = logging.getLogger(__name__)

SERVICES: Final = (
    model_pb2.DESCRIPTOR.services_by_name["ModelService"].full_name,
    instance_pb2.DESCRIPTOR.services_by_name["InstanceService"].full_name,
    query_pb2.DESCRIPTOR.services_by_name["QueryService"].full_name,
    classify_pb2.DESCRIPTOR.services_by_name["ClassifyService"].full_name,
    tree_pb2.DESCRIPTOR.services_by_name["TreeService"].full_name,
    admin_pb2.DESCRIPTOR.services_by_name["AdminService"].full_name,
    open_inference_pb2.DESCRIPTOR.services_by_name["GRPCInferenceService"].full_name,
)
GROWER_HEALTH: Final = "quercus.v1.Grower"
"""The service name by which a health probe asks about the grower."""
WRITES_HEALTH: Final = "quercus.v1.Writes"
"""The service name by which a health probe asks about writes: NOT_SERVING while rows and answers are refused."""
LOOK_AT_PARTS_S: Final = 1.0
LOOK_AT_OTHERS_S: Final = 0.02
BEAT_S: Final = 0.5
TOKENS_POLL_S: Final = 0.5
"""Seconds between two searches for leases of revoked tokens; a search reads only live leases."""
SWITCH_S: Final = 0.0005
"""Seconds after which a computing thread must yield the interpreter's lock to the event loop.

Python's default of 5 ms is long compared with a call of half a millisecond.
"""
COLLECT_AFTER: Final = 20_000
"""New objects after which the garbage collector runs; a few calls would reach Python's default of 700."""
STRANGERS_PART: Final = 10
"""At most one in this many of the calls at a time may be a stream without a token."""
SHARE: Final = 10
"""HTTP gets one connection for every this many connections of gRPC."""
METRICS_PAGE: Final = "Page"
"""The internal method by which workers get the page of metrics from the keeper."""
LINGER_S: Final = 0.2
"""Seconds that connections stay open after their last stream has ended."""


def grower_trouble(now: admin_pb2.GrowerStatus) -> str:
    """Return the trouble of the grower, as the end of a sentence; empty if there is none."""
    if now.state == now.STATE_SILENT:
        where = f" at model {now.at}" if now.at else ""
        return f"makes no progress{where}: it hangs, or is stopped; trees wait for it"
    if now.state == now.STATE_RESTARTING:
        return "ended, and is started again; trees wait for it"
    return ""


def log_grower(now: admin_pb2.GrowerStatus) -> None:
    """Log that the grower has begun or ceased to make progress."""
    if trouble := grower_trouble(now):
        _log.warning("the grower %s", trouble)
    else:
        _log.info("the grower runs")


class Health(health.aio.HealthServicer):  # type: ignore[misc]
    """The standard health service, whose watches end when the server stops."""

    def __init__(self, core: ServiceCore) -> None:
        super().__init__()
        self._core = core

    async def Watch(self, request: health_pb2.HealthCheckRequest, context: Any) -> None:  # noqa: N802
        """Send the status whenever it changes, until the server stops."""
        await self._core.wait_or_stop(super().Watch(request, context))


class Server:
    """A server; created, started and stopped in one event loop.

    Parameters
    ----------
    config : configuration of the server.
    post : place of this process among the workers of the server; None if it is the only process.
    """

    def __init__(self, config: Config, post: Post | None = None) -> None:
        self._post = post = post or Post.alone()
        if not post.is_keeper:
            config = config.model_copy(update={"grower": False})
        self._config = config
        tls = (config.tls_cert, config.tls_key, config.tls_client_ca)
        self._certificates = Certificates(*tls) if config.tls_cert else None
        self._tracing = Tracing()
        self._store = open_store(config, is_keeper=post.is_keeper)
        if self._store.is_read_only:  # trees could not be stored
            config = self._config = config.model_copy(update={"grower": False})
        self._writes = post.is_keeper or self._store.may_be_shared
        self.core = ServiceCore(self._store, config, made=post.board.tally("changes"), writes=self._writes)
        self.supervisor = Supervisor(config)
        self._neighbours = WorkerMetrics(post) if post.is_keeper and post.folder is not None else None
        under_way = post.board.tally("under_way")
        if self._neighbours is None or post.folder is None:
            self._metrics = Metrics(self._store, under_way)
        else:
            self._metrics = Metrics(self._store, under_way, self._neighbours.ask, post.folder / "counted")
        core, supervisor = self.core, self.supervisor
        gauges: list[tuple[metric_table.MetricRow, Callable[[], float]]] = [
            (metric_table.WRITES_WAITING, lambda: core.writer.queue_length),
            (metric_table.WRITABLE, lambda: self._is_writable),
            (metric_table.GROWER_UP, lambda: supervisor.is_well),
            (metric_table.GROWER_RESTARTS, lambda: supervisor.restart_count),
        ]
        if (certificates := self._certificates) is not None:
            gauges.append((metric_table.CERTIFICATE_END, lambda: certificates.end))
        for row, value in gauges:
            self._metrics.register(row, value)
        self._metrics.register(metric_table.PUSHED, lambda: core.rows_pushed, adds_up=True)
        self._metrics.register(metric_table.CLASSIFIED, lambda: core.rows_classified, adds_up=True)
        self._health = Health(self.core)
        self._authority = TokenAuthority(self._load_tokens) if config.needs_tokens else None
        board, shared = post.board, post.shared_board
        self._memory = MemoryWatch(
            config.max_memory_bytes or int(MEMORY_SHARE * memory_of_machine()), used=board.tally("memory")
        )
        strangers = max(1, config.max_calls // STRANGERS_PART)
        self._bounds = CallerLimits(
            calls=CallsAtOnce(config.max_calls, count=board.tally("calls")),
            strangers=CallsAtOnce(strangers, " of callers without a token", board.tally("strangers")),
            rates=CallRates(config.calls_per_s, board=shared),
            streams=OpenStreams(config.max_streams, shared),
            memory=self._memory,
        )
        self._forwarder: Forwarder | None = None
        if not post.is_keeper:
            self._forwarder = Forwarder(post.socket_of(KEEPER), post.line, all_writes=not self._writes)
        record = self._record_call if self._writes or self._forwarder is None else self._forwarder.record
        self._audit = AuditLog(record, needs_tokens=config.needs_tokens)
        self._services = Services()
        added: Any = self._services
        model_pb2_grpc.add_ModelServiceServicer_to_server(ModelService(core), added)
        instance_pb2_grpc.add_InstanceServiceServicer_to_server(InstanceService(core), added)
        query_pb2_grpc.add_QueryServiceServicer_to_server(QueryService(core), added)
        classify_pb2_grpc.add_ClassifyServiceServicer_to_server(ClassifyService(core), added)
        tree_pb2_grpc.add_TreeServiceServicer_to_server(TreeService(core), added)
        admin = AdminService(core, supervisor, post.board)
        admin_pb2_grpc.add_AdminServiceServicer_to_server(admin, added)
        open_inference_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(InferenceService(core), added)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, added)
        enable_reflection((*SERVICES, health.SERVICE_NAME), added)
        calls, observer = ErrorInterceptor(), Observer(self._metrics)
        self._calls = [calls]
        guard = Guard(core, self._authority, self._bounds, self._audit)
        inner = calls, guard, DamageInterceptor(core.damaged)
        tracing = self._tracing.interceptors
        # the interceptors of all calls, by gRPC and by HTTP
        self._interceptors = (
            [Joined(observer), *tracing, Joined(*inner)] if tracing else [Joined(observer, *inner)]
        )
        self._offered = self._services.handlers
        if self._forwarder is not None:
            self._offered = [self._forwarder.divide(each) for each in self._offered]
        share = SHARE if config.http_port else 0
        wanted = -(-config.max_connections // post.board.count)
        room = room_for_connections(wanted + (-(-wanted // share) if share else 0))
        self._http_connections = max(1, room // (share + 1)) if share else 0
        shares_port = post.folder is not None
        options = grpc_options(
            config.max_message_bytes, room - self._http_connections, shares_port=shares_port
        )
        self._server = aio.server(interceptors=self._interceptors, options=options)
        self._server.add_generic_rpc_handlers(tuple(self._offered))
        self._line: LineServer | None = None
        self._http: HttpServer | None = None
        self._private = None if post.folder is None else self._make_private_server()
        self._watches: list[asyncio.Task[None]] = []
        self.port = 0

    async def _record_call(self, who: str, action: str, target: str, outcome: str) -> None:
        await self.core.write(self._store.access.record, who, action, target, outcome)

    @property
    def _is_writable(self) -> bool:
        """True if the store accepts writes, as far as the worker that writes knows."""
        if self._writes:
            return not (self.core.writer.trouble or self.core.changes.trouble)
        return bool(self._post.board.get("writable"))

    @property
    def address(self) -> str:
        """The address on which the server listens, ``host:port``."""
        return join_address(self._config.host, self.port)

    async def start(self) -> None:
        """Listen on the ports, and start threads and grower.

        Raises
        ------
        BadStart
            If a port is in use, or the host is not an address of this machine.
        """
        post = self._post
        try:
            if post.folder is None:  # otherwise the parent process holds the port
                await asyncio.to_thread(check_address, self._config.host, self._config.port)
            wanted = join_address(self._config.host, self._config.port)
            try:
                if self._certificates is None:
                    self.port = self._server.add_insecure_port(wanted)
                else:
                    self.port = self._server.add_secure_port(wanted, self._certificates.credentials)
            except RuntimeError:
                self.port = 0
            if not self.port:  # the port was taken after the check
                raise BadStart(f"cannot listen on {wanted}: the port is in use; choose another with --port")
            if self._private is not None:
                self._private.add_insecure_port(post.socket_of(post.index))
            if self._config.http_port:
                self._http = await self._make_http()
        except BaseException:
            await asyncio.to_thread(self._store.close)
            raise
        self.core.start()
        self._memory.start()
        if self._private is not None:
            await self._private.start()
        if self._line is not None:
            await self._line.start(post.line)
        if self._forwarder is not None:
            await self._forwarder.start()
        await self._server.start()
        post.board.tally("alive").set(1)
        if self._config.grower:
            await self.supervisor.start()
            self.core.changes.add_listener(lambda _: self.supervisor.note_change())
        await self._report_health(well=True)
        self._watches = [
            asyncio.create_task(self._follow_store(), name="quercus-health"),
            asyncio.create_task(self._follow_parts(), name="quercus-health-parts"),
        ]
        if self._config.needs_tokens and not self._store.is_read_only and post.is_keeper:
            self._watches.append(asyncio.create_task(self._give_back_revoked(), name="quercus-revocation"))
        if self._http is not None:
            await self._http.start()
            scheme = "http" if self._certificates is None else "https"
            address = join_address(self._config.http_host, self._config.http_port)
            _log.info("HTTP is answered at %s://%s", scheme, address)

    async def _follow_store(self) -> None:
        """Report NOT_SERVING while the store cannot be read. Runs until cancelled."""
        changes, well = self.core.changes, True
        while True:
            seen = changes.change_stamp("")  # no model: the stamp changes only when all calls are woken
            if well == bool(changes.trouble):
                well = not well
                await self._report_health(well)
            await changes.wait_for_change("", seen)

    async def _follow_parts(self) -> None:
        """Report, as separate services, the health of the grower and of writes. Runs until cancelled."""
        board, waiting = self._post.board, self._post.board.tally("waiting")
        said: dict[str, bool] = {}
        while True:
            waiting.set(self.core.writer.queue_length)
            if self._post.is_keeper:
                board.set("grower_well", self.supervisor.is_well)
                board.set("writable", self._is_writable)
            board.take_level()
            is_well = bool(board.get("grower_well"))
            for name, well in ((GROWER_HEALTH, is_well), (WRITES_HEALTH, self._is_writable)):
                if well == said.get(name):
                    continue
                await self._set_health(name, well)
                if name == GROWER_HEALTH and name in said and self._post.is_keeper:
                    log_grower(self.supervisor.status())
                said[name] = well
            await asyncio.sleep(LOOK_AT_PARTS_S)

    async def _give_back_revoked(self) -> None:
        """End the leases of tokens that expired, or were revoked by any process. Runs until cancelled."""
        core = self.core
        while True:
            try:
                if await core.read(core.store.has_revoked_leases):
                    count = await core.write(core.store.evict_revoked)
                    _log.info("%d leases of revoked or expired tokens were ended", count)
            except StorageError as error:  # a failing store is reported elsewhere, and may recover
                _log.warning("leases of revoked tokens cannot be ended now: %s", error)
            await asyncio.sleep(TOKENS_POLL_S)

    async def _report_health(self, well: bool) -> None:
        for service in ("", *SERVICES):
            await self._set_health(service, well)

    async def _set_health(self, service: str, well: bool) -> None:
        status = health_pb2.HealthCheckResponse
        await self._health.set(service, status.SERVING if well else status.NOT_SERVING)

    async def _load_tokens(self) -> list[TokenRecord]:
        return await self.core.read(self._store.access.tokens)

    async def reload_files(self) -> None:
        """Read certificates and tokens again; if that fails, log the error and keep the old ones."""
        try:
            if self._certificates is not None:
                await asyncio.to_thread(self._certificates.reload_files)
                _log.info("certificates are read again: connections made from now on show them")
            if self._authority is not None:
                await self._authority.reload_tokens()
                _log.info("tokens are read again")
        except (BadStart, StorageError) as error:
            _log.error(
                "certificates and tokens cannot be read again, and the earlier ones stay in use: %s", error
            )

    async def stop(self) -> None:
        """Stop gracefully.

        Streams are ended, running calls get ``grace_s`` to finish, queued writes are committed and acknowledged, the
        grower is ended, and the store is closed.
        """
        for watch in self._watches:
            watch.cancel()
        await self._health.enter_graceful_shutdown()
        self.core.begin_stop()
        until = time.monotonic() + self._config.grace_s
        # Give clients time to read the ends of their streams: a connection that is closed while its client still sends
        # is reset, and messages that the client has not read yet, such as acknowledgements, are lost.
        open_ones = [each.streams_end(self._config.grace_s) for each in self._calls if each.has_streams]
        if open_ones and all(await asyncio.gather(*open_ones)):
            await asyncio.sleep(min(LINGER_S, self._config.grace_s))
        left_s = max(0.0, until - time.monotonic())
        stops = [self._server.stop(left_s)]
        if self._http is not None:
            stops.append(self._http.stop(left_s))
        await asyncio.gather(*stops)
        if self._private is not None:
            # the keeper takes the calls of the other workers until they end, which the parent process notes
            alive = self._post.board.tally("alive")
            while self._post.is_keeper and alive.elsewhere and time.monotonic() < until:
                await asyncio.sleep(LOOK_AT_OTHERS_S)
            await self._private.stop(max(0.0, until - time.monotonic()))
        if self._line is not None:
            await self._line.stop(max(0.0, until - time.monotonic()))
        if self._forwarder is not None:
            await self._forwarder.close()
        await self.supervisor.close()
        await self.core.close()
        await asyncio.to_thread(self._memory.close)
        if self._neighbours is not None:
            self._neighbours.close()
        await asyncio.to_thread(self._tracing.close)

    async def _make_http(self) -> HttpServer:
        """Return the server of the HTTP port, which is bound already."""
        from quercus.server.http import listener  # noqa: PLC0415  (Starlette and uvicorn: only where the port is on)

        config, is_alone = self._config, self._post.folder is None
        if is_alone:
            await asyncio.to_thread(check_address, config.http_host, config.http_port, HTTP)
        return listener.listen(
            config,
            chain_of(self._interceptors, self._offered),
            self._find_trouble,
            self._read_metrics,
            self._certificates,
            max_connections=self._http_connections,
            shares_port=not is_alone,
        )

    def _find_trouble(self) -> dict[str, str]:
        """Return the trouble of each part, without names of models or files, because callers need no token for it."""
        core = self.core
        if self._post.is_keeper:
            status = self.supervisor.status()
            status.ClearField("at")
            grower = grower_trouble(status)
        else:
            is_well = self._post.board.get("grower_well")
            grower = "" if is_well else "makes no progress: trees wait for it"
        return {
            "store": "cannot be read: the log says why" if core.changes.trouble else "",
            "grower": grower,
            "writes": "" if self._is_writable else "are refused: the log says why",
            "stopping": "calls end, and no new ones are taken" if core.stopping.is_set() else "",
        }

    async def _read_metrics(self, accept: str) -> tuple[str, bytes]:
        """Return content type and text of the page of metrics of all workers; other workers get it from the keeper."""
        if self._forwarder is None:
            return await asyncio.to_thread(self._metrics.page, accept)
        kind, _, text = (await self._forwarder.ask(METRICS_PAGE, accept.encode())).partition(b"\n")
        return kind.decode(), text

    def _make_private_server(self) -> aio.Server:
        """Return the server for calls of other workers, which have admitted and counted the calls that they forward."""
        answers: dict[str, Answer] = {"Metrics": lambda _: answer_metrics(self._metrics.own_text)}
        interceptors: list[Any] = []
        services: list[Any] = []
        if self._post.is_keeper:
            self._calls.append(calls := ErrorInterceptor())
            uncounted = replace(self._bounds, calls=CallsAtOnce(sys.maxsize))
            guard = Guard(self.core, self._authority, uncounted, self._audit)
            interceptors = [Joined(Arrivals(), calls, guard, DamageInterceptor(self.core.damaged))]
            answers["Record"] = self._record_line
            answers[METRICS_PAGE] = self._answer_page
            services = self._services.handlers
            self._line = LineServer(chain_of(interceptors, services))
        server = aio.server(interceptors=interceptors, options=SERVER_OPTIONS)
        server.add_generic_rpc_handlers((internal_handler(answers), *services))
        return server

    async def _record_line(self, data: bytes) -> bytes:
        who, action, target, outcome = json.loads(data)
        await self._record_call(who, action, target, outcome)
        return b""

    async def _answer_page(self, data: bytes) -> bytes:
        kind, text = await asyncio.to_thread(self._metrics.page, data.decode())
        return kind.encode() + b"\n" + text


def serve(config: Config, announce: Callable[[str], None]) -> None:
    """Run a server until SIGTERM or SIGINT; a second signal ends the process at once.

    SIGHUP calls `Server.reload_files`.

    Parameters
    ----------
    config : configuration of the server.
    announce : called with the server's address once it accepts calls.

    Raises
    ------
    BadStart
        If the store cannot be used, the port is taken, or a plug-in is missing; the message is for the user.
    """
    set_up_logging(config.log_level, config.log_format)
    choose_plugins(config.plugins)
    sys.setswitchinterval(SWITCH_S)
    run_event_loop(run_server(config, announce))


def run_event_loop(main: Coroutine[Any, Any, None]) -> None:
    """Run a server in uvloop's event loop, in which a gRPC call takes four fifths of the CPU time of asyncio's."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)


async def run_server(
    config: Config,
    announce: Callable[[str], None],
    post: Post | None = None,
    watch: Callable[[Callable[[], object]], None] | None = None,
) -> None:
    """Run a server, or a worker of one, until a signal ends it.

    Parameters
    ----------
    config : configuration of the server.
    announce : called with the server's address once it accepts calls.
    post : place of this process among the workers of the server; None if it is the only process.
    watch : called with a thread-safe function that ends the server as SIGTERM does.
    """
    signalled = asyncio.Event()

    def on_signal(number: int) -> None:
        if signalled.is_set():
            os._exit(128 + number)
        signalled.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal, number)
    hung_up = asyncio.Event()
    loop.add_signal_handler(signal.SIGHUP, hung_up.set)
    if watch is not None:
        watch(partial(loop.call_soon_threadsafe, signalled.set))
    server = Server(config, post)
    await server.start()
    beating = None if post is None else asyncio.create_task(_beat_forever(post), name="quercus-beats")
    # Exempt existing objects from garbage collection, and collect new ones seldom: reference counts free nearly all.
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER)
    reloading = asyncio.create_task(_reload_forever(server, hung_up), name="quercus-reload")
    announce(server.address)
    await signalled.wait()
    _log.info("stopping")
    reloading.cancel()
    await server.stop()
    if beating is not None:
        beating.cancel()


async def _beat_forever(post: Post) -> None:
    """Show the parent process that this worker's event loop runs; the parent ends workers whose loop hangs."""
    beats = post.board.tally("beats")
    while True:
        beats.add(1)
        await asyncio.sleep(BEAT_S)


async def _reload_forever(server: Server, asked: asyncio.Event) -> None:
    while await asked.wait():
        asked.clear()
        await server.reload_files()


def open_store(config: Config, *, is_keeper: bool = True) -> Store:
    """Open the store of a server, and claim it if the server grows trees.

    Parameters
    ----------
    config : configuration of the server.
    is_keeper : whether this process, and not another worker, checks the store and reserves disk space.

    Raises
    ------
    BadStart
        If the store cannot be used, or another server grows its trees.
    """
    check_s = config.check_s if is_keeper else 0.0
    try:
        try:
            store = Store.open(config.store_url, check_s=check_s)
        except ReadOnlyStore as error:
            store = Store.open(config.store_url, check_s=check_s, read_only=True)
            _log.warning("%s; it is only read: rows and answers are refused, and no tree grows", error)
        try:
            if is_keeper and not store.is_read_only:
                store.keep_reserve()
            if config.grower and not store.is_read_only:
                store.claim(f"process {os.getpid()} (since {time.strftime('%Y-%m-%d %H:%M:%S %Z')})")
        except BaseException:
            store.close()
            raise
        return store
    except (StorageError, InvalidInput) as error:
        raise BadStart(f"cannot use the store {shown_url(config.store)}: {error}") from error
