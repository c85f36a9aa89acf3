"""Logs that the last version with another schema exported: imported here, they give the same histories and trees."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from integration.client.serving import Serving
from support.exported import said_of_model

from quercus.client import Client
from quercus.labelling.policy import Combination
from quercus.server.transfer.stored_contents import StoredModel
from quercus.storage import Store, file_url
from quercus.storage.admin.verify import verify_store

EXPORTS = Path(__file__).with_name("exports")
MODELS = sorted(path.name.removesuffix(".jsonl.gz") for path in EXPORTS.glob("*.jsonl.gz"))


@pytest.mark.parametrize("backend", ["sqlite", pytest.param("postgresql", marks=pytest.mark.release)])
def test_an_exported_model_has_the_same_history_and_the_same_trees(
    backend: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = file_url(tmp_path / "store.db") if backend == "sqlite" else request.getfixturevalue("postgres_url")
    with Store.open(url) as store:
        for name in MODELS:
            lines = _text_of(f"{name}.jsonl.gz").splitlines()
            assert store.load(lines, meaning=StoredModel()) == (name, len(lines) - 1)
            assert list(map(json.loads, store.dump(name))) == _by_now(lines)
    serving = Serving(tmp_path, store=url)
    try:
        with Client(serving.address) as client:
            for name in MODELS:
                wanted = json.loads(_text_of(f"{name}.said.json.gz"))
                wanted["policy"] |= {"labellers": [], "combination": "dempster", "gold_share": 0.0}
                assert said_of_model(client, name) == wanted, name
    finally:
        assert serving.stop() == 0
    assert verify_store(url, StoredModel) == []


def _by_now(lines: list[str]) -> list[dict[str, Any]]:
    """Return an export with the fields that models have had since, as a model of before has them."""
    head, *events = map(json.loads, lines)
    head["policy"] |= {"labellers": [], "combination": Combination.DEMPSTER, "gold_share": 0.0}
    return [head | {"shapes": []}, *events]


def _text_of(name: str) -> str:
    return gzip.decompress((EXPORTS / name).read_bytes()).decode()
