"""A server that is pushed to, labelled and asked all at once, while it, its grower and a learner are killed, often.

    python tests/support/torture.py 200
    python tests/support/torture.py 200 3

The second number is that of the server's workers: then the one that writes, others and their parent are killed.
Rows are pushed and classified, queries answered, and labels stated unasked. After every kill the store is backed up
while all goes on, and the backup is checked and restored. At the end everything that was acknowledged must be there
once, no query may have answers from two holders, the budgets must hold, and what was grown must be what the same
evidence gives without a kill (`support.unbroken`): an active tree, a forest that learns again in a process of its own,
and the forest of many memories, which is what the service learns by default and asks by itself.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from integration.client.serving import Serving

from quercus.client import Client, FailedPrecondition, QuercusError, Statement, Unavailable
from quercus.server.gate import rpcs
from quercus.storage import file_url
from quercus.storage.admin.backup import back_up, restore_backup
from quercus.storage.admin.verify import StoreFault, verify_store
from support.processes import children
from support.unbroken import (
    ASKED,
    ATTRIBUTES,
    BATCH_ROWS,
    CLASSES,
    MODELS,
    TREE,
    VALUES,
    check_models,
    check_remembering,
    codes_of,
    specifications,
    truth,
)
from support.waiting import until
from support.workers import kill_worker, workers_of

OUTAGE_S = 120.0
SETTLE_S = 120.0
STATE_S = 0.1
"""Between two statements: most rows are left to be asked about."""

LONGEST_CALM_S = 1.5
PROGRESS_S = 90.0
TARGETS = ("server", "grower", "learner")
WORKERS = ("writing worker", "other worker")
assert rpcs.ROLES  # the server's package is there: this is not a client-only installation


@dataclass
class Outcome:
    """The responses that the load received, to be compared with the store."""

    pushed: list[str] = field(default_factory=list)
    answered: dict[str, tuple[str, int]] = field(default_factory=dict)  # query: labeller and sequence
    stated: list[tuple[str, str, str]] = field(default_factory=list)  # model, instance and comment
    classified: int = 0
    spent: set[str] = field(default_factory=set)  # models that want no answer any more
    kills: Counter[str] = field(default_factory=Counter)
    calm: int = 0  # kills that came when all that clients do had gone on since the kill before
    wrong: list[str] = field(default_factory=list)


class Torture:
    """One server, its load, and its killer.

    Parameters
    ----------
    folder : where the store is.
    seed : of rows and of kills.
    budget : of each model.
    rest_s : between two pushes, and two classifications.
    workers : processes that answer calls.
    """

    targets: tuple[str, ...] = TARGETS

    def __init__(
        self, folder: Path, seed: int = 0, budget: int = 1000, rest_s: float = 0.01, workers: int = 1
    ) -> None:
        self.folder = folder
        self.workers = workers
        if workers > 1:
            self.targets = (*TARGETS, *WORKERS)
        self.rest_s = rest_s
        self.budget = budget
        self.rng = np.random.default_rng(seed)
        self.outcome = Outcome()
        self.url = file_url(folder / "quercus.db")
        self.begin()
        self._stop = threading.Event()
        self._rows: dict[str, np.ndarray] = {}
        self._statements = itertools.count()
        with Client(self.addresses[0]) as client:
            client.wait_ready(OUTAGE_S)
            for model, specification in specifications(budget).items():
                client.create_model(model, specification)

    def begin(self) -> None:
        """Start what is tortured."""
        self.serving = Serving(self.folder, workers=self.workers)
        self.addresses = [self.serving.address]

    def end(self) -> None:
        """Stop it in order."""
        self.serving.stop()

    def run(self, kills: int, on_kill: Callable[[Outcome], object] | None = None) -> Outcome:
        """Kill so many times, then check; raises AssertionError when something is not as it was told."""
        works: list[Callable[[Client], None]] = [self._push, self._classify]
        works += [self._label("ann"), self._label("bob"), self._state]
        turns = itertools.cycle(self.addresses)
        threads = [threading.Thread(target=self._work, args=(work, next(turns))) for work in works]
        for thread in threads:
            thread.start()
        try:
            for target, calm in self._plan(kills):
                if calm:
                    self._wait_for_progress()
                time.sleep(float(self.rng.uniform(0, LONGEST_CALM_S)))
                self._kill(target)
                if on_kill is not None:
                    on_kill(self.outcome)
        finally:
            self._stop.set()
            for thread in threads:
                thread.join(OUTAGE_S)
        assert not any(thread.is_alive() for thread in threads), "a client hangs"
        try:
            with Client(self.addresses[-1], outage_s=OUTAGE_S) as client:
                client.wait_ready(OUTAGE_S)
                for model in MODELS:
                    client.wait_grown(model, timeout_s=SETTLE_S)
                told = self.outcome
                assert told.wrong == []
                check_models(client, told.pushed, told.answered, told.stated, self.budget)
        finally:
            self.end()
        self._back_up()
        faults = self._faults()
        assert faults == [], faults
        check_remembering(self.url)
        return self.outcome

    def _plan(self, kills: int) -> list[tuple[str, bool]]:
        """Return the targets to kill, each as often after progress as possibly while processes still start.

        Each comes once before any comes twice, and then every other one after progress.
        """
        kinds = [
            (target, (number + turn) % 2 == 0)
            for turn in (0, 1)
            for number, target in enumerate(self.targets)
        ]
        plan = (kinds * (kills // len(kinds) + 1))[:kills]
        return [plan[k] for k in self.rng.permutation(kills)]

    def _work(self, work: Callable[[Client], None], address: str) -> None:
        # A call that takes long is not a fault where the machine is busy; one that hangs stops all progress.
        with Client(address, timeout_s=OUTAGE_S, outage_s=OUTAGE_S) as client:
            client.wait_ready(OUTAGE_S)
            while not self._stop.is_set():
                try:
                    work(client)
                except Unavailable:
                    time.sleep(0.05)  # away for the first call of this client: it tries again
                except QuercusError as error:
                    self.outcome.wrong.append(f"{type(error).__name__}: {error}")
                    return

    def _push(self, client: Client) -> None:
        codes = self.rng.integers(0, len(VALUES), (BATCH_ROWS, ATTRIBUTES))
        labels = [self._source_label(row) for row in codes]
        start = len(self.outcome.pushed)
        ids = [f"row-{start + i}" for i in range(BATCH_ROWS)]
        rows = [[VALUES[code] for code in row] for row in codes]
        self._rows |= dict(zip(ids, codes, strict=True))
        for model in MODELS:
            client.push(model, rows, labels, ids)
            if model == TREE:
                self.outcome.pushed += ids
        time.sleep(self.rest_s)

    def _source_label(self, row: np.ndarray) -> Any:
        known = CLASSES[truth(row)]
        kind = self.rng.integers(0, 4)
        if kind == 0:
            return known
        if kind == 1:
            return {known, CLASSES[(truth(row) + 1) % 3]}
        return None

    def _label(self, labeller: str) -> Callable[[Client], None]:
        turns = itertools.cycle(ASKED)

        def work(client: Client) -> None:
            model = next(turns)
            lease = client.lease(model, labeller, lease_s=5, wait_s=0.5)
            if lease.idle == "budget_spent":
                self.outcome.spent.add(model)
            for query in lease.queries:
                try:
                    report = client.answer(query, CLASSES[truth(codes_of(query.values))])
                except FailedPrecondition:
                    continue  # the lease ended while the server was away, and somebody else has it
                self.outcome.answered[query.name] = (labeller, report.committed_sequence)

        return work

    def _state(self, client: Client) -> None:
        """Say unasked of a row that was pushed what eve knows."""
        if not self._stop.wait(STATE_S) and len(self.outcome.pushed) > BATCH_ROWS:
            k = next(self._statements)
            name = self.outcome.pushed[k * k % (len(self.outcome.pushed) - BATCH_ROWS)]  # all models have it
            known, comment = truth(self._rows[name]), f"no. {k}"
            label = {CLASSES[known], CLASSES[(known + k) % 3]}
            for model in MODELS:
                statement = Statement(name, label, reliability=1 - k % 1000 / 2000, comment=comment)
                if client.state(model, [statement], labeller="eve").stored:
                    self.outcome.stated.append((model, name, comment))

    def _classify(self, client: Client) -> None:
        codes = self.rng.integers(0, len(VALUES), (2, ATTRIBUTES))
        try:
            client.classify(
                ASKED[self.outcome.classified % 2], [[VALUES[code] for code in row] for row in codes]
            )
        except FailedPrecondition:
            return  # no tree yet
        self.outcome.classified += 1
        time.sleep(self.rest_s)

    def _wait_for_progress(self) -> None:
        """Wait until rows were pushed and classified and, while budgets last, each model that asks had an answer."""
        told = self.outcome

        def reached() -> list[float]:
            answers = Counter(name.split("/")[1] for name in list(told.answered))  # others add to it
            done = [len(told.pushed), told.classified, len(told.stated)]
            return [*done, *(math.inf if model in told.spent else answers[model] for model in ASKED)]

        before = [0 if math.isinf(number) else number for number in reached()]
        self._wait(
            lambda: all(new > old for new, old in zip(reached(), before, strict=False)), "nothing goes on"
        )
        told.calm += 1

    def _wait(self, holds: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + PROGRESS_S
        while not holds():
            assert self.outcome.wrong == [], self.outcome.wrong
            assert time.monotonic() < deadline, f"{what} any more after {dict(self.outcome.kills)}"
            time.sleep(0.01)

    def _kill(self, target: str) -> None:
        if target == "grower":
            self._wait(self._growers, "there is no grower")
            for pid in self._growers():
                os.kill(pid, signal.SIGKILL)
        elif target == "learner":
            self._wait(self._learners, "no learner is there")
            for pid in self._learners():
                with contextlib.suppress(ProcessLookupError):  # it has ended by itself
                    os.kill(pid, signal.SIGKILL)
        elif target == "writing worker":
            kill_worker(self.serving, 0)
        elif target == "other worker":
            kill_worker(self.serving, int(self.rng.integers(1, self.workers)))
        else:
            workers = workers_of(self.serving.process.pid).values()
            self.serving.kill()
            until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))
            self.serving = Serving(self.folder, self.serving.port, workers=self.workers)
        self.outcome.kills[target] += 1
        self._back_up()

    def _growers(self) -> list[int]:
        server = self.serving.process.pid
        writer = server if self.workers == 1 else workers_of(server).get(0)
        try:
            return [] if writer is None else children(writer)
        except FileNotFoundError:  # a worker that has just ended
            return []

    def _learners(self) -> list[int]:
        """Processes of the grower that learn."""
        try:
            return [pid for grower in self._growers() for pid in children(grower)]
        except FileNotFoundError:  # a grower that has just ended
            return []

    def _faults(self) -> list[StoreFault]:
        return verify_store(self.url)

    def _back_up(self) -> None:
        """Copy the store while all goes on; the copy must check clean and come back as a store that does."""
        copy, restored = self.folder / "copy.db", self.folder / "restored.db"
        back_up(self.url, copy, force=True)
        restore_backup(copy, file_url(restored), force=True)
        assert verify_store(file_url(restored)) == []


def show(outcome: Outcome) -> None:
    """Say now and then how far it is."""
    if outcome.kills.total() % 20 == 0:
        told = f"{len(outcome.pushed):,} rows, {len(outcome.answered):,} answers, {outcome.classified:,} classified"
        print(f"{outcome.kills.total()} kills: {told}", flush=True)


def main() -> None:
    """Torture for as many kills as the first argument says, and say what was reached."""
    kills, workers = (int(given) for given in [*sys.argv[1:], *("200", "1")[len(sys.argv) - 1 :]])
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        outcome = Torture(Path(folder), seed=kills, workers=workers).run(kills, show)
    tell(outcome, time.monotonic() - started)


def tell(outcome: Outcome, seconds: float) -> None:
    """Say what was reached."""
    killed = outcome.kills
    print(f"{killed.total()} kills in {seconds:.0f} s: {dict(killed)}, {outcome.calm} of them after progress")
    print(
        f"{len(outcome.pushed):,} rows, {len(outcome.answered):,} answers and {len(outcome.stated):,} statements "
        f"acknowledged, all there once; "
        f"{outcome.classified:,} rows classified meanwhile; the tree is that of batch induction, "
        "the forests are those of their evidence"
    )


if __name__ == "__main__":
    main()
