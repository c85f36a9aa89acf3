"""Names of executors, what a wrong one is told, and tasks in this process."""

import pytest

from quercus.belief.errors import InvalidInput
from quercus.estimators.executors import ExecutorError, _run_on_worker, open_executor, parse_executor


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("local", 1),
        ("processes:1", 1),
        ("processes:1024", 1024),
        ("dask://scheduler.example:8786", ("scheduler.example", 8786)),
        ("dask://[::1]:1", ("::1", 1)),
    ],
)
def test_places(name, place):
    assert parse_executor(name) == place


@pytest.mark.parametrize(
    "name",
    [
        "Local", "local ", "processes", "processes:", "processes:0", "processes:1025", "processes:-1", "processes:٣",
        "processes:2\n", "dask://host", "dask://host:0", "dask://host:65536", "dask://:8786", "dask://a b:1",
        "tcp://host:8786", "dask://host:8786/", "ray://host:1", "x" * 10_000,
    ],
)  # fmt: skip
def test_the_error_of_a_wrong_name_gives_form_and_bounds(name):
    with pytest.raises(InvalidInput) as caught, open_executor(name):
        pass
    assert caught.value.field == "executor"
    assert caught.value.reason.startswith(f"is {name!r}"[:50])
    assert caught.value.reason.endswith(
        "must be local, processes:N with N a whole number in [1, 1024], or dask://host:port with a port in [1, 65535]"
    )
    assert len(caught.value.reason) < 300


def test_an_empty_name():
    with pytest.raises(InvalidInput, match="executor: is '', must be text and not empty"):
        parse_executor("")


def test_another_machine_without_tls_is_refused():
    with (
        pytest.raises(
            InvalidInput,
            match=r"executor: is 'dask://192\.0\.2\.1:8786'; to another machine, .* TLS: set DASK",
        ),
        open_executor("dask://192.0.2.1:8786"),
    ):
        pass


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "localhost"])
def test_loopback_needs_no_tls_and_a_scheduler_that_is_not_there_is_missed_in_time(host, monkeypatch):
    monkeypatch.setattr("quercus.estimators.executors.CONNECT_S", 0.3)
    with (
        pytest.raises(ExecutorError, match=r"no scheduler answers at tcp://.*:9 within 0\.3 s"),
        open_executor(f"dask://{host}:9"),
    ):
        pass


def test_a_worker_of_another_version_refuses_before_it_reads_the_function():
    with pytest.raises(
        ExecutorError, match=r"a worker of the cluster runs Quercus .*; the tasks come from Quercus 9"
    ):
        _run_on_worker(("Quercus 9",), b"no pickle", ())


def test_results_come_in_order_and_as_they_are_asked_for():
    with open_executor() as here:
        done = []
        results = here.map(lambda a, b: done.append(a) or a * b, [1, 2, 3], [4, 5, 6, 7])
        assert not done
        assert next(results) == 4
        assert done == [1]
        assert list(results) == [10, 18]
