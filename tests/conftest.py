"""Settings of every test run."""

import gc
import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from integration.client.serving import Serving
from support.postgres import TEMPLATE, Cluster, require_binaries

ROOT = Path(__file__).resolve().parent.parent
SEEDS, MORE_SEEDS = 2, 6
"""Number of seeds of a law on random problems that a change tests, and continuous integration; a release has all."""
EXAMPLES = int(os.environ.get("LAW_EXAMPLES", "20"))
"""Number of cases that Hypothesis tries of a law; `make laws N=200` tries more."""
OTHER_PROGRAMS = tuple(
    ROOT / "tests" / folder
    for folder in ("acceptance", "browser", "integration/cluster", "integration/compute", "integration/console",
                   "integration/deploy", "integration/docs", "unit/experiments")
)  # fmt: skip
"""Tests of whole programs, browsers and clusters: slow ones, which `make test-all` has."""

QUICK = "not slow"
"""The tests that `make test` selects."""


def pytest_configure(config: pytest.Config) -> None:
    settings.register_profile("quercus", max_examples=EXAMPLES, deadline=None)  # a busy machine is slow
    settings.load_profile("quercus")
    # A run in the background (nohup, &) ignores Ctrl-C, and so would every process that a test interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage while all tests are imported, nor at them later: they stay to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no files whose tests are all slow, where only quick tests run."""
    return True if config.option.markexpr == QUICK and collection_path in OTHER_PROGRAMS else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put files with slow tests first, and call tests slow that need another program, repeat one, or try a release.

    With the slow files first no worker is left alone with one at the end.
    """
    others = {path for path in {item.path for item in items} if _starts(path)}
    for item in items:
        if item.path in others or _needs_postgres(item) or item.get_closest_marker("release"):
            item.add_marker(pytest.mark.slow)
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
    for item in items:
        seed = _parameters(item).get("seed")
        if isinstance(seed, int) and seed >= SEEDS:
            item.add_marker(pytest.mark.slow)
        if isinstance(seed, int) and seed >= MORE_SEEDS:
            item.add_marker(pytest.mark.release)


def _starts(path: Path) -> bool:
    """Return whether the tests of a file start other programs."""
    return any(path.is_relative_to(folder) for folder in OTHER_PROGRAMS)


def _parameters(item: pytest.Item) -> dict[str, object]:
    return item.callspec.params if hasattr(item, "callspec") else {}


def _needs_postgres(item: pytest.Item) -> bool:
    """Return whether a test needs a database server: by a fixture, or by a parameter that chooses it."""
    chosen = (value for value in _parameters(item).values() if isinstance(value, str))
    return "postgres" in getattr(item, "fixturenames", ()) or "postgresql" in chosen


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """One server for all tests that leave it running; each has models of its own.

    It lives as long as the run, idle for most of it, so it looks for changes less often than by default.
    """
    serving = Serving(tmp_path_factory.mktemp("shared"), poll_ms=50)
    yield serving
    assert serving.stop() == 0


@pytest.fixture(scope="session")
def postgres() -> Iterator[Cluster]:
    """A database server of PostgreSQL for all tests, with an empty store to be copied."""
    from quercus.storage import Store

    cluster = Cluster(require_binaries())
    try:
        cluster.execute(f"CREATE DATABASE {TEMPLATE} TEMPLATE template0")
        Store.open(cluster.url(TEMPLATE)).close()
        yield cluster
    finally:
        cluster.remove()


@pytest.fixture
def postgres_url(postgres: Cluster) -> Iterator[str]:
    """URL of an empty store in PostgreSQL."""
    database = postgres.create(TEMPLATE)
    yield postgres.url(database)
    postgres.drop(database)
