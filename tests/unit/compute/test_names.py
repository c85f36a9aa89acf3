"""Names of executors: what they mean, and what a wrong one is told."""

import pytest

from quercus.belief.errors import InvalidInput
from quercus.compute import ExecutorError, ExecutorName, open_executor, parse_executor


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("local", ExecutorName("local")),
        ("processes:1", ExecutorName("processes", 1)),
        ("processes:1024", ExecutorName("processes", 1024)),
        ("dask://scheduler.example:8786", ExecutorName("dask", 0, "scheduler.example", 8786)),
        ("dask://[::1]:1", ExecutorName("dask", 0, "::1", 1)),
    ],
)
def test_parts(name, parts):
    assert parse_executor(name) == parts


@pytest.mark.parametrize(
    "name",
    [
        "Local", "local ", "processes", "processes:", "processes:0", "processes:1025", "processes:-1", "processes:٣",
        "processes:2\n", "dask://host", "dask://host:0", "dask://host:65536", "dask://:8786", "dask://a b:1",
        "tcp://host:8786", "dask://host:8786/", "ray://host:1", "x" * 10_000,
    ],
)  # fmt: skip
def test_the_error_of_a_wrong_name_gives_form_and_bounds(name):
    with pytest.raises(InvalidInput) as caught:
        open_executor(name)
    assert caught.value.field == "executor"
    assert caught.value.reason.startswith(f"is {name!r}"[:50])
    assert caught.value.reason.endswith(
        "must be local, processes:N with N a whole number in [1, 1024], or dask://host:port with a port in [1, 65535]"
    )
    assert len(caught.value.reason) < 300


def test_an_empty_name():
    with pytest.raises(InvalidInput, match="executor: is '', must be text and not empty"):
        open_executor("")


def test_another_machine_without_tls_is_refused():
    with pytest.raises(
        InvalidInput, match=r"executor: is 'dask://192\.0\.2\.1:8786', on another machine .* TLS: set DASK"
    ):
        open_executor("dask://192.0.2.1:8786")


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "localhost"])
def test_loopback_needs_no_tls_and_a_scheduler_that_is_not_there_is_missed_in_time(host, monkeypatch):
    monkeypatch.setattr("quercus.compute.dask_cluster.CONNECT_S", 0.3)
    with pytest.raises(ExecutorError, match=r"no scheduler answers at tcp://.*:9 within 0\.3 s"):
        open_executor(f"dask://{host}:9")
