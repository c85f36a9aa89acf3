"""Metrics of several processes, added up, so that a server with workers appears as one."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry, disable_created_metrics, generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

disable_created_metrics()  # type: ignore[no-untyped-call]  # start times of counters: half of the page, and no sums
CUMULATIVE: Final = frozenset({"counter", "histogram"})
"""Kinds of metrics that never fall. They include the counts of processes that ended; otherwise a monitor would see a
restart."""

BEGINNINGS: Final = frozenset({"process_start_time_seconds"})
"""Metrics of which the least value counts: the server started when its first process did."""

Answers = Mapping[int, tuple[int, str]]
"""The process id and the metrics, in the text format of Prometheus, of each worker, by number."""


class SumOfWorkers(Collector):
    """The metrics of this process and of the other workers of its server.

    Parameters
    ----------
    own : metrics of this process.
    ask : asks the other workers; those that do not answer are left out.
    kept : file with the counts of this process and of those that ended, from which the next keeper continues.
    """

    def __init__(self, own: CollectorRegistry, ask: Callable[[], Answers], kept: Path | None) -> None:
        self._own = own
        self._ask = ask
        self._kept = kept
        self._last: dict[int, tuple[int, str]] = {}
        self._collecting = threading.Lock()
        self._ended: dict[str, _Sums] = {}
        if kept is not None:
            with suppress(OSError, ValueError):  # there is none yet
                found = json.loads(kept.read_text())
                self._note_ended(found["ended"])
                self._last = {
                    int(worker): (process, text) for worker, (process, text) in found["last"].items()
                }

    def describe(self) -> list[Metric]:
        """Return nothing, because other workers cannot be asked while the server starts."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield each metric with the sums of its samples."""
        own = list(self._own.collect())
        if self._kept is None:
            return iter(own)
        with self._collecting:
            return iter(self._sums_with(own, self._kept))

    def _sums_with(self, own: list[Metric], kept: Path) -> list[Metric]:
        answers = self._ask()
        for worker, (process, text) in answers.items():
            known = self._last.get(worker)
            if known is not None and known[0] != process:
                self._note_ended(known[1])
            self._last[worker] = process, text
        sums = {family.name: _Sums(family) for family in own}
        _add_all(sums, (each.family() for each in self._ended.values()))
        # for the next keeper, to which this process is one that has ended
        ended = [each.family() for each in sums.values() if each.kind in CUMULATIVE]
        with suppress(OSError):
            new = kept.with_suffix(".new")
            new.write_text(json.dumps({"ended": _text_of(ended), "last": self._last}))
            new.replace(kept)
        for worker, (_, text) in self._last.items():
            families = text_string_to_metric_families(text)
            _add_all(sums, (each for each in families if worker in answers or each.type in CUMULATIVE))
        return [each.family() for each in sums.values()]

    def _note_ended(self, text: str) -> None:
        """Keep the last known counts of a process that has ended."""
        for family in text_string_to_metric_families(text):
            if family.type in CUMULATIVE:
                self._ended.setdefault(family.name, _Sums(family, empty=True)).add(family)


def _add_all(sums: Mapping[str, _Sums], families: Iterable[Metric]) -> None:
    for family in families:
        if family.name in sums:
            sums[family.name].add(family)


def _text_of(families: list[Metric]) -> str:
    class _Given(Collector):
        def collect(self) -> Iterable[Metric]:
            return families

    registry = CollectorRegistry()
    registry.register(_Given())
    return generate_latest(registry).decode()


class _Sums:
    """The summed samples of one metric, in order of arrival."""

    def __init__(self, family: Metric, *, empty: bool = False) -> None:
        self.name, self.kind, self._sentence = family.name, family.type, family.documentation
        self._values: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
        if not empty:
            self.add(family)

    def add(self, family: Metric) -> None:
        for each in family.samples:
            key = each.name, tuple(sorted(each.labels.items()))
            before = self._values.get(key)
            if before is None:
                self._values[key] = each.value
            elif each.name in BEGINNINGS:
                self._values[key] = min(before, each.value)
            else:
                self._values[key] = before + each.value

    def family(self) -> Metric:
        made = Metric(self.name, self._sentence, self.kind)
        made.samples = [Sample(name, dict(labels), value) for (name, labels), value in self._values.items()]
        return made
