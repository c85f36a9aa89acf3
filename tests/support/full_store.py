"""A store with rows in every table and a value in nearly every column, and ways to damage it cell by cell."""

import random
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from quercus.client import (
    Client,
    LabellingPolicy,
    MediaItem,
    Nominal,
    Numeric,
    Query,
    Specification,
    Statement,
)
from quercus.server.gate import access
from quercus.server.growth.relearning import LearningTask, learn_model
from quercus.server.wire.reports import encode_report
from quercus.storage import AgendaEntry, Store
from quercus.storage.schema import metadata
from quercus.trees import AccuracyBlock
from quercus.v1 import query_pb2

ROWS = 40
CELLS = [(table.name, column.name) for table in metadata.sorted_tables for column in table.columns]


def fill(address: str, store: Store) -> None:
    """Fill the store of a running server without a grower: three models, every kind of label, answer and event."""
    with Client(address) as client:
        _fill_model(client, store, "grown", learner="c45")
        _fill_model(client, store, "forest", learner={"name": "forest", "trees": 3})
        _fill_model(client, store, "well", learner="averaging")
    tokens = store.access
    access.issue_token(tokens, "ann", ["labeller"], ["grown"], 3600.0)
    _, gone = access.issue_token(tokens, "bob", ["reader", "operator"], ["grown"], 3600.0)
    tokens.revoke_token(gone.id)


def _fill_model(client: Client, store: Store, name: str, **fields: Any) -> None:
    chance = np.random.default_rng(4)
    columns = [Nominal("X", ("a", "b")), Numeric("Y")]
    client.create_model(name, Specification(columns, ("o", "s", "x"), budget=20, **fields))
    rows = [{"X": "abc"[k % 3], "Y": None if k == 5 else float(chance.normal() + k % 2)} for k in range(ROWS)]
    several: dict[Any, float] = {frozenset({"o", "s"}): 0.7, frozenset({"o", "s", "x"}): 0.3}
    labels: list[Any] = ["o", None, {"o": 1.0, "s": 0.5, "x": 0.2}, ["o", "x"], several]
    picture = [MediaItem("image", "camera", url="https://cam.example/1.jpg")]
    client.push(
        name,
        rows,
        [labels[k % len(labels)] for k in range(ROWS)],
        [f"i{k}" for k in range(ROWS)],
        displays=[picture if k % 4 == 0 else None for k in range(ROWS)],
    )
    policy = LabellingPolicy(max_held=9, per_hour=500, per_labeller=400, tags=("t",))
    client.set_labelling_policy(name, replace(policy, answers_per_query=2))
    leased = {labeller: _lease(client, store, name, labeller) for labeller in ("ann", "bob")}
    for query in leased.values():
        client.answer(query, "o", 0.9, comment="sure", took_s=1.5, shown="screen")
    client.set_labelling_policy(name, policy)
    client.refuse(_lease(client, store, name, "ann"), comment="blurred")
    client.skip(_lease(client, store, name, "ann"), comment="no idea")
    client.postpone(_lease(client, store, name, "ann"), 3600.0, comment="later")
    query = _lease(client, store, name, "cleo")
    client.answer(query, {"o": 1.0, "x": 0.5})
    client.correct(query, "s")
    client.state(name, [Statement("i7", "x", "dora"), Statement("i8", {"o": 1.0, "s": 0.5}, "dora")])
    client.mark_gold(name, {"i9": "o"}, labeller="olga", comment="known")
    client.update_model(name, alpha=0.85)
    _lease(client, store, name, "eve")
    client.extend_model(name, attributes=[Numeric("Z")])


def _publish(store: Store, name: str) -> None:
    """Publish trees and queries as the grower does."""
    record = store.get_model(name)
    learned = learn_model(store, LearningTask(name, record.key, record.sequence_committed))
    reason = query_pb2.Reason(score=0.5, node_count=3, strategy="published").SerializeToString()
    agenda = [AgendaEntry(row, b"[[],null,null,[]]", reason) for row in range(10, 30)]
    report = encode_report([AccuracyBlock(7, 5, 4, 4.5)])
    at = record.sequence_committed
    store.publish(name, as_of=at, snapshot=learned.snapshot, agenda=agenda, key=record.key, report=report)


def _lease(client: Client, store: Store, model: str, labeller: str) -> Query:
    _publish(store, model)
    (query,) = client.lease(model, labeller, lease_s=3000.0, wait_s=20.0).queries
    return query


def wrong_values(stored: object) -> list[tuple[str, object]]:
    """Values of every type that a damaged cell may hold in place of another, with their names."""
    found: list[tuple[str, object]] = [
        ("null", None),
        ("text", "damaged"),
        ("bytes", b"\xff\x00damaged"),
        ("huge", 2**63 - 1),
        ("negative", -7),
        ("infinite", float("inf")),
        ("fraction", 0.123),
        ("empty text", ""),
        ("no bytes", b""),
    ]
    if isinstance(stored, bytes) and stored:
        chance = random.Random(len(stored))  # noqa: S311 - no secret
        at = chance.randrange(len(stored))
        found += [
            ("a bit", stored[:at] + bytes([stored[at] ^ 1 << chance.randrange(8)]) + stored[at + 1 :]),
            ("half", stored[: len(stored) // 2]),
            ("more", stored + b"\x07"),
        ]
    if isinstance(stored, int):
        found.append(("one more", stored + 1))
    return found


class DamagedCell:
    """A cell of a store's file: the middle one of a column with a value, of one model where the table has models.

    Attributes
    ----------
    stored
        Its value.
    """

    def __init__(
        self, file: Path, table: str, column: str, model: str = "grown", *, is_last: bool = False
    ) -> None:
        self._file, self._table, self._column = file, table, column
        columns = metadata.tables[table].columns
        self._key = [each.name for each in metadata.tables[table].primary_key]
        mine = "SELECT id FROM model WHERE name = ?"
        owner = "model_id" if "model_id" in columns else "id" if table == "model" else ""
        where = f'WHERE "{column}" IS NOT NULL' + (f" AND {owner} = ({mine})" if owner else "")
        named = ", ".join(f'"{each}"' for each in [*self._key, column])
        with closing(sqlite3.connect(file)) as raw:
            rows = raw.execute(f'SELECT {named} FROM "{table}" {where}', [model] if owner else []).fetchall()  # noqa: S608
        assert rows, f"{table}.{column} has no value"
        *self._place, self.stored = rows[-1 if is_last else len(rows) // 2]

    def damage(self, value: object) -> bool:
        """Write a value into the cell, as a fault of a disk would; False where the database keeps another."""
        here = " AND ".join(f'"{each}" = ?' for each in self._key)
        change = f'UPDATE "{self._table}" SET "{self._column}" = ? WHERE {here}'  # noqa: S608 - our names
        kept = f'SELECT "{self._column}" FROM "{self._table}"'  # noqa: S608
        with closing(sqlite3.connect(self._file)) as raw:
            raw.text_factory = bytes
            try:
                with raw:
                    raw.execute(change, [value, *self._place])
                found = [each for (each,) in raw.execute(kept)]
            except (sqlite3.IntegrityError, OverflowError):
                return False
        wanted = value.encode() if isinstance(value, str) else value
        return any(type(each) is type(wanted) and each == wanted for each in found)
