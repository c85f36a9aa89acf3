"""Rows of a deleted model go in the background, and after a kill by the next server."""

import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from support.waiting import until

from quercus.v1 import model_pb2

DEADLINE_S = 60.0


def left(path: Path) -> tuple[int, int]:
    """Models that are marked as deleted, and rows of the log."""
    with closing(sqlite3.connect(path)) as raw:
        (found,) = raw.execute("SELECT (SELECT sum(deleted) FROM model), (SELECT count(*) FROM log)")
        return found


def test_a_killed_server_leaves_the_rest_to_the_next(
    start_child: Callable[..., Any], tools: Any, tmp_path: Path
) -> None:
    path = tmp_path / "store.db"
    first = start_child(path, grower=False)
    for name in ("m", "kept"):
        first.api.create(name, budget=0)
        for batch in "ab":
            ids = [f"{batch}{row}" for row in range(10_000)]
            first.api.push(tools.batch(name, np.zeros((10_000, 2)), ids=ids))
    first.api.models.DeleteModel(model_pb2.DeleteModelRequest(name="models/m"), timeout=DEADLINE_S)
    first.finish(signal.SIGKILL)
    marked, rows = left(path)
    assert marked == 1
    assert rows > 20_000
    second = start_child(path, grower=False)
    second.api.create("m", budget=0)
    second.api.push(tools.batch("m", np.zeros((5, 2))))
    until(lambda: left(path) == (0, 20_005))
    assert (second.api.get("m").instance_count, second.api.get("kept").instance_count) == (5, 20_000)
