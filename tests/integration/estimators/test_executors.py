"""Wherever tasks run, the results are the same to the bit; lost work is done again, or ends with an error."""

import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from support.dask_cluster import DaskCluster
from support.processes import children
from support.tasks import (
    count_blas_threads,
    draw,
    end_own_process,
    is_mapped,
    process_of,
    raise_stubborn,
    refuse_seven,
    say_and_wait,
)
from support.waiting import until

from quercus.belief.errors import InvalidInput
from quercus.estimators.executors import ExecutorError, open_executor
from quercus.specification.attributes import Nominal, Numeric
from quercus.trees import BeliefEntropy, Forest, Table, TotalUncertainty, fit

TESTS = str(Path(__file__).parents[2])
SEEDS = np.random.SeedSequence(5).spawn(40)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    found = DaskCluster(tmp_path_factory.mktemp("dask"), 2, allowed_failures=1)
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


LEARNERS = [
    Forest(BeliefEntropy(), trees=3, seed=2),
    Forest(TotalUncertainty(folds=2, max_depth=2), trees=2, vote="mass", seed=2),
    TotalUncertainty(folds=3, max_depth=2, seed=1),
]


def test_learners_learn_the_same_everywhere(name):
    rows = table()
    with open_executor(name) as there, open_executor("local") as here:
        for learner in LEARNERS:
            plain, same = (fit(learner, rows, executor=executor) for executor in (None, there))
            assert plain.trees == fit(learner, rows, executor=here).trees == same.trees
            at, to = (model.predict(rows.values) for model in (plain, same))
            assert at.theta.tobytes() == to.theta.tobytes()


def test_seeds_belong_to_tasks_and_workers_share_them(name, tmp_path):
    with open_executor(name) as there, open_executor() as here:
        mine, others = ([*zip(*executor.map(draw, SEEDS), strict=True)] for executor in (here, there))
        assert np.array(mine[0]).tobytes() == np.array(others[0]).tobytes()
        assert set(mine[1]) == {os.getpid()}
        assert os.getpid() not in others[1]
        assert len(set(there.map(partial(process_of, tmp_path), range(4)))) == 2


def test_a_killed_worker_is_replaced_and_its_tasks_are_done_again(name, tmp_path, request):
    with open_executor(name) as there:
        assert list(there.map(partial(end_own_process, tmp_path), range(30))) == [i**2 for i in range(30)]
    assert len(list(tmp_path.iterdir())) == 1  # it did die
    if name != "processes:2":
        cluster = request.getfixturevalue("cluster")
        cluster.workers.append(cluster.add_worker())


def test_work_goes_on_when_all_workers_were_lost(tmp_path, monkeypatch):
    """The function of the tasks was lost with them."""
    monkeypatch.setattr("quercus.estimators.executors.NO_WORKER_S", 100.0)  # a busy machine starts one slowly
    (tmp_path / "dask").mkdir()
    cluster = DaskCluster(tmp_path / "dask", 2)  # a task may lose both of its workers, one after the other

    def replace() -> None:
        until((tmp_path / "0").exists)
        for worker in cluster.workers:
            worker.kill()
        cluster.workers.append(cluster.add_worker())
        (tmp_path / "end").touch()

    replacing = threading.Thread(target=replace, daemon=True)
    try:
        with cluster.trusted(), open_executor(cluster.name) as there:
            replacing.start()
            assert list(there.map(partial(say_and_wait, tmp_path), range(4))) == [None] * 4
    finally:
        replacing.join(100)
        cluster.stop()


def test_a_task_that_always_kills_its_worker_ends_the_work(name, tmp_path, request):
    words = "lost their worker 4 times"
    if name != "processes:2":
        cluster = request.getfixturevalue("cluster")
        cluster.workers.append(cluster.add_worker())  # a third one, which is left with the function
        words = "KilledWorker.* 2 .*die"
    with open_executor(name) as there, pytest.raises(ExecutorError, match=f"executor {name}: .*{words}"):
        list(there.map(partial(end_own_process, tmp_path, times=99), range(6)))
    if name != "processes:2":
        cluster.workers.append(cluster.add_worker())


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


def test_linear_algebra_has_one_thread(name):
    with open_executor(name) as there:
        assert list(there.map(count_blas_threads, range(2))) == [{1}, {1}]


def test_processes_share_large_rows():
    values = np.random.default_rng(0).normal(size=(45_000, 3))  # more than 1 MB
    attributes = tuple(Numeric(name) for name in "xyz")
    rows = Table.of_contours(values, attributes, np.eye(2)[(values[:, 0] > 0).astype(int)])
    forest = Forest(BeliefEntropy(max_depth=2), trees=2, seed=2)
    with open_executor("processes:2") as there:
        assert all(there.map(partial(is_mapped, rows.values), range(2)))
        assert fit(forest, rows).trees == fit(forest, rows, executor=there).trees


def test_processes_are_gone_when_work_is_broken_off(tmp_path):
    with open_executor("processes:2") as there:
        workers = set(there.map(partial(process_of, tmp_path), range(4)))
        with pytest.raises(KeyboardInterrupt):
            _map_until_interrupted(there, tmp_path)
    assert not workers & set(children(os.getpid()))


def _map_until_interrupted(executor, folder: Path) -> None:
    threading.Thread(target=_interrupt_when, args=(folder / "0",), daemon=True).start()
    list(executor.map(partial(say_and_wait, folder), range(4)))


def _interrupt_when(path: Path) -> None:
    until(path.exists)
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGINT])
def test_processes_end_with_the_one_that_started_them(sign, tmp_path):
    """Killed, or interrupted with them from the terminal, which shows one stack trace: that of the caller."""
    code = (
        f"import sys; sys.path.insert(0, {TESTS!r}); from support.tasks import lead; lead({str(tmp_path)!r})"
    )
    caller = subprocess.Popen(
        [sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    until(lambda: (tmp_path / "0").exists() and (tmp_path / "1").exists())
    workers = children(caller.pid)
    assert len(workers) >= 2
    if sign == signal.SIGKILL:
        caller.kill()
    else:
        os.killpg(caller.pid, sign)
    _, said = caller.communicate(timeout=60)
    assert said.count("Traceback") == (sign == signal.SIGINT)
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))


def test_a_client_without_certificate_gets_no_work_done(cluster, monkeypatch):
    monkeypatch.setattr("quercus.estimators.executors.CONNECT_S", 2.0)
    with (
        pytest.raises(ExecutorError, match=r"no scheduler answers at tcp://127.0.0.1:\d+ within 2 s"),
        open_executor(cluster.name),
    ):
        pass


@pytest.mark.parametrize(
    ("sign", "words"), [(signal.SIGSTOP, "has not answered for 6 s"), (signal.SIGKILL, "is lost")]
)
def test_a_lost_scheduler_is_an_error_soon(trusted, tmp_path, sign, words):
    """The last tests of the cluster."""
    ended = []

    def end() -> None:
        until(lambda: any(tmp_path.iterdir()))
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
