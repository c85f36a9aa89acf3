"""A server that is pushed to, labelled and asked all at once, while it, its grower and a learner are killed, often.

    python tests/support/torture.py 200

Rows are pushed and classified, queries answered, and labels stated unasked. After every kill the store is backed up
while all goes on, and the backup is checked and restored. At the end everything that was acknowledged must be there
once, no query may have answers from two holders, the budget must hold, and the tree must be that of batch induction on
the same evidence; so must the forest of a second model, which learns again in a process of its own.
"""

from __future__ import annotations

import contextlib
import itertools
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

from quercus.belief.frame import Frame
from quercus.client import (
    Client,
    FailedPrecondition,
    Nominal,
    QuercusError,
    Specification,
    Statement,
    Unavailable,
)
from quercus.server.gate import access
from quercus.specification.algorithms import C45, Forest
from quercus.specification.model import Specification as ModelSpecification
from quercus.storage import file_url
from quercus.storage.admin.backup import back_up, restore_backup
from quercus.storage.admin.verify import verify_store
from quercus.trees.growth.abc45 import induce
from quercus.trees.learners.model import fit
from quercus.trees.learners.table import Table
from quercus.trees.precompile import prepare
from quercus.trees.tree.encoding import Encoder
from support.processes import children
from support.published import published_model

MODEL = "m"
FOREST = "forest"  # the second model
TREES = 20
VALUES = ("a", "b", "c")
CLASSES = ("o", "s", "x")
ATTRIBUTES = 4
BATCH_ROWS = 5
ALPHA = 0.9
MIN_INSTANCES = 20
OUTAGE_S = 120.0
SETTLE_S = 120.0
STATE_S = 0.1
"""Between two statements: most rows are left to be asked about."""

LONGEST_CALM_S = 1.5
PROGRESS_S = 90.0
TARGETS = ("server", "grower", "learner")
assert access.ROLES  # the server's package is there: this is no client-only installation


def specification(budget: int) -> Specification:
    """What the tortured model learns."""
    return published_model(
        [Nominal(f"x{k}", VALUES) for k in range(ATTRIBUTES)],
        CLASSES,
        alpha=ALPHA,
        budget=budget,
        min_instances=MIN_INSTANCES,
        strategy="published",
    )


def forest() -> Specification:
    """What the second model learns."""
    algorithm = {"name": "forest", "base": "c45", "trees": TREES}
    return published_model(
        [Nominal(f"x{k}", VALUES) for k in range(ATTRIBUTES)], CLASSES, algorithm=algorithm
    )


def truth(row: np.ndarray) -> int:
    """The class of a row of codes, which labellers know."""
    return int((row[0] + 2 * row[1] * row[2]) % 3)


@dataclass
class Outcome:
    """What the load was told, to be held against what is stored."""

    pushed: list[str] = field(default_factory=list)
    answered: dict[str, tuple[str, int]] = field(default_factory=dict)  # query: labeller and sequence
    stated: list[tuple[str, str, str]] = field(default_factory=list)  # model, instance and comment
    classified: int = 0
    spent: bool = False  # no answer is wanted any more
    kills: Counter[str] = field(default_factory=Counter)
    calm: int = 0  # kills that came when all that clients do had gone on since the kill before
    wrong: list[str] = field(default_factory=list)


