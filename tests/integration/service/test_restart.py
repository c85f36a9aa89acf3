"""The server is stopped or killed at any moment and started again: nothing acknowledged is missing, and the tree
is the one that would have grown anyway.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from integration.client.serving import Serving
from integration.service.play import answered, assert_same_queries, assert_same_tree, settle
from integration.service.problems import Problem, doubter, iris

from quercus.client import Client, QuercusError, Query

MODEL = "m"
pytestmark = pytest.mark.slow
PUSHES_AT_MOST = 5
WAIT_S = 60.0
STOPS: dict[str, Callable[[Serving], object]] = {
    "SIGTERM": lambda serving: serving.stop(signal.SIGTERM),
    "SIGKILL": lambda serving: serving.kill(),
}


class Mortal:
    """A server on one port and one store, which may be stopped and started again."""

    def __init__(self, folder: Path, stop: Callable[[Serving], object], store: str) -> None:
        self._folder, self._stop, self._store = folder, stop, store
        self.serving = Serving(folder, store=store)
        self.address = self.serving.address

    def restart(self) -> None:
        self._stop(self.serving)
        self.serving = Serving(self._folder, self.serving_port, store=self._store)

    @property
    def serving_port(self) -> int:
        return int(self.address.rpartition(":")[2])


@pytest.fixture(
    params=[
        pytest.param(("SIGTERM", "sqlite"), id="SIGTERM-sqlite", marks=pytest.mark.release),
        pytest.param(("SIGKILL", "postgresql"), id="SIGKILL-postgresql"),
    ]
)
def mortal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Mortal]:
    stop, database = request.param
    store = request.getfixturevalue("postgres_url") if database == "postgresql" else ""
    mortal = Mortal(tmp_path, STOPS[stop], store)
    yield mortal
    mortal.serving.kill()


def push_through(client: Client, problem: Problem, mortal: Mortal, restart_after: int) -> None:
    """Push while the server is restarted after so many rows are acknowledged; push again what failed."""
    due = threading.Event()

    def restart() -> None:
        if due.wait(WAIT_S):
            mortal.restart()

    def heard(report: object) -> None:
        if report.rows >= restart_after:  # type: ignore[attr-defined]
            due.set()

    restarting = threading.Thread(target=restart)
    restarting.start()
    acknowledged = 0
    try:
        for _ in range(PUSHES_AT_MOST):
            try:
                report = client.push(
                    MODEL,
                    problem.rows,
                    problem.labels,
                    problem.ids,
                    batch_rows=3,
                    window=2,
                    on_progress=heard,
                )
            except QuercusError as error:
                if error.report is not None:  # None: the server was away already when the push began
                    acknowledged = max(acknowledged, error.report.rows)  # type: ignore[attr-defined]
                restarting.join(WAIT_S)
            else:
                assert report.rows == len(problem.rows)
                assert report.known >= acknowledged
                return
    finally:
        due.set()
        restarting.join(WAIT_S)
    raise AssertionError(f"not pushed in {PUSHES_AT_MOST} attempts")


def answer_through(client: Client, problem: Problem, mortal: Mortal, restart_after: int) -> list[Query]:
    """Answer every query while the server is restarted after so many acknowledged answers."""
    oracle = doubter(problem)
    asked = list(answered(client, MODEL, oracle, limit=restart_after))
    assert len(asked) == restart_after
    mortal.restart()
    client.wait_ready(WAIT_S)
    asked += answered(client, MODEL, oracle)
    return asked


def test_pushes_and_answers_survive(mortal: Mortal) -> None:
    problem = iris()
    oracle = doubter(problem)
    with Client(mortal.address) as client:
        client.create_model(MODEL, problem.specification)
        push_through(client, problem, mortal, restart_after=30)
        stored = [instance.id for instance in client.instances(MODEL)]
        assert stored == problem.ids  # all, in order, none twice
        asked = answer_through(client, problem, mortal, restart_after=3)
        offline = problem.induce(oracle)
        assert_same_queries(asked, offline.queries, problem)
        grown = client.wait_grown(MODEL)
        assert grown.queries_answered == problem.specification.budget
        assert_same_tree(client.tree(MODEL), offline.tree, problem)
        histories = {instance.id: instance.history for instance in client.instances(MODEL)}
        for query in asked:
            (said,) = histories[query.instance][1:]
            assert said.refused == (oracle(int(query.instance.removeprefix("row-"))) is None)


def test_growth_goes_on_where_it_stopped_and_a_query_stays_in_hand(mortal: Mortal) -> None:
    """Stopped when rows are committed and the tree is perhaps not: after the restart it is, and it is the same.

    Who holds a query when the server goes away still holds it when it is back, and nobody else gets it.
    """
    problem = iris()
    oracle = doubter(problem)
    assert problem.labels is not None
    first, second = np.array_split(np.arange(len(problem.rows)), 2)
    with Client(mortal.address) as client:

        def push(part: np.ndarray) -> int:
            ids = [problem.ids[i] for i in part]
            return client.push(MODEL, problem.rows[part], problem.labels[part], ids).committed_sequence

        client.create_model(MODEL, problem.specification)
        committed = push(first)
        mortal.restart()
        client.wait_ready(WAIT_S)
        grown = client.wait_grown(MODEL, committed)
        assert grown.sequence_grown == committed == grown.instance_count
        committed = push(second)
        (held,) = client.lease(MODEL, "ann", lease_s=600, wait_s=30).queries
        mortal.restart()
        client.wait_ready(WAIT_S)
        grown = client.wait_grown(MODEL, committed)
        assert grown.sequence_grown == committed == grown.instance_count
        assert_same_tree(client.tree(MODEL), problem.induce(None).tree, problem)
        (other,) = client.lease(MODEL, "bob", lease_s=600, wait_s=30).queries
        assert other.instance != held.instance
        settle(client, held, oracle)
        settle(client, other, oracle)
        settled = {query.instance for query in client.list_queries(MODEL, ["answered", "refused"])}
        assert settled == {held.instance, other.instance}
