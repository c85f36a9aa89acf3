"""Shared parts of the state machines over a store."""

from pathlib import Path

import pytest

from quercus.storage import Store


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """File of an empty store, to be copied: the schema is made once."""
    path = tmp_path_factory.mktemp("template") / "store.db"
    Store.open(f"sqlite:///{path}").close()
    return path
