"""A store whose cells are damaged one by one: `quercus check` says so, and a server serves what is well."""

import os
import random
import shutil
import sqlite3
import struct
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import grpc
import pytest
from sqlalchemy import LargeBinary, SmallInteger
from support.full_store import CELLS, DamagedCell, fill, wrong_values
from support.waiting import until
from typer.testing import CliRunner

from quercus.cli.common import CommandFailure
from quercus.cli.main import app
from quercus.client import Client
from quercus.server.gate import access
from quercus.server.transfer.stored_contents import CELLS as READ_ALONE
from quercus.server.transfer.stored_contents import StoredModel
from quercus.server.wire.snapshots import FORMAT
from quercus.storage import CorruptStore, Store, file_url
from quercus.storage.admin.backup import back_up, restore_backup
from quercus.storage.admin.moving import move_store
from quercus.storage.admin.verify import verify_store
from quercus.storage.admin.verify_columns import ENUMERATIONS
from quercus.storage.schema import metadata
from quercus.v1 import (
    admin_pb2,
    admin_pb2_grpc,
    classify_pb2,
    instance_pb2,
    model_pb2,
    query_pb2,
    tree_pb2,
    values_pb2,
)

UNREADABLE = struct.pack("<4I", FORMAT, 0, 0, 0) + b"damaged"
"""A tree of today's format that no message can be read from."""
NO_ROWS = {"grower", "growing"}  # of a store in a file
CHECKED = [(table, column) for table, column in CELLS if table not in NO_ROWS and column != "credential"]


@pytest.fixture(scope="module")
def full(start_for_all: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a store that has everything, and is well."""
    folder = tmp_path_factory.mktemp("full")
    live = start_for_all(folder / "store.db", grower=False)
    fill(live.api.address, live.server.core.store)
    live.close()
    with closing(sqlite3.connect(folder / "store.db")) as raw:
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        raw.execute("PRAGMA journal_mode = DELETE")
    assert verify_store(file_url(folder / "store.db"), StoredModel) == []
    return folder / "store.db"


@pytest.fixture
def copy(full: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(full, tmp_path / "copy.db"))


def test_every_column_has_a_reader() -> None:
    """A column that is added is read too, or fails this test."""
    blobs = {
        f"{c.table.name}.{c.name}"
        for t in metadata.sorted_tables
        for c in t.columns
        if isinstance(c.type, LargeBinary)
    }
    assert blobs <= {*READ_ALONE, *StoredModel.IN_LOG}
    small = {c for t in metadata.sorted_tables for c in t.columns if isinstance(c.type, SmallInteger)}
    assert small == set(ENUMERATIONS)


def wrong_type(stored: object) -> object:
    """A value that SQLite keeps in place of another, whatever the type of the column."""
    return "damaged" if isinstance(stored, bytes) else b"\xff\xfe"


def test_every_cell_of_a_wrong_type_is_found(full: Path, tmp_path: Path) -> None:
    """In each round one column of every table; a key of SQLite's own is always a number."""
    columns = {
        table.name: [c.name for c in table.columns if (table.name, c.name) in CHECKED]
        for table in metadata.sorted_tables
    }
    for k in range(max(map(len, columns.values()))):
        copied = Path(shutil.copy(full, tmp_path / "copy.db"))
        places = [(table, names[k]) for table, names in columns.items() if k < len(names)]
        cells = [(place, DamagedCell(copied, *place)) for place in places]
        damaged = [place for place, cell in cells if cell.damage(wrong_type(cell.stored))]
        found = [str(fault) for fault in verify_store(file_url(copied), StoredModel) if fault.is_damage]
        for table, column in damaged:
            assert any(f"table {table}, row" in text and f": {column} must be" in text for text in found), (
                table,
                column,
            )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_no_damage_ends_in_a_traceback(full: Path, copy: Path, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - no secret
    table, column = chance.choice(CHECKED)
    cell = DamagedCell(copy, table, column)
    name, value = chance.choice(wrong_values(cell.stored))
    if not cell.damage(value):
        pytest.skip("the database refuses it")
    found = verify_store(file_url(copy), StoredModel)
    if name in {"huge", "infinite"} or (isinstance(value, bytes) and not isinstance(cell.stored, bytes)):
        assert any(fault.is_damage and column in str(fault) for fault in found), (table, column, name)


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("model.specification", b"\xff\xff", "its specification is not"),
        ("model.initial_specification", b"\xff\xff", "specification: is not a serialised"),
        ("model.report", b"\xff", "report: cannot be read"),
        ("log.label", b"\x77damaged", "label: "),
        ("log.values", b"123", "values"),
        ("log.asked", b"[", "asked: is not the position"),
        ("log.kind", 3, "instances, its log has"),
        ("query.reason", b"\xff", "reason: cannot be read"),
        ("query.asked", b"{}", "asked: is not the position"),
        ("display.data", b"\xff", "display: is not a serialised"),
        ("snapshot.data", UNREADABLE, "data: cannot be read"),
        ("token.roles", "king", "roles: are 'king'"),
        ("token.models", "[1]", "models: "),
        ("token.digest", b"short", "digest: has 5 bytes"),
        ("policy.max_held", 0, "max_held"),
        ("vocabulary.position", 4, "learned values"),
        ("query_history.instance", 2**61, None),
    ],
)
def test_contents_that_cannot_be_read_are_named(
    copy: Path, column: str, value: object, words: str | None
) -> None:
    table, name = column.split(".")
    assert DamagedCell(copy, table, name).damage(value)
    found = [str(fault) for fault in verify_store(file_url(copy), StoredModel)]
    assert words is None or any(words in text for text in found), found
    assert not any("model well" in text for text in found)


