"""Faults around a server, in short; ``make faults`` has them all, and longer."""

from pathlib import Path

import pytest
from support import faults

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.mark.parametrize("learner", ["active-forest", pytest.param("abc45", marks=pytest.mark.release)])
def test_a_stopped_grower_costs_nothing_but_time(tmp_path: Path, learner: str) -> None:
    trial = faults.grower_stopped(tmp_path, learner, rows=100, silent=False)
    assert trial.saw == ["push, answer: OK", "classify: OK", "after SIGCONT: grown to the end"]


@pytest.mark.release
def test_readers_that_do_not_read_cost_no_memory(tmp_path: Path) -> None:
    faults.slow_readers(tmp_path, pushes=100)


def test_a_disk_that_fails_keeps_what_was_acknowledged(tmp_path: Path) -> None:
    faults.read_only(tmp_path)


@pytest.mark.release
def test_an_answer_after_the_lease_does_not_take_what_another_holds(tmp_path: Path) -> None:
    (saw,) = faults.late_answer(tmp_path).saw
    assert saw.startswith("late answer: FailedPrecondition")


@pytest.mark.release
def test_many_idle_streams_and_many_pushes_at_once(tmp_path: Path) -> None:
    for name, strike, count in (("idle", faults.idle_streams, 100), ("queued", faults.queued_pushes, 500)):
        folder = tmp_path / name
        folder.mkdir()
        strike(folder, count=count)
