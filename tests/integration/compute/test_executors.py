"""Wherever tasks run, the results are the same to the bit, and what is lost is done again or missed aloud."""

import logging
import multiprocessing
import os
import signal
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from distributed.client import FutureCancelledError
from support.dask_cluster import DaskCluster
from support.tasks import (
    draw,
    end_own_process,
    process_of,
    raise_stubborn,
    refuse_seven,
    say_and_wait,
)

from quercus.belief.errors import InvalidInput
from quercus.compute import ExecutorError, open_executor
from quercus.specification.attributes import Nominal, Numeric
from quercus.trees import BeliefEntropy, Forest, Table, TotalUncertainty, fit

SEEDS = np.random.SeedSequence(5).spawn(40)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    found = DaskCluster(tmp_path_factory.mktemp("dask"), 2)
    yield found
    found.stop()


@pytest.fixture
def trusted(cluster):
    """This process is configured as the cluster is."""
    with cluster.trusted():
        yield cluster


@pytest.fixture(params=["processes:2", "dask"])
def name(request):
    return request.getfixturevalue("trusted").name if request.param == "dask" else request.param


def table():
    rng = np.random.default_rng(3)
    values = np.column_stack([rng.normal(size=(40, 2)), rng.integers(3, size=40)])
    values[rng.random(values.shape) < 0.1] = np.nan
    contours = np.where(rng.random((40, 3)) < 0.3, rng.random((40, 3)), 1.0)
    contours[np.arange(40), (values[:, 0] > 0).astype(int)] = 1.0
    attributes = (Numeric("x"), Numeric("y"), Nominal("colour", ("red", "green", "blue")))
    return Table.of_contours(values, attributes, contours)


ALGORITHMS = [
    Forest(BeliefEntropy(), trees=3, seed=2),
    Forest(TotalUncertainty(folds=2, max_depth=2), trees=2, vote="mass", seed=2),
    TotalUncertainty(folds=3, max_depth=2, seed=1),
]


def test_learners_learn_the_same_everywhere(name):
    rows = table()
    with open_executor(name) as there, open_executor("local") as here:
        for algorithm in ALGORITHMS:
            plain, same = (fit(algorithm, rows, executor=executor) for executor in (None, there))
            assert plain.trees == fit(algorithm, rows, executor=here).trees == same.trees
            at, to = (model.predict(rows.values) for model in (plain, same))
            assert at.theta.tobytes() == to.theta.tobytes()


def test_seeds_belong_to_tasks_and_workers_share_them(name):
    with open_executor(name) as there, open_executor() as here:
        mine, others = ([*zip(*executor.map(draw, SEEDS), strict=True)] for executor in (here, there))
        assert np.array(mine[0]).tobytes() == np.array(others[0]).tobytes()
        assert set(mine[1]) == {os.getpid()}
        assert os.getpid() not in others[1]
        assert len(set(there.map(process_of, range(4)))) == 2


def test_a_killed_worker_is_replaced_and_its_tasks_are_done_again(name, tmp_path, request):
    with open_executor(name) as there:
        assert list(there.map(partial(end_own_process, tmp_path), range(30))) == [i**2 for i in range(30)]
    assert len(list(tmp_path.iterdir())) == 1  # it did die
    if name != "processes:2":
        cluster = request.getfixturevalue("cluster")
        cluster.workers.append(cluster.add_worker())


@pytest.fixture
def others():
    """Processes of other tests, such as the shared server."""
    return set(multiprocessing.active_children())


def test_a_task_that_always_kills_its_worker_ends_the_work(tmp_path, others):
    with (
        open_executor("processes:2") as there,
        pytest.raises(ExecutorError, match=r"lost their worker 4 times"),
    ):
        list(there.map(partial(end_own_process, tmp_path, times=99), range(6)))
    assert set(multiprocessing.active_children()) <= others