class Torture:
    """One server, its load, and its killer.

    Parameters
    ----------
    folder : where the store is.
    seed : of rows and of kills.
    budget : of the model.
    """

    targets: tuple[str, ...] = TARGETS

    def __init__(self, folder: Path, seed: int = 0, budget: int = 1000) -> None:
        self.folder = folder
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
            client.create_model(MODEL, specification(budget))
            client.create_model(FOREST, forest())

    def begin(self) -> None:
        """Start what is tortured."""
        self.serving = Serving(self.folder)
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
                for model in (MODEL, FOREST):
                    client.wait_grown(model, timeout_s=SETTLE_S)
                self._check(client)
                self._check_forest(client)
        finally:
            self.end()
        self._back_up()
        assert verify_store(self.url) == []
        return self.outcome

    def _plan(self, kills: int) -> list[tuple[str, bool]]:
        """What is killed, and whether after progress or perhaps while processes still start: each as often."""
        kinds = [(target, calm) for target in self.targets for calm in (True, False)]
        plan = (kinds * (kills // len(kinds) + 1))[:kills]
        return [plan[k] for k in self.rng.permutation(kills)]

    def _work(self, work: Callable[[Client], None], address: str) -> None:
        with Client(address, outage_s=OUTAGE_S) as client:
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
        client.push(MODEL, rows, labels, ids)
        self.outcome.pushed += ids
        client.push(FOREST, rows, labels, ids)

    def _source_label(self, row: np.ndarray) -> Any:
        known = CLASSES[truth(row)]
        kind = self.rng.integers(0, 4)
        if kind == 0:
            return known
        if kind == 1:
            return {known, CLASSES[(truth(row) + 1) % 3]}
        return None

    def _label(self, labeller: str) -> Callable[[Client], None]:
        def work(client: Client) -> None:
            lease = client.lease(MODEL, labeller, lease_s=5, wait_s=0.5)
            self.outcome.spent |= lease.idle == "budget_spent"
            for query in lease.queries:
                row = np.array([VALUES.index(str(query.values[f"x{k}"])) for k in range(ATTRIBUTES)])
                try:
                    report = client.answer(query, CLASSES[truth(row)])
                except FailedPrecondition:
                    continue  # the lease ended while the server was away, and somebody else has it
                self.outcome.answered[query.name] = (labeller, report.committed_sequence)

        return work

    def _state(self, client: Client) -> None:
        """Say unasked of a row that was pushed what eve knows."""
        if not self._stop.wait(STATE_S) and len(self.outcome.pushed) > BATCH_ROWS:
            k = next(self._statements)
            name = self.outcome.pushed[k * k % (len(self.outcome.pushed) - BATCH_ROWS)]  # both models have it
            known, comment = truth(self._rows[name]), f"no. {k}"
            label = {CLASSES[known], CLASSES[(known + k) % 3]}
            for model in (MODEL, FOREST):
                statement = Statement(name, label, reliability=1 - k % 1000 / 2000, comment=comment)
                if client.state(model, [statement], labeller="eve").stored:
                    self.outcome.stated.append((model, name, comment))

    def _classify(self, client: Client) -> None:
        codes = self.rng.integers(0, len(VALUES), (2, ATTRIBUTES))
        try:
            client.classify(MODEL, [[VALUES[code] for code in row] for row in codes])
        except FailedPrecondition:
            return  # no tree yet
        self.outcome.classified += 1
        time.sleep(0.01)

    def _wait_for_progress(self) -> None:
        """Until rows were pushed, rows were classified and, while the budget lasts, an answer was accepted."""
        told = self.outcome

        def reached() -> list[int]:
            done = [len(told.pushed), told.classified, len(told.stated)]
            return done if told.spent else [*done, len(told.answered)]

        before = [len(told.pushed), told.classified, len(told.stated), len(told.answered)]
        self._wait(
            lambda: all(new > old for new, old in zip(reached(), before, strict=False)), "nothing goes on"
        )
        told.calm += 1

    def _wait(self, until: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + PROGRESS_S
        while not until():
            assert self.outcome.wrong == []
            assert time.monotonic() < deadline, f"{what} any more after {self.outcome.kills}"
            time.sleep(0.01)

    def _kill(self, target: str) -> None:
        if target == "grower":
            server = self.serving.process.pid
            self._wait(lambda: children(server), "there is no grower")
            for pid in children(server):
                os.kill(pid, signal.SIGKILL)
        elif target == "learner":
            self._wait(self._learners, "no learner is there")
            for pid in self._learners():
                with contextlib.suppress(ProcessLookupError):  # it has ended by itself
                    os.kill(pid, signal.SIGKILL)
        else:
            self.serving.kill()
            self.serving = Serving(self.folder, self.serving.port)
        self.outcome.kills[target] += 1
        self._back_up()

    def _learners(self) -> list[int]:
        """Processes of the grower that learn."""
        try:
            return [pid for grower in children(self.serving.process.pid) for pid in children(grower)]
        except FileNotFoundError:  # a grower that has just ended
            return []

    def _back_up(self) -> None:
        """Copy the store while all goes on; the copy must check clean and come back as a store that does."""
        copy, restored = self.folder / "copy.db", self.folder / "restored.db"
        back_up(self.url, copy, force=True)
        restore_backup(copy, file_url(restored), force=True)
        assert verify_store(file_url(restored)) == []

    def _check(self, client: Client) -> None:
        told = self.outcome
        assert told.wrong == []
        instances = list(client.instances(MODEL))
        ids = Counter(instance.id for instance in instances)
        assert max(ids.values()) == 1, "a row is stored twice"
        assert set(told.pushed) <= set(ids), "an acknowledged row is gone"
        said = {answer.number: answer for answer in client.answers(MODEL) if answer.kind == "answered"}
        for name, (labeller, sequence) in told.answered.items():
            assert said[sequence].labeller == labeller, f"{name}: the answer {sequence} is not there"
        assert len({sequence for _, sequence in told.answered.values()}) == len(told.answered)
        model = client.get_model(MODEL)
        assert len(said) == model.queries_answered <= self.budget
        assert max(Counter(answer.instance for answer in said.values()).values(), default=0) <= 1
        self._check_statements(client)
        self._check_tree(client, instances)

    def _check_statements(self, client: Client) -> None:
        for model in (MODEL, FOREST):
            found = [answer for answer in client.answers(model) if answer.kind == "stated"]
            there = Counter((answer.instance, answer.comment) for answer in found)
            assert max(there.values(), default=0) <= 1, "a statement is stored twice"
            mine = {(name, comment) for of, name, comment in self.outcome.stated if of == model}
            assert mine <= set(there), "an acknowledged statement is gone"

    def _check_tree(self, client: Client, instances: list[Any]) -> None:
        values = np.array([[VALUES.index(i.values[f"x{k}"]) for k in range(ATTRIBUTES)] for i in instances])
        contours = np.array([instance.contour for instance in instances])
        attributes = tuple(Nominal(f"x{k}", VALUES) for k in range(ATTRIBUTES))
        spec = ModelSpecification(attributes, Frame(CLASSES))
        codes = Encoder(spec.attributes, ((),) * ATTRIBUTES).codes(values.astype(float))
        grown = induce(
            codes, [len(VALUES) + 1] * ATTRIBUTES, contours, alpha=ALPHA, min_instances=MIN_INSTANCES
        )
        wanted = list(grown.tree.preorder())
        tree = client.tree(MODEL)
        assert len(tree.nodes) == len(wanted)
        for node, (other, parent, _) in zip(tree.nodes, wanted, strict=True):
            assert node.parent == (None if parent < 0 else parent)
            assert node.attribute == (None if other.attribute is None else f"x{other.attribute}")
            assert (node.class_name, node.count) == (CLASSES[other.klass], other.count)
            np.testing.assert_allclose(node.theta, other.theta, atol=1e-9)
            np.testing.assert_allclose(node.belief, other.belief, atol=1e-6)

    def _check_forest(self, client: Client) -> None:
        instances = list(client.instances(FOREST))
        ids = [instance.id for instance in instances]
        assert len(set(ids)) == len(ids)
        assert set(self.outcome.pushed[:-BATCH_ROWS]) <= set(ids), "an acknowledged row is gone"
        rows = [[i.values[f"x{k}"] for k in range(ATTRIBUTES)] for i in instances]
        values = np.array([[VALUES.index(str(value)) for value in row] for row in rows], dtype=float)
        attributes = tuple(Nominal(f"x{k}", VALUES) for k in range(ATTRIBUTES))
        contours = np.array([instance.contour for instance in instances])
        learned = fit(Forest(C45(), trees=TREES), Table.of_contours(values, attributes, contours))
        some = slice(0, 200)
        served = client.classify(FOREST, rows[some])
        assert served.theta.tolist() == learned.predict(values[some]).theta.tolist()


def show(outcome: Outcome) -> None:
    """Say now and then how far it is."""
    if outcome.kills.total() % 20 == 0:
        told = f"{len(outcome.pushed):,} rows, {len(outcome.answered):,} answers, {outcome.classified:,} classified"
        print(f"{outcome.kills.total()} kills: {told}", flush=True)


def main() -> None:
    """Torture for as many kills as the first argument says, and say what was reached."""
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    prepare()  # compiled once, kernels are loaded by every grower
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        outcome = Torture(Path(folder), seed=kills).run(kills, show)
    tell(outcome, time.monotonic() - started)


def tell(outcome: Outcome, seconds: float) -> None:
    """Say what was reached."""
    killed = outcome.kills
    print(f"{killed.total()} kills in {seconds:.0f} s: {dict(killed)}, {outcome.calm} of them after progress")
    print(
        f"{len(outcome.pushed):,} rows, {len(outcome.answered):,} answers and {len(outcome.stated):,} statements "
        f"acknowledged, all there once; "
        f"{outcome.classified:,} rows classified meanwhile; the tree is that of batch induction"
    )


if __name__ == "__main__":
    main()
