"""Helpers of the tests of archives."""

from pathlib import Path
from typing import Any

from contract.storage.workers import AsBytes

from quercus.storage import Store
from quercus.storage.archive.manifest import Manifest, read_manifest
from quercus.storage.archive.rebuilding import rebuild_models

EVENTS = 10
"""Events of the model of the fixture `varied`."""
CALLS = 7
"""Parts of its log that are never split: the last 4 events come from one call."""


def folder_of(target: Path) -> Path:
    (folder,) = target.iterdir()
    return folder


def manifest_of(target: Path) -> Manifest:
    found = read_manifest(folder_of(target))
    assert found is not None
    return found


def rebuilt(store: Store, target: Path, **given: Any) -> list[tuple[str, bool]]:
    return [(each.name, each.was_there) for each in rebuild_models(store, target, AsBytes, **given)]


def contents(store: Store, name: str) -> dict[str, Any]:
    record = store.get_model(name)
    fields = (
        "initial_specification", "specification", "budget", "created_at", "sequence_committed", "instance_count",
        "queries_answered", "queries_refused", "conflicts",
    )  # fmt: skip
    return {field: getattr(record, field) for field in fields} | {
        "events": store.read_events(name, 0, 1000),
        "vocabulary": store.vocabulary(name),
        "policy": store.policy(name),
        "displays": store.displays(name, range(1, 100)),
    }
