"""The metrics of a server, in the text format of Prometheus.

Names of calls are those that gRPC servers of other languages use, so dashboards made for them fit. What the store
knows (queries, lag, budgets) is read when somebody looks, and at no other time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
    start_http_server,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from quercus.server.wire.errors import BadStart
from quercus.server.wire.limits import MAX_PAGE
from quercus.server.wire.reports import accuracy_in
from quercus.storage import ModelRecord, StorageError, Store

_log = logging.getLogger(__name__)
disable_created_metrics()  # type: ignore[no-untyped-call]  # when a counter began: half of the page, and nobody asks
SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
_CALL: Final = ("grpc_service", "grpc_method")


class Metrics:
    """The counters of one server, each in a registry of its own.

    Parameters
    ----------
    store : the open store.
    """

    def __init__(self, store: Store) -> None:
        self.registry = CollectorRegistry()
        self.started = Counter("grpc_server_started", "Calls that began.", _CALL, registry=self.registry)
        self.handled = Counter(
            "grpc_server_handled",
            "Calls that ended, by status.",
            (*_CALL, "grpc_code"),
            registry=self.registry,
        )
        self.seconds = Histogram(
            "grpc_server_handling_seconds",
            "Time from the start to the end of calls that are no streams.",
            _CALL,
            buckets=SECONDS,
            registry=self.registry,
        )
        self.received = Counter(
            "grpc_server_msg_received", "Messages of streams received.", _CALL, registry=self.registry
        )
        self.sent = Counter(
            "grpc_server_msg_sent", "Messages of streams sent.", _CALL, registry=self.registry
        )
        self._under_way = 0
        self.gauge("quercus_calls_in_flight", "Calls under way.", self.calls_under_way)
        self.registry.register(_ModelCollector(store))
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self._stop: Callable[[], None] = lambda: None

    def calls_under_way(self) -> int:
        """Return how many calls have begun and not ended."""
        return self._under_way

    def begin(self) -> None:
        """A call began."""
        self._under_way += 1

    def end(self) -> None:
        """A call ended."""
        self._under_way -= 1

    def gauge(self, name: str, text: str, value: Callable[[], float]) -> None:
        """Have a number read whenever somebody looks."""
        Gauge(name, text, registry=self.registry).set_function(value)

    def serve(self, host: str, port: int) -> None:
        """Answer ``GET /metrics`` in a thread of its own.

        Raises
        ------
        BadStart
            When the port is taken.
        """
        try:
            server, thread = start_http_server(port, host, self.registry)
        except OSError as error:
            raise BadStart(
                f"cannot serve metrics on {host}:{port}: {error.strerror}; choose another --metrics-port"
            ) from None

        def stop() -> None:
            server.shutdown()
            server.server_close()
            thread.join()

        self._stop = stop

    def close(self) -> None:
        """Answer no more."""
        self._stop()
        self._stop = lambda: None


_OF_A_MODEL: Final[tuple[tuple[str, str, Callable[[ModelRecord], float]], ...]] = (
    ("instances", "Instances in the log.", lambda r: r.instance_count),
    ("sequence_committed", "Newest event of the log.", lambda r: r.sequence_committed),
    ("sequence_grown", "Newest event that the tree knows.", lambda r: r.sequence_grown),
    ("lag_seconds", "How long the oldest event that the tree does not know has waited.", lambda r: r.lag_s),
    ("tree_version", "Version of the newest tree.", lambda r: r.tree_version),
    ("queries_open", "Queries that wait for a labeller.", lambda r: r.queries_open),
    ("queries_leased", "Queries that labellers hold.", lambda r: r.queries_leased),
    ("queries_answered", "Queries answered, ever.", lambda r: r.queries_answered),
    ("queries_refused", "Queries refused, ever.", lambda r: r.queries_refused),
    ("budget", "Queries that may ever be answered.", lambda r: r.budget),
    ("conflicts", "Answers that contradicted totally what was known.", lambda r: r.conflicts),
)


def _accuracies(records: Sequence[ModelRecord]) -> Iterator[Metric]:
    """Yield how right predictions were lately, of the models of which that is known."""
    rows = GaugeMetricFamily(
        "quercus_model_recent_rows",
        "The last rows whose label came after their prediction, at most 1,000.",
        labels=("model",),
    )
    accuracy = GaugeMetricFamily(
        "quercus_model_recent_accuracy",
        "Mean probability, under the labels of these rows, of the classes that were predicted.",
        labels=("model",),
    )
    for record in records:
        blocks = accuracy_in(record.report)
        count = sum(block.rows for block in blocks)
        if count:
            rows.add_metric((record.name,), count)
            accuracy.add_metric((record.name,), sum(block.expected for block in blocks) / count)
    yield from (rows, accuracy)


class _ModelCollector(Collector):
    """Where each of the first `MAX_PAGE` models stands."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def describe(self) -> list[Metric]:
        return []  # nothing is read while the server starts

    def collect(self) -> Iterator[Metric]:
        up = GaugeMetricFamily("quercus_store_up", "Whether the store can be read.")
        size = GaugeMetricFamily("quercus_store_bytes", "Size of the store's files.")
        growers = GaugeMetricFamily(
            "quercus_grower_models", "Models that a live grower of the store has taken.", labels=("grower",)
        )
        try:
            records = self._store.list_models(limit=MAX_PAGE)
            size.add_metric((), self._store.size_bytes())
            for each in self._store.live_growers() if self._store.may_be_shared else ():
                growers.add_metric((each.place,), each.models)
        except StorageError as error:
            _log.warning("metrics: the store cannot be read: %s", error)
            up.add_metric((), 0)
            yield up
            return
        up.add_metric((), 1)
        yield from (up, size, growers)
        yield from _accuracies(records)
        for name, text, value in _OF_A_MODEL:
            family = GaugeMetricFamily(f"quercus_model_{name}", text, labels=("model",))
            for record in records:
                family.add_metric((record.name,), value(record))
            yield family
