"""The processes of the tests say what they print line by line."""

import time

from support.forked import ForkedProcess

WAIT_S = 30.0


def test_lines_that_come_together_are_read_one_by_one() -> None:
    process = ForkedProcess(exec, "print('one\\ntwo', flush=True); import time; time.sleep(60)")
    try:
        assert process.readline(WAIT_S) == "one\n"
        began = time.monotonic()
        assert process.readline(WAIT_S) == "two\n"
        assert time.monotonic() - began < WAIT_S / 2
    finally:
        process.kill()
        process.wait(WAIT_S)


def test_a_process_that_ends_is_not_waited_for() -> None:
    process = ForkedProcess(exec, "print('last', end='', flush=True)")
    assert [process.readline(WAIT_S) for _ in range(2)] == ["last", ""]
    assert process.wait(WAIT_S) == 0
    assert (
        ForkedProcess(exec, "print('one\\ntwo'); print('three')").communicate(WAIT_S)[0]
        == "one\ntwo\nthree\n"
    )