@pytest.mark.parametrize(
    ("planted", "words", "is_damage"),
    [
        (
            "CREATE TRIGGER t AFTER INSERT ON log BEGIN UPDATE log SET label = NULL; END",
            "trigger 't' on table log",
            True,
        ),
        ("CREATE VIEW v AS SELECT 1", "view 'v'", False),
        ("CREATE TABLE other (x)", "table 'other'", False),
        ("DROP INDEX ix_query_live", "index ix_query_live is missing", True),
        ("CREATE UNIQUE INDEX u ON log (author)", "unique index 'u'", True),
        ("ALTER TABLE policy ADD COLUMN g INTEGER AS (max_held + 1)", "table policy is not as", True),
        ("ALTER TABLE token DROP COLUMN expires_at", "table token is not as", True),
        (
            "UPDATE sqlite_schema SET sql = replace(sql, 'IS NOT NULL', 'IS NULL') WHERE name = 'ix_log_request'",
            "ix_log",
            True,
        ),
    ],
)
def test_what_is_not_of_the_schema_is_found(copy: Path, planted: str, words: str, is_damage: bool) -> None:
    with closing(sqlite3.connect(copy)) as raw, raw:
        raw.execute("PRAGMA writable_schema = ON")
        if "UNIQUE" in planted:
            raw.execute("DELETE FROM log")
        raw.execute(planted)
    found = verify_store(file_url(copy), StoredModel)
    assert any(words in str(fault) and fault.is_damage == is_damage for fault in found), [
        str(each) for each in found
    ]


def test_a_trigger_stops_whatever_would_run_or_keep_it(copy: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(copy)) as raw, raw:
        raw.execute("CREATE TRIGGER t AFTER UPDATE ON query BEGIN UPDATE log SET label = NULL; END")
    url, elsewhere = file_url(copy), file_url(tmp_path / "new.db")
    for refused in (
        lambda: Store.open(url),
        lambda: Store.open(url, read_only=True),
        lambda: back_up(url, tmp_path / "backup.db"),
        lambda: restore_backup(copy, elsewhere, contents=StoredModel),
        lambda: move_store(url, elsewhere),
    ):
        with pytest.raises(CorruptStore, match="trigger 't' on table query"):
            refused()
    assert not (tmp_path / "backup.db").exists()


