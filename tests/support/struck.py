"""A server that a fault strikes: what it acknowledged, to be held against what is stored afterwards."""

from __future__ import annotations

import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from integration.client.serving import Serving

from quercus.client import Client, DeadlineExceeded, Nominal, Outbox, QuercusError, Specification
from quercus.storage import EventKind, Store, file_url
from quercus.storage.admin.verify import verify_store
from support.published import published_model

MODEL: Final = "m"
WAIT_S: Final = 120.0
SENSOR_S: Final = 0.1
"""Seconds between two rows of the outbox that runs through every fault."""

LEARNERS: Final = {"active-forest": Specification, "abc45": published_model}
"""The default learner of the service, and the published tree."""


@dataclass
class Trial:
    """A server with a model, and what it acknowledged.

    Parameters
    ----------
    folder : of the store.
    flags : of the server.
    outage_s : for how long its client tries again.
    learner : of `LEARNERS`.
    """

    folder: Path
    flags: tuple[str, ...] = ()
    outage_s: float = 60.0
    learner: str = "active-forest"
    pushed: list[str] = field(default_factory=list)
    answered: list[int] = field(default_factory=list)
    saw: list[str] = field(default_factory=list)
    sensed: list[str] = field(default_factory=list)
    left: bytes = b""
    _feeding: threading.Lock = field(default_factory=threading.Lock)
    _outbox: Outbox | None = None

    @contextmanager
    def server(self) -> Iterator[Client]:
        """Run the server with a model of 60 rows; afterwards hold the store against what was acknowledged."""
        self.serving = Serving(self.folder, 0, "--log-level", "error", *self.flags)
        try:
            with Client(self.serving.address, outage_s=self.outage_s) as client:
                attributes = [Nominal(name, "abc") for name in "xyz"]
                specification = LEARNERS[self.learner](
                    attributes, "os", alpha=0.9, budget=1000, min_instances=2
                )
                client.create_model(MODEL, specification)
                rows = [["abc"[k % 3], "abc"[k // 3 % 3], "abc"[k // 9 % 3]] for k in range(60)]
                self.push(client, rows, ["os"[k * k % 5 % 2] if k % 3 else None for k in range(60)])
                client.wait_grown(MODEL, timeout_s=WAIT_S)
                with self._sensor():
                    yield client
        except QuercusError as error:
            raise AssertionError(f"{error}; the server: {self._how_it_is()}") from error
        finally:
            code = self.serving.stop()
        assert code in {0, -signal.SIGKILL}, f"the server ended with {code}"

    def _how_it_is(self) -> str:
        code = self.serving.process.poll()
        return "runs" if code is None else f"ended with {code}"

    @contextmanager
    def _sensor(self) -> Iterator[None]:
        """Put row after row into an outbox while the fault strikes; in the end the server has all of them, once."""
        ended = threading.Event()
        with tempfile.TemporaryDirectory() as folder, Client(self.serving.address) as sensor:
            file = Path(folder) / "rows.buffer"
            self._outbox = outbox = sensor.outbox(MODEL, file)
            feeder = threading.Thread(target=self._feed, args=(outbox, ended), name="sensor")
            feeder.start()
            try:
                yield
            finally:
                ended.set()
                feeder.join()
                if self.serving.process.poll() is None:
                    outbox.close(WAIT_S)
                else:
                    self._deliver_later(outbox, file)

    def _feed(self, outbox: Outbox, ended: threading.Event) -> None:
        while not ended.wait(SENSOR_S):
            with self._feeding:
                self.sensed.append(f"sensed-{len(self.sensed)}")
                outbox.put([["a", "b", "c"]], ids=self.sensed[-1:])

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Hold the sensor back once all its rows are acknowledged."""
        assert self._outbox is not None
        with self._feeding:
            self._outbox.flush(WAIT_S)
            yield

    def _deliver_later(self, outbox: Outbox, file: Path) -> None:
        """Keep the buffer of an outbox whose server is gone, for the next one."""
        with suppress(DeadlineExceeded):
            outbox.close(0.1)
        self.left = file.read_bytes() if file.exists() else b""

    def deliver(self) -> None:
        """Send what was left to a server that is started anew."""
        self.serving = Serving(self.folder, 0, "--log-level", "error", *self.flags)
        try:
            with tempfile.TemporaryDirectory() as folder, Client(self.serving.address) as sensor:
                file = Path(folder) / "rows.buffer"
                file.write_bytes(self.left)
                sensor.outbox(MODEL, file).close(WAIT_S)
        finally:
            self.serving.stop()

    def push(self, client: Client, rows: Any, labels: Any = None) -> None:
        """Push rows; they are acknowledged when this returns."""
        ids = [f"row-{len(self.pushed) + k}" for k in range(len(rows))]
        client.push(MODEL, rows, labels, ids)
        self.pushed += ids

    def answer(self, client: Client) -> None:
        """Answer one query, as a labeller who pushed nothing and so waits for no tree of it."""
        with Client(client.address) as labeller:
            (query,) = labeller.lease(MODEL, "bob", wait_s=30).queries
            self.answered.append(labeller.answer(query, "o").committed_sequence)

    def refused(self, what: str, call: Callable[[], object]) -> bool:
        """Note what the caller sees; whether it was an error."""
        try:
            call()
        except QuercusError as error:
            self.saw.append(f"{what}: {type(error).__name__} ({error.message[:100]})")
            return True
        self.saw.append(f"{what}: OK")
        return False

    def check(self) -> str:
        """Hold the store against what was acknowledged; say how much was."""
        with Store.open(file_url(self.folder / "quercus.db")) as store:
            events = store.read_events(MODEL, limit=10**9)
        assert verify_store(file_url(self.folder / "quercus.db")) == []
        ids = [event.id for event in events if event.kind is EventKind.INSTANCE]
        assert len(ids) == len(set(ids)), "a row is stored twice"
        assert set(self.pushed) <= set(ids), "an acknowledged row is gone"
        assert set(self.sensed) <= set(ids), "a row of the outbox is gone"
        assert set(self.answered) <= {e.sequence for e in events if e.kind is EventKind.ANSWER}, (
            "an answer is gone"
        )
        return f"{len(self.pushed):,} rows, {len(self.answered)} answers"
