"""Bounds of callers and of memory."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from quercus.server.gate.throttle import (
    BURST_S,
    MAX_CALLERS,
    CallRates,
    MemoryWatch,
    OpenStreams,
)
from quercus.server.machine import memory_of_machine, resident_bytes
from quercus.server.wire.errors import ResourceExhausted, to_failure


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def passed(rates: CallRates, caller: str = "ann", tries: int = 1000) -> int:
    """Return the number of calls that pass before one is refused."""
    for count in range(tries):
        try:
            rates.admit_call(caller)
        except ResourceExhausted:
            return count
    return tries


def test_a_caller_gets_its_rate_and_no_more_over_any_time() -> None:
    clock = Clock()
    rates = CallRates(10.0, clock)
    assert passed(rates) == 10 * BURST_S
    total = 0
    for _ in range(1000):
        clock.now += 0.01
        total += passed(rates)
    assert total == pytest.approx(100, abs=1)
    clock.now += 3600
    assert passed(rates) == 10 * BURST_S


def test_the_time_that_is_named_is_when_it_passes() -> None:
    clock = Clock()
    rates = CallRates(0.5, clock)
    assert passed(rates) == 1
    with pytest.raises(ResourceExhausted, match=r"ann makes more than 0\.5 calls a second") as caught:
        rates.admit_call("ann")
    assert caught.value.retry_s == pytest.approx(2.0)
    clock.now += 1.99
    assert passed(rates) == 0
    clock.now += 0.02
    assert passed(rates) == 1


def test_callers_do_not_pay_for_each_other_and_are_forgotten_in_time() -> None:
    clock = Clock()
    rates = CallRates(1.0, clock)
    assert (passed(rates, "ann"), passed(rates, "bob")) == (2, 2)
    for i in range(MAX_CALLERS):
        rates.admit_call(f"caller {i}")
    assert len(rates._buckets) == MAX_CALLERS
    assert passed(rates, "ann") == 2


def test_no_rate_means_no_bound() -> None:
    assert passed(CallRates(0.0)) == 1000


def test_streams_are_counted_while_they_are_open() -> None:
    streams = OpenStreams(2)
    three = [streams.count_stream(name) for name in ("ann", "ann", "bob")]
    for each in three:
        each.__enter__()
    with (
        pytest.raises(ResourceExhausted, match="max_streams: ann has 2 streams open"),
        streams.count_stream("ann"),
    ):
        pass
    for each in three:
        each.__exit__(None, None, None)
    with pytest.raises(ZeroDivisionError), streams.count_stream("ann"):
        _ = 1 / 0
    assert streams._open == {}


def test_memory_is_refused_above_the_bound_and_given_again_well_below_it() -> None:
    used = 0
    memory = MemoryWatch(1000, lambda: used)
    for used, full in ((999, False), (1001, True), (950, True), (899, False), (950, False)):
        memory.compare_memory()
        assert memory.is_full is full, used
    used = 2000
    memory.compare_memory()
    with pytest.raises(ResourceExhausted, match="max_memory_bytes") as caught:
        memory.check_memory()
    assert caught.value.retry_s == 1.0


def test_the_status_says_when_to_try_again() -> None:
    failure = to_failure(ResourceExhausted("too fast", 0.1234))
    assert failure is not None
    assert failure.code.name == "RESOURCE_EXHAUSTED"
    assert failure.message == "too fast; try again in 0.12 s"
    assert dict(failure.metadata)["grpc-retry-pushback-ms"] == "124"
    never = to_failure(ResourceExhausted("too many", None))
    assert never is not None
    assert "grpc-retry-pushback-ms" not in dict(never.metadata)


def test_this_machine_tells_its_memory() -> None:
    assert 10e6 < resident_bytes() < memory_of_machine()


TREES = {
    "a service of systemd": ("0::/system.slice/quercus.service", "system.slice/quercus.service/memory.max"),
    "its slice": ("0::/system.slice/quercus.service", "system.slice/memory.max"),
    "a container": ("0::/", "memory.max"),
    "a container that sees the names of its host": ("0::/../../docker/1", "memory.max"),
    "both versions at once": ("4:memory:/lab/one\n0::/", "memory/lab/memory.limit_in_bytes"),
    "a container of version 1": ("4:cpu,memory:/docker/1", "memory/memory.limit_in_bytes"),
}


@pytest.mark.parametrize("tree", TREES)
def test_the_bound_of_a_group_or_of_one_above_it_counts(tree: str, tmp_path: Path) -> None:
    groups, bounded = TREES[tree]
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(groups + "\n")
    assert memory_of_machine(tmp_path) == memory_of_machine()
    file = tmp_path / "sys/fs/cgroup" / bounded
    file.parent.mkdir(parents=True)
    for text, bound in (
        ("123456789", 123456789),
        ("max", memory_of_machine()),
        ("9" * 19, memory_of_machine()),
    ):
        file.write_text(text + "\n")
        assert memory_of_machine(tmp_path) == bound


def test_a_process_in_a_real_group_knows_its_bound() -> None:
    """The bound is that of the group above, as a slice has it."""
    above = Path("/sys/fs/cgroup/memory") / f"quercus-test-{os.getpid()}"
    code = "from quercus.server.machine import memory_of_machine as m; print(m())"
    joining = f"echo $$ > {above}/inner/cgroup.procs && exec {sys.executable} -c '{code}'"
    try:
        (above / "inner").mkdir(parents=True)
        (above / "memory.limit_in_bytes").write_text(str(2**28))
    except OSError as error:
        pytest.skip(f"no control group of memory can be made here: {error}")
    try:
        done = subprocess.run(["sh", "-c", joining], capture_output=True, text=True, check=True, timeout=60)
        assert int(done.stdout) == 2**28
    finally:
        (above / "inner").rmdir()
        above.rmdir()
