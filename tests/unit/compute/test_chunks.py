"""The division of tasks into chunks."""

import pytest

from quercus.compute import ExecutorError, open_executor
from quercus.compute.chunks import MOST_LOSSES, ChunkPlan, RemoteFunction, do_chunk


def test_every_task_is_given_out_once_in_order():
    plan = ChunkPlan(5_000)
    given = []
    while (chunk := plan.next_chunk(3)) is not None:
        given += range(chunk.first, chunk.first + chunk.count)
        plan.record_time(chunk.count, 0.001 * chunk.count)
    assert given == list(range(5_000))


def test_chunks_of_short_tasks_last_a_tenth_of_a_second_and_of_long_ones_are_single():
    plan = ChunkPlan(100_000)
    assert plan.next_chunk(2).count == 1
    plan.record_time(1, 0.002)
    assert plan.next_chunk(2).count == 50
    plan.record_time(50, 50 * 0.5)
    assert plan.next_chunk(2).count == 1


def test_no_worker_gets_more_than_its_share_of_the_rest():
    plan = ChunkPlan(9)
    plan.record_time(1, 1e-9)
    counts = []
    while (chunk := plan.next_chunk(4)) is not None:
        counts.append(chunk.count)
    assert counts == [2, 1, 1, 1, 1, 1, 1, 1]


def test_a_lost_chunk_comes_again_and_not_for_ever():
    plan = ChunkPlan(2)
    chunk = plan.next_chunk(1)
    for _ in range(MOST_LOSSES):
        plan.return_lost(chunk, "processes:2", EOFError("gone"))
        chunk = plan.next_chunk(1)
        assert (chunk.first, chunk.count) == (0, 1)
    with pytest.raises(
        ExecutorError, match=r"processes:2: tasks 0 to 0 lost their worker 4 times, at most 3 .*gone"
    ):
        plan.return_lost(chunk, "processes:2", EOFError("gone"))
    assert plan.next_chunk(1).first == 1


def test_a_worker_of_another_version_refuses():
    with pytest.raises(ExecutorError, match=r"a worker runs Quercus .*; the tasks come from Quercus 9"):
        do_chunk(RemoteFunction("", b"", ("Quercus 9",)), b"")


def test_results_come_in_order_and_as_they_are_asked_for():
    with open_executor() as here:
        done = []
        results = here.map(lambda a, b: done.append(a) or a * b, [1, 2, 3], [4, 5, 6, 7])
        assert not done
        assert next(results) == 4
        assert done == [1]
        assert list(results) == [10, 18]