@pytest.mark.parametrize("damage", ["half", "garbage", "empty", "zeros", "folder", "text"])
def test_a_file_that_is_none_is_an_error_in_words(copy: Path, damage: str) -> None:
    size = copy.stat().st_size
    match damage:
        case "half":
            os.truncate(copy, size // 2 + 100)
        case "garbage" | "zeros":
            with copy.open("r+b") as file:
                for page in range(2, size // 4096, 3):
                    file.seek(page * 4096)
                    file.write(bytes(4096) if damage == "zeros" else random.Random(page).randbytes(4096))  # noqa: S311
        case "empty":
            copy.write_bytes(b"")
        case "text":
            copy.write_text("no store\n" * 1000)
        case "folder":
            copy.unlink()
            copy.mkdir()
    run = CliRunner().invoke(app, ["check", "--store", str(copy)])
    assert run.exit_code == (0 if damage == "empty" else 1)
    assert run.exception is None or isinstance(run.exception, SystemExit | CommandFailure), run.exception


FORBIDDEN = {grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN}


def outcomes(live: Any, model: str) -> dict[str, grpc.StatusCode]:
    """The status of every call that reads or labels a model, and of those on all models."""
    api, name = live.api, f"models/{model}"
    admin = admin_pb2_grpc.AdminServiceStub(api.channel)
    watching = instance_pb2.WatchEventsRequest(model=name, include_values=True)
    row = values_pb2.Rows(named=values_pb2.NamedRows(rows=[values_pb2.NamedRow()]))
    calls: dict[str, Callable[[], Any]] = {
        "GetModel": lambda: api.models.GetModel(model_pb2.GetModelRequest(name=name)),
        "ListModels": lambda: api.models.ListModels(model_pb2.ListModelsRequest()),
        "GetStatus": lambda: admin.GetStatus(admin_pb2.GetStatusRequest()),
        "ListInstances": lambda: api.instances.ListInstances(instance_pb2.ListInstancesRequest(model=name)),
        "ListQueries": lambda: api.queries.ListQueries(query_pb2.ListQueriesRequest(model=name)),
        "ListQueryHistory": lambda: api.queries.ListQueryHistory(
            query_pb2.ListQueryHistoryRequest(name=name)
        ),
        "ListLabellers": lambda: api.queries.ListLabellers(query_pb2.ListLabellersRequest(model=name)),
        "GetLabellingPolicy": lambda: api.queries.GetLabellingPolicy(
            query_pb2.GetLabellingPolicyRequest(model=name)
        ),
        "StreamAnswers": lambda: list(
            api.queries.StreamAnswers(query_pb2.StreamAnswersRequest(model=name, include_values=True))
        ),
        "GetTree": lambda: api.trees.GetTree(tree_pb2.GetTreeRequest(name=f"{name}/trees/latest")),
        "Classify": lambda: api.classifier.Classify(classify_pb2.ClassifyRequest(model=name, rows=row)),
        "WatchEvents": lambda: next(iter(api.instances.WatchEvents(watching, timeout=20))),
        "LeaseQueries": lambda: api.queries.LeaseQueries(
            query_pb2.LeaseQueriesRequest(model=name, labeller="zoe", max_queries=20)
        ),
        "LeaseAny": lambda: api.queries.LeaseQueries(
            query_pb2.LeaseQueriesRequest(model="models/-", labeller="zoe", max_queries=20)
        ),
    }
    found = {}
    for title, call in calls.items():
        try:
            call()
        except grpc.RpcError as error:
            found[title] = error.code()
        else:
            found[title] = grpc.StatusCode.OK
    return found


DAMAGES = [
    ("model.specification", b"\xff\xff"),
    ("model.report", b"\xff"),
    ("model.budget", "damaged"),
    ("model.name", b"\xff"),
    ("log.label", b"\x77damaged"),
    ("log.values", b"123"),
    ("log.kind", 77),
    ("query.reason", b"\xff"),
    ("query.state", 77),
    ("snapshot.data", UNREADABLE),
    ("policy.reliability", 9),
    ("vocabulary.value", b"\xff"),
    ("query_history.step", 77),
    ("token.roles", b"\xff"),
    ("model_change.name", b"\xff"),
]


@pytest.mark.parametrize(
    ("column", "value"),
    [*DAMAGES[:3], *(pytest.param(*each, marks=pytest.mark.release) for each in DAMAGES[3:])],
)
def test_a_server_serves_what_is_well(
    start_live: Callable[..., Any], copy: Path, column: str, value: object
) -> None:
    assert DamagedCell(copy, *column.split("."), is_last=column == "snapshot.data").damage(value)
    live = start_live(copy, grower=False)
    found = outcomes(live, "grown")
    assert not FORBIDDEN & set(found.values()), found
    assert {found[name] for name in ("ListModels", "GetStatus", "LeaseAny")} == {grpc.StatusCode.OK}, found
    well = outcomes(live, "well")
    assert set(well.values()) == {grpc.StatusCode.OK}, well
    listed = {each.name for each in live.api.models.ListModels(model_pb2.ListModelsRequest()).models}
    assert {"models/well", "models/forest"} <= listed
    if grpc.StatusCode.DATA_LOSS in found.values():
        with Client(live.api.address) as client:
            status = client.status()
        assert list(status.damaged) == ["grown"]
        assert not status.is_healthy
        assert "models/grown" not in listed
        run = CliRunner().invoke(app, ["status", "--server", live.api.address])
        assert run.exit_code == 1
        assert "grown" in run.output


@pytest.mark.slow
def test_a_damaged_model_that_is_deleted_is_reported_no_more(
    start_live: Callable[..., Any], copy: Path
) -> None:
    """Another may have its name, and is well."""
    assert DamagedCell(copy, "log", "label", "grown").damage(b"\x77damaged")
    with closing(sqlite3.connect(copy)) as raw, raw:  # nothing of it is grown
        raw.execute("UPDATE model SET sequence_grown = 0, tree_version = 0 WHERE name = 'grown'")
        raw.execute("DELETE FROM snapshot WHERE model_id = (SELECT id FROM model WHERE name = 'grown')")
    live = start_live(copy)
    with Client(live.api.address) as client:
        until(lambda: list(client.status().damaged) == ["grown"])
        made = client.get_model("well").specification
        client.delete_model("grown")
        client.create_model("grown", made)
        until(lambda: not client.status().damaged)
        time.sleep(0.5)
        assert client.status().damaged == {}
        assert "grown" in [each.name for each in client.models()]


def test_a_model_that_another_server_made_anew_is_served(start_live: Callable[..., Any], copy: Path) -> None:
    """This server noticed the damage of an earlier model of its name, and was told of no deletion."""
    assert DamagedCell(copy, "model", "specification", "grown").damage(b"\xff")
    live, other = start_live(copy, grower=False), start_live(copy, grower=False)
    with Client(live.api.address) as client, Client(other.api.address) as second:
        assert "grown" not in [each.name for each in client.models()]
        assert list(client.status().damaged) == ["grown"]
        second.delete_model("grown")
        second.create_model("grown", client.get_model("well").specification)
        assert "grown" in [each.name for each in client.models()]
        assert client.status().damaged == {}


def test_damaged_models_do_not_shorten_a_page(copy: Path) -> None:
    """A page with fewer models than it may have is taken for the last one."""
    assert DamagedCell(copy, "model", "budget", "forest").damage("damaged")
    with Store.open(file_url(copy)) as store:
        assert [each.name for each in store.list_models(limit=2)] == ["grown", "well"]
        assert [each.name for each in store.list_models(limit=1)] == ["grown"]
        assert [each.name for each in store.list_models("grown", limit=1)] == ["well"]


def test_a_restricted_token_learns_nothing_of_other_models(
    start_live: Callable[..., Any], copy: Path
) -> None:
    assert DamagedCell(copy, "model", "specification", "forest").damage(b"\xff")
    live = start_live(copy, grower=False, access="tokens")
    issued = {
        each: access.issue_token(live.server.core.store.access, "ann", ["reader"], models)[0]
        for each, models in (("one", ["well"]), ("all", None))
    }
    told = {}
    for each, token in issued.items():
        with Client(live.api.address, token=token) as client:
            told[each] = client.status()
    assert list(told["all"].damaged) == ["forest"]
    assert (told["all"].models, told["all"].restricted) == (2, False)
    one = told["one"]
    assert (one.models, one.restricted, one.damaged) == (1, True, {})
    assert (one.store_bytes, one.calls, one.memory_bytes, one.writes_waiting, one.growers) == (0, 0, 0, 0, ())
    assert one.lag_s <= told["all"].lag_s


def test_a_policy_of_another_model_is_refused(start_live: Callable[..., Any], copy: Path) -> None:
    live = start_live(copy, grower=False)
    policy = query_pb2.LabellingPolicy(model="models/forest", max_held=3)
    request = query_pb2.UpdateLabellingPolicyRequest(model="models/well", policy=policy)
    with pytest.raises(grpc.RpcError) as refused:
        live.api.queries.UpdateLabellingPolicy(request)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "policy.model: is 'models/forest', must be empty or models/well" in refused.value.details()
    request.policy.model = "models/well"
    assert live.api.queries.UpdateLabellingPolicy(request).max_held == 3