def test_an_error_comes_in_its_place(name):
    with open_executor(name) as there:
        seen = []
        with pytest.raises(InvalidInput, match="number: is 7, must be another") as caught:
            seen.extend(there.map(refuse_seven, range(40)))
        assert not seen or seen == list(range(7))
        assert any("refuse_seven" in note for note in caught.value.__notes__)
        results = there.map(refuse_seven, range(40))
        assert [next(results) for _ in range(7)] == list(range(7))
        results.close()
        with pytest.raises(RuntimeError, match="StubbornError: 0 and more"):
            list(there.map(raise_stubborn, range(3)))
        assert list(there.map(abs, [-1])) == [1]  # it goes on


def test_processes_are_gone_when_work_is_broken_off(tmp_path, others):
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt), open_executor("processes:2") as there:
        _map_until_interrupted(there, tmp_path)
    assert time.monotonic() - began < 50
    assert set(multiprocessing.active_children()) <= others


def test_who_ends_processes_ends_none_of_another(tmp_path):
    """Both began before the other, which an executor or anybody else of this process may be."""
    context = multiprocessing.get_context("spawn")
    ending = open_executor("processes:1")
    assert os.getpid() not in ending.map(process_of, range(1))
    with open_executor("processes:1") as there:
        before = set(there.map(process_of, range(1)))
        stranger = context.Process(target=say_and_wait, args=(tmp_path, 0))
        stranger.start()
        mine = {child.pid for child in multiprocessing.active_children()}
        ending.close(at_once=True)
        assert len(mine - {child.pid for child in multiprocessing.active_children()}) == 1
        assert set(there.map(process_of, range(1))) == before
        assert stranger.is_alive()
        (tmp_path / "end").touch()
        stranger.join(60)
        assert stranger.exitcode == 0


def _map_until_interrupted(executor, folder: Path) -> None:
    threading.Thread(target=_interrupt_when, args=(folder / "0",), daemon=True).start()
    list(executor.map(partial(say_and_wait, folder), range(4)))


def _interrupt_when(path: Path) -> None:
    while not path.exists():
        time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGINT)


def test_a_cancelled_task_of_a_lost_worker_logs_no_stack_trace(trusted, caplog):
    """Its executor does it again. Other faults of the event loop are logged, and all of them once it is closed."""
    log = logging.getLogger("tornado.application")

    def logged(error: BaseException) -> bool:
        caplog.clear()
        log.error("Exception in callback", exc_info=error)
        return bool(caplog.records)

    with open_executor(trusted.name):
        assert not logged(FutureCancelledError("call", "worker lost"))
        assert logged(OSError("another"))
    assert logged(FutureCancelledError("call", "worker lost"))


def test_a_client_without_certificate_gets_no_work_done(cluster, monkeypatch):
    monkeypatch.setattr("quercus.compute.dask_cluster.CONNECT_S", 2.0)
    with pytest.raises(ExecutorError, match=r"no scheduler answers at tcp://127.0.0.1:\d+ within 2 s"):
        open_executor(cluster.name)


@pytest.mark.parametrize(
    ("sign", "words"), [(signal.SIGSTOP, "has not answered for 6 s"), (signal.SIGKILL, "is lost")]
)
def test_a_lost_scheduler_is_an_error_soon(trusted, tmp_path, sign, words):
    """The last tests of the cluster."""
    ended = []

    def end() -> None:
        while not any(tmp_path.iterdir()):
            time.sleep(0.05)
        ended.append(time.monotonic())
        trusted.scheduler.send_signal(sign)

    watch = threading.Thread(target=end, daemon=True)
    try:
        with open_executor(trusted.name) as there:
            watch.start()
            with pytest.raises(
                ExecutorError, match=rf"executor dask://127\.0\.0\.1:\d+: the scheduler {words}"
            ):
                list(there.map(partial(say_and_wait, tmp_path), range(4)))
        assert time.monotonic() - ended[0] < 50  # it has closed as well; ten on a machine at rest
    finally:
        (tmp_path / "end").touch()
        trusted.scheduler.send_signal(signal.SIGCONT)
