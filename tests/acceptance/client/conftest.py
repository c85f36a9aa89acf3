"""A live server for the command line, and files to push to it."""

import itertools
from pathlib import Path

import pytest
from integration.client.serving import CONTOURS_T, TABLE_T, Serving

_numbers = itertools.count()


@pytest.fixture(scope="session")
def server(shared_server: Serving) -> str:
    return shared_server.address


@pytest.fixture
def name() -> str:
    return f"cli-{next(_numbers)}"


@pytest.fixture
def table_t(tmp_path: Path) -> Path:
    """Table T of theory §3.7 with the true classes."""
    path = tmp_path / "t.csv"
    path.write_text(TABLE_T)
    return path


@pytest.fixture
def contours_t(tmp_path: Path) -> Path:
    path = tmp_path / "contours.csv"
    path.write_text(CONTOURS_T)
    return path
