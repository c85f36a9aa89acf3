"""The metrics of a server, in the text format of Prometheus.

Metrics of calls have the same names as those of gRPC servers in other languages, so that dashboards for those fit. Data
of the store (queries, lag, budgets) are read only when the page is requested.
"""

from __future__ import annotations

import logging
import platform
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import grpc
from google.protobuf.message import DecodeError
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from quercus import __version__
from quercus.server.telemetry import metric_table as table
from quercus.server.telemetry.metric_sums import Answers, SumOfWorkers
from quercus.server.telemetry.metric_table import MetricRow
from quercus.server.wire.limits import MAX_PAGE
from quercus.server.wire.reports import accuracy_in, drift_in, other_names_in
from quercus.server.workers.board import Tally
from quercus.storage import ModelRecord, StorageError, Store

_log = logging.getLogger(__name__)
CODES: Final = {each.name: each.name.title().replace("_", "") for each in grpc.StatusCode} | {
    "OK": "OK",
    "CANCELLED": "Canceled",
}
"""The label of each status, spelt as by Go's middleware, for which most dashboards are made."""
SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)


class Metrics:
    """The metrics of one server, in registries of its own.

    Parameters
    ----------
    store : the open store.
    under_way : number of calls under way in all workers; None if this is the only process.
    ask, kept : see `SumOfWorkers`; not given if this is the only process.

    Attributes
    ----------
    own : metrics of this process that are added up over the workers.
    registry : metrics of the page.
    under_way : number of calls that have begun but not ended.
    """

    def __init__(
        self,
        store: Store,
        under_way: Tally | None = None,
        ask: Callable[[], Answers] = dict,
        kept: Path | None = None,
    ) -> None:
        self.own = CollectorRegistry()
        self.started = self._make_counter(table.STARTED)
        self.handled = self._make_counter(table.HANDLED)
        self.seconds = Histogram(
            table.HANDLING.name,
            table.HANDLING.sentence,
            table.HANDLING.labels,
            buckets=SECONDS,
            registry=self.own,
        )
        self.received = self._make_counter(table.RECEIVED)
        self.sent = self._make_counter(table.SENT)
        ProcessCollector(registry=self.own)
        self.under_way = under_way = Tally() if under_way is None else under_way
        self.registry = CollectorRegistry()
        self.registry.register(SumOfWorkers(self.own, ask, kept))
        self.register(table.IN_FLIGHT, lambda: under_way.total)
        build = Gauge(table.BUILD.name, table.BUILD.sentence, table.BUILD.labels, registry=self.registry)
        build.labels(__version__, platform.python_version()).set(1)
        self.registry.register(_ModelCollector(store))
        PlatformCollector(registry=self.registry)

    def page(self, accept: str) -> tuple[str, bytes]:
        """Return content type and text of the page. Call it in a thread.

        Parameters
        ----------
        accept : the header Accept of the request.
        """
        encode, kind = choose_encoder(accept)
        return kind, encode(self.registry)

    def own_text(self) -> bytes:
        """Return this process's `own` metrics as text."""
        return generate_latest(self.own)

    def _make_counter(self, row: MetricRow) -> Counter:
        return Counter(row.name, row.sentence, row.labels, registry=self.own)

    def register(self, row: MetricRow, value: Callable[[], float], *, adds_up: bool = False) -> None:
        """Register a metric whose value is read for each request of the page.

        Parameters
        ----------
        row : the metric, a gauge or a counter.
        value : returns the value.
        adds_up : whether the page shows the sum over the workers.
        """
        registry = self.own if adds_up else self.registry
        if row.kind == "counter":
            registry.register(_CountElsewhere(row, value))
        else:
            Gauge(row.name, row.sentence, registry=registry).set_function(value)


class _CountElsewhere(Collector):
    """A counter whose number is kept elsewhere."""

    def __init__(self, row: MetricRow, value: Callable[[], float]) -> None:
        self._row, self._value = row, value

    def collect(self) -> Iterator[Metric]:
        yield CounterMetricFamily(self._row.name, self._row.sentence, value=self._value())


_OF_A_MODEL: Final[tuple[tuple[MetricRow, Callable[[ModelRecord], float]], ...]] = (
    (table.INSTANCES, lambda r: r.instance_count),
    (table.COMMITTED, lambda r: r.sequence_committed),
    (table.GROWN, lambda r: r.sequence_grown),
    (table.LAG, lambda r: r.lag_s),
    (table.TREE_VERSION, lambda r: r.tree_version),
    (table.OPEN, lambda r: r.queries_open),
    (table.LEASED, lambda r: r.queries_leased),
    (table.ANSWERED, lambda r: r.queries_answered),
    (table.REFUSED, lambda r: r.queries_refused),
    (table.BUDGET, lambda r: r.budget),
    (table.CONFLICTS, lambda r: r.conflicts),
)


def _report_families(records: Sequence[ModelRecord]) -> Iterator[Metric]:
    """Yield metrics from the grower's report about each model: names beyond a limit, recent accuracy, and changes."""
    others, rows, accuracy, fall, changed = map(
        _gauge_family,
        (
            table.OTHER_NAMES,
            table.RECENT_ROWS,
            table.RECENT_ACCURACY,
            table.ACCURACY_FALL,
            table.CHANGED_ATTRIBUTES,
        ),
    )
    for record in records:
        try:
            blocks = accuracy_in(record.report)
            others.add_metric((record.name,), other_names_in(record.report))
            drift = drift_in(record.report)
            fall.add_metric((record.name,), drift.accuracy.before - drift.accuracy.since)
            changed.add_metric((record.name,), len(drift.attributes))
        except DecodeError:  # a damaged model, which the status names
            continue
        count = sum(block.rows for block in blocks)
        if count:
            rows.add_metric((record.name,), count)
            accuracy.add_metric((record.name,), sum(block.expected for block in blocks) / count)
    yield from (others, rows, accuracy, fall, changed)


class _ModelCollector(Collector):
    """Metrics of each of the first `MAX_PAGE` models."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def describe(self) -> list[Metric]:
        return []  # nothing is read while the server starts

    def collect(self) -> Iterator[Metric]:
        up, size, free, growers = (
            _gauge_family(row)
            for row in (table.STORE_UP, table.STORE_BYTES, table.DISK_FREE, table.GROWER_MODELS)
        )
        try:
            records = self._store.list_models(limit=MAX_PAGE)
            size.add_metric((), self._store.size_bytes())
            if (left := self._store.free_bytes()) is not None:
                free.add_metric((), left)
            for each in self._store.live_growers() if self._store.may_be_shared else ():
                growers.add_metric((each.place,), each.models)
        except StorageError as error:
            _log.warning("metrics: the store cannot be read: %s", error)
            up.add_metric((), 0)
            yield up
            return
        up.add_metric((), 1)
        yield from (up, size, free, growers)
        yield from _report_families(records)
        for row, value in _OF_A_MODEL:
            family = _gauge_family(row)
            for record in records:
                family.add_metric((record.name,), value(record))
            yield family


def _gauge_family(row: MetricRow) -> GaugeMetricFamily:
    return GaugeMetricFamily(row.name, row.sentence, labels=row.labels)
