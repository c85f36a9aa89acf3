"""backup, restore, check, export and import, beside a server that runs."""

import base64
import csv
import gzip
import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from integration.client.serving import CONTOURS_T, TABLE_T, Serving
from pyarrow import parquet
from support.command_line import quercus
from support.mounts import fill, small_disk
from support.published import published_model

from quercus.belief.codec import encode
from quercus.belief.frame import Frame
from quercus.belief.label import precise
from quercus.client import Client
from quercus.client.specification_messages import message_of_specification
from quercus.server.growth.regrowing import compare_regrown
from quercus.server.wire.models import complete_specification
from quercus.specification.attributes import Nominal, Numeric
from quercus.storage import CorruptStore, Store, file_url


@pytest.fixture(scope="module")
def lesson(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a model that was taught, and its tree; tests use copies of it."""
    folder = tmp_path_factory.mktemp("lesson")
    serving = Serving(folder)
    with Client(serving.address) as client:
        taught(client)
        grown(client, "t")
    assert serving.stop() == 0
    return folder / "quercus.db"


@pytest.fixture
def serving(tmp_path: Path) -> Any:
    """A server that grows no tree."""
    running = Serving(tmp_path, grower=False)
    yield running
    running.stop()


@pytest.fixture
def serving_lesson(lesson: Path, tmp_path: Path) -> Any:
    """A server of the store that was taught; it grows no tree."""
    shutil.copy(lesson, tmp_path)
    running = Serving(tmp_path, grower=False)
    yield running
    running.stop()


def run(*arguments: str, code: int = 0) -> str:
    done = quercus(*arguments)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stderr if code else done.stdout


def read(file: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(file.read_text().splitlines()))


def taught(client: Client) -> None:
    """Table T of theory §3.7, and one answer and one refusal."""
    client.create_model(
        "t",
        published_model(
            [Nominal("X", "abc"), Nominal("Y", "de")],
            ["o", "s", "x"],
            alpha=0.9,
            budget=5,
            strategy="published",
        ),
    )
    lines = TABLE_T.splitlines()[1:]
    rows = [dict(zip(("X", "Y"), line.split(","), strict=False)) for line in lines]
    contours = [
        dict(zip("osx", map(float, line.split(",")), strict=True)) for line in CONTOURS_T.splitlines()[1:]
    ]
    client.push("t", rows, contours)
    queries = client.queries("t", labeller="ann", idle_s=20)
    client.answer(next(queries), "s")
    client.refuse(next(queries))
    queries.close()


def grown(client: Client, name: str) -> Any:
    for update in client.watch(name):
        if not update.lag:
            return update.tree
    raise AssertionError("the watch ended")


@pytest.mark.slow
def test_models_rebuilt_from_an_archive_grow_the_same_tree(lesson: Path, tmp_path: Path) -> None:
    shutil.copy(lesson, tmp_path)
    store, archive = str(tmp_path / "quercus.db"), str(tmp_path / "archive")
    assert "t: 0 events added" in run(
        "archive", "t", "--out", archive, "--store", store, "--older-than", "30d"
    )
    said = run("archive", "t", "--out", archive, "--store", store)
    assert "t: 23 events added, archived up to event 23" in said
    found = json.loads(run("archive", "--all", "--out", archive, "--store", store, "--json"))
    assert [(each["name"], each["added"], each["last"]) for each in found["models"]] == [("t", 0, 23)]
    for wrong in ((), ("t", "--all")):
        assert run("archive", *wrong, "--out", archive, "--store", store, code=2)
    assert "must be a whole number and" in run(
        "archive", "t", "--out", archive, "--store", store, "--older-than", "1y", code=2
    )
    serving = Serving(tmp_path)
    with Client(serving.address) as client:
        assert "t: 23 events, already there" in run("rebuild", archive, "--store", store)
        said = run("rebuild", archive, "--store", store, "--model", "t", "--as", "again")
        assert "again: 23 events, rebuilt" in said
        assert "grows the trees" in said
        assert grown(client, "again").nodes == grown(client, "t").nodes
        assert client.get_model("again").queries_answered == 1
    assert serving.stop() == 0
    assert "does not exist" in run("rebuild", archive, "--store", str(tmp_path / "new.db"), code=1)
    run("rebuild", archive, "--store", str(tmp_path / "new.db"), "--create")
    assert "is consistent" in run("check", "--store", str(tmp_path / "new.db"))
    piece = next((tmp_path / "archive").rglob("*.parquet"))
    piece.write_bytes(piece.read_bytes()[:-1])
    said = run("rebuild", archive, "--store", str(tmp_path / "other.db"), "--create", code=1)
    assert f"{piece.name} is damaged: it has" in " ".join(said.split())


def test_a_model_that_cannot_be_archived_does_not_stop_the_others(tmp_path: Path) -> None:
    store, archive = str(tmp_path / "quercus.db"), tmp_path / "archive"
    with Store.open(f"sqlite:///{store}") as opened:
        uids = {name: opened.create_model(name, b"", budget=0).uid for name in ("a", "b", "c")}
    archive.mkdir()
    for name in ("a", "b"):  # files where their folders should be
        (archive / uids[name]).touch()
    said = quercus("archive", "--all", "--out", str(archive), "--store", store)
    assert said.returncode == 1
    assert "c: 0 events added" in said.stdout
    assert [name for name in "abc" if f"{name}: {archive / uids[name]} cannot be opened" in said.stderr] == [
        *"ab"
    ]
    assert "2 of 3 models not archived: a, b" in said.stderr
    said = quercus("archive", "--all", "--out", str(archive), "--store", store, "--json")
    assert said.returncode == 1
    found = json.loads(said.stdout)
    assert [each["name"] for each in found["models"]] == ["c"]
    assert [each["name"] for each in found["failed"]] == ["a", "b"]
    assert "cannot be opened as a folder" in found["failed"][0]["error"]
    assert json.loads(said.stderr)["error"]["exit_code"] == 1


@pytest.mark.slow
def test_an_exported_log_grows_the_same_tree(lesson: Path, tmp_path: Path) -> None:
    shutil.copy(lesson, tmp_path)
    store = str(tmp_path / "quercus.db")
    serving = Serving(tmp_path)
    with Client(serving.address) as client:
        tree = grown(client, "t")
        for name in ("t.jsonl", "t.jsonl.gz"):
            assert "23 events" in run("export", "t", str(tmp_path / name), "--store", store)
        packed = gzip.decompress((tmp_path / "t.jsonl.gz").read_bytes())
        assert packed == (tmp_path / "t.jsonl").read_bytes()
        run("import", str(tmp_path / "t.jsonl.gz"), "--as", "again", "--store", store)
        again = grown(client, "again")
        assert again.nodes == tree.nodes
        assert client.get_model("again").queries_answered == 1
    assert "already exists" in run("import", str(tmp_path / "t.jsonl"), "--store", store, code=1)
    (tmp_path / "short.jsonl").write_text("\n".join((tmp_path / "t.jsonl").read_text().split("\n")[:9]))
    said = run("import", str(tmp_path / "short.jsonl"), "--as", "short", "--store", store, code=1)
    assert "ends after event 8, its first line promises 23 events" in said
    assert serving.stop() == 0


@pytest.mark.slow
@pytest.mark.usefixtures("serving_lesson")
def test_a_table_has_what_is_believed(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    assert "21 rows" in run("export", "t", str(file), "--store", str(tmp_path / "quercus.db"))
    rows = read(file)
    assert list(rows[0]) == ["id", "X", "Y", "label", "pl(o)", "pl(s)", "pl(x)", "answers", "conflict"]
    assert (rows[0]["X"], rows[0]["Y"], rows[0]["label"]) == ("a", "e", "s")  # answered
    assert rows[1]["label"] == "o:0.2 s:1.0 x:0.7"  # as it was pushed
    spoken = [row for row in rows if row["answers"] == "1"]
    assert len(spoken) == 2
    assert "s" in [row["label"] for row in spoken]
    assert [row["pl(s)"] for row in spoken if (row["pl(o)"], row["pl(x)"]) == ("0.0", "0.0")] == ["1.0"]
    said = run("export", "t", str(file), "--store", str(tmp_path / "quercus.db"), code=2)
    assert "give --force" in said
    assert "must end in" in run("export", "t", str(tmp_path / "t.xlsx"), code=2)


FILES = ("t.jsonl.gz", "t.csv", "t.parquet")


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        *(("export", "t", f"DISK/{name}", "--store", "STORE") for name in FILES),
        ("backup", "DISK/backup.db", "--store", "STORE"),
        ("restore", "STORE", "--store", "DISK/restored.db"),
        ("import", "LOG", "--store", "DISK/imported.db", "--create"),
        ("migrate", "--from", "STORE", "--to", "DISK/moved.db", "--regrow", "0"),
        ("archive", "t", "--out", "DISK/archive", "--store", "STORE"),
        ("induce", "TABLE", "--svg", "DISK/t.svg"),
        ("induce", "TABLE", "--dot", "DISK/t.dot"),
    ],
    ids=lambda arguments: "-".join(arguments[:3:2]).replace("/", ""),
)
def test_a_full_disk_is_named_and_the_same_command_works_when_there_is_room(
    lesson: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    log = tmp_path / "log.jsonl"
    run("export", "t", str(log), "--store", str(lesson))
    table = tmp_path / "t.csv"
    table.write_text(TABLE_T)
    with small_disk(tmp_path / "disk", megabytes=32) as disk:
        places = {"DISK": str(disk), "STORE": str(lesson), "LOG": str(log), "TABLE": str(table)}
        command = [re.sub("|".join(places), lambda found: places[found[0]], each) for each in arguments]
        filler = fill(disk)
        said = run(*command, code=1)
        assert str(disk) in said
        assert "no space" in said.lower()
        assert str(lesson) not in said
        filler.unlink()
        run(*command)


@pytest.mark.slow
def test_a_token_that_could_not_be_written_opens_nothing(lesson: Path, tmp_path: Path) -> None:
    store = shutil.copy(lesson, tmp_path / "store.db")
    with small_disk(tmp_path / "disk", megabytes=1) as disk:
        fill(disk)
        asked = ("tokens", "create", "ann", "--role", "labeller", "--output", str(disk / "ann.token"))
        assert "no space" in run(*asked, "--store", str(store), code=1).lower()
        assert [each.name for each in disk.iterdir()] == ["filler"]
    (token,) = json.loads(run("tokens", "list", "--store", str(store), "--json"))
    assert token["revoked_at"] is not None


@pytest.mark.slow
def test_a_demonstration_names_the_folder_it_cannot_write(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", megabytes=1) as disk:
        fill(disk)
        assert f"cannot write {disk / 'demo'}: No space" in run(
            "demo", "--output", str(disk / "demo"), code=1
        )


@pytest.mark.slow
def test_cells_that_a_spreadsheet_would_run(serving: Serving, tmp_path: Path) -> None:
    evil = "=cmd|'C calc'!A0"
    with Client(serving.address) as client:
        client.create_model(
            "t", published_model([Nominal("-X", ["+a", "b-c", "＝2"]), Numeric("n")], ["@o", "s"])
        )
        client.push("t", [["+a", -1.5], ["b-c", 2.0], ["＝2", 0.0]], ["@o", "s", "s"], ids=[evil, "i", "＠j"])
    store, file = str(tmp_path / "quercus.db"), tmp_path / "t.csv"
    run("export", "t", str(file), "--store", store)
    assert [list(row.values())[:4] for row in read(file)] == [
        [evil, "+a", "-1.5", "@o"],
        ["i", "b-c", "2.0", "s"],
        ["＠j", "＝2", "0.0", "s"],
    ]
    run("export", "t", str(file), "--store", store, "--force", "--for-spreadsheets")
    rows = read(file)
    assert list(rows[0])[:4] == ["id", "'-X", "n", "label"]
    assert [list(row.values())[:4] for row in rows] == [
        [f"'{evil}", "'+a", "-1.5", "'@o"], ["i", "b-c", "2.0", "s"], ["'＠j", "'＝2", "0.0", "s"],
    ]  # fmt: skip
    said = run("export", "t", str(tmp_path / "t.jsonl"), "--store", store, "--for-spreadsheets", code=2)
    assert "is for .csv files" in said


def test_parquet_holds_what_csv_holds(serving: Serving, tmp_path: Path) -> None:
    """Also where attributes are called like the table's own columns."""
    columns = [Nominal("id", "ab", missing="branch"), Numeric("label"), Numeric("pl(s)")]
    with Client(serving.address) as client:
        client.create_model("t", published_model(columns, ["o", "s"]))
        client.push("t", [["a", 1.5, 0.0], [None, -2.0, 1.0]], ["s", None], ids=["first", "second"])
    store = str(tmp_path / "quercus.db")
    run("export", "t", str(tmp_path / "t.parquet"), "--store", store)
    run("export", "t", str(tmp_path / "t.csv"), "--store", store)
    table, rows = parquet.read_table(tmp_path / "t.parquet"), read(tmp_path / "t.csv")
    assert table.column_names == list(rows[0]) == [
        "id", "value:id", "value:label", "value:pl(s)", "label", "pl(o)", "pl(s)", "answers", "conflict",
    ]  # fmt: skip
    assert [str(kind) for kind in table.schema.types] == [
        "string", "string", "double", "double", "string", "double", "double", "int64", "int64",
    ]  # fmt: skip
    cells = [["" if cell is None else str(cell) for cell in row.values()] for row in table.to_pylist()]
    assert cells == [list(row.values()) for row in rows]
    assert cells[1][:4] == ["second", "", "-2.0", "1.0"]
    said = run("export", "t", str(tmp_path / "t.parquet.gz"), "--store", store, code=2)
    assert "Parquet is already compressed" in " ".join(said.split())
    assert not (tmp_path / "t.parquet.gz").exists()


def test_a_log_has_no_blank_line_for_a_bar_that_nobody_sees(lesson: Path, tmp_path: Path) -> None:
    store, copy, archive = str(lesson), str(tmp_path / "copy.db"), str(tmp_path / "archive")
    for arguments in (
        ("backup", copy, "--store", store),
        ("restore", copy, "--store", str(tmp_path / "put-back.db")),
        ("archive", "--all", "--out", archive, "--store", store),
        ("rebuild", archive, "--store", str(tmp_path / "rebuilt.db"), "--create"),
    ):
        done = quercus(*arguments)
        assert (done.returncode, done.stderr) == (0, ""), arguments


def test_a_backup_is_made_checked_and_put_back(serving_lesson: Serving, tmp_path: Path) -> None:
    serving = serving_lesson
    store, copy = str(tmp_path / "quercus.db"), str(tmp_path / "copy.db")
    with Client(serving.address) as client:
        run("backup", copy, "--store", store)
        assert "is consistent" in run("check", "--store", copy)
        client.delete_model("t")
    assert "in use: stop the server first" in run("restore", copy, "--store", store, "--force", code=1)
    assert serving.stop() == 0
    run("restore", copy, "--store", store, "--force")
    assert "is consistent" in run("check", "--store", store)
    second = Serving(tmp_path, grower=False)
    try:
        shown = json.loads(quercus("models", "show", "t", "--json", server=second.address).stdout)
        assert (shown["instance_count"], shown["queries_answered"]) == (21, 1)
    finally:
        second.stop()


def test_a_damaged_store_is_reported(tmp_path: Path) -> None:
    (tmp_path / "quercus.db").write_text("text " * 1000)
    assert "is not a store" in run("check", "--store", str(tmp_path / "quercus.db"), code=1)
    assert "nothing.db does not exist" in run("check", "--store", str(tmp_path / "nothing.db"), code=1)


def test_a_damaged_store_is_restored_with_the_tools_of_its_database(
    postgres_url: str, tmp_path: Path
) -> None:
    for url, advice in (
        (postgres_url, "restore a dump with pg_restore"),
        (file_url(tmp_path / "quercus.db"), "restore a backup with: quercus restore FILE"),
    ):
        with Store.open(url) as store:
            store.create_model("m", b"", budget=9)
            with store._database.write() as connection:
                connection.exec_driver_sql("UPDATE model SET sequence_committed = 5")
        said = run("check", "--store", url, code=1)
        assert f"error: the store is damaged (1 found); {advice}\n" in said


@pytest.fixture
def exported(lesson: Path, tmp_path: Path) -> Path:
    """A log, beside the store that it came from."""
    shutil.copy(lesson, tmp_path)
    run("export", "t", str(tmp_path / "t.jsonl"), "--store", str(tmp_path / "quercus.db"))
    return tmp_path / "t.jsonl"


def test_a_log_that_cannot_be_imported_is_named_with_its_line(tmp_path: Path, exported: Path) -> None:
    into = ("--as", "no", "--store", str(tmp_path / "copy.db"), "--create")
    head, second, *_ = exported.read_text().splitlines()
    for text, reason in (
        ('{"format": "other"}', "is not an exported log: its first line has no format"),
        (f"{head}\n{second[:-9]}", "line 2: is not JSON"),
        (f"{head}\n{second}", "ends after event 1, its first line promises 23 events"),
    ):
        exported.write_text(text)
        assert f"error: {exported}: {reason}" in run("import", str(exported), *into, code=1)


def test_a_model_that_stopped_its_queries_early_asks_to_the_budget_wherever_it_goes_and_that_is_said(
    tmp_path: Path, exported: Path
) -> None:
    """Its specification has field 14 from the time when there were two rules to stop."""
    head, *events = exported.read_text().splitlines()
    store = ("--store", str(tmp_path / "copy.db"))
    for ask in ("to-the-budget", "while-contested"):
        stored = json.loads(head) | {"model": f"of-{ask}"}
        stored["specification"] = base64.b64encode(
            base64.b64decode(stored["specification"]) + bytes([14 << 3 | 2, len(ask)]) + ask.encode()
        ).decode()
        exported.write_text("\n".join([json.dumps(stored), *events]))
        done = quercus("import", str(exported), *store, "--create")
        assert (done.returncode, done.stdout) == (0, "read 23 events\n")
    said = "of-while-contested: ask was while-contested, which is not offered any more; it now asks up to its budget\n"
    assert done.stderr == said
    archive, moved = str(tmp_path / "archive"), ("--store", str(tmp_path / "moved.db"))
    run("archive", "--all", "--out", archive, *store)
    for step in (
        ("migrate", "--from", store[1], "--to", moved[1], "--regrow", "0"),
        ("rebuild", archive, "--store", str(tmp_path / "rebuilt.db"), "--create"),
    ):
        done = quercus(*step)
        assert (done.returncode, done.stderr) == (0, said)
    assert "is consistent" in run("check", *moved)


@pytest.mark.slow
def test_no_command_makes_a_stray_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exported: Path
) -> None:
    """If no store is named and none exists, the error says how to name one; nothing is created."""
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    monkeypatch.delenv("QUERCUS_STORE", raising=False)
    for arguments in (
        ("tokens", "create", "ann", "--role", "reader", "--output", "ann.token"),
        ("import", str(exported)),
        ("restore", str(exported.with_name("quercus.db"))),
        ("backup", "copy.db"),
        ("check",),
    ):
        said = run(*arguments, code=1)
        assert "quercus.db does not exist" in said
        assert "--store" in said
    assert list(Path.cwd().iterdir()) == []
    assert "23 events" in run("import", str(exported), "--create")
    run("restore", str(exported.with_name("quercus.db")), "--store", "restored.db")
    for store in ("quercus.db", "restored.db"):
        assert "is consistent" in run("check", "--store", store)


@pytest.mark.slow
def test_what_uses_a_store_makes_none(tmp_path: Path) -> None:
    missing = tmp_path / "typo.db"
    for arguments in (
        ("tokens", "create", "ann", "--role", "reader"),
        ("tokens", "list"),
        ("tokens", "audit"),
        ("tokens", "revoke", "3f9a0c1d2e4b"),
        ("export", "t", str(tmp_path / "t.csv")),
    ):
        assert "typo.db does not exist" in run(*arguments, "--store", str(missing), code=1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.usefixtures("serving_lesson")
def test_an_export_follows_no_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "t.jsonl.part").symlink_to(victim)
    run("export", "t", str(tmp_path / "t.jsonl"), "--store", str(tmp_path / "quercus.db"))
    assert victim.read_text() == "precious"
    assert not (tmp_path / "t.jsonl").is_symlink()


@pytest.mark.slow
def test_a_store_moves_and_its_trees_are_grown_anew(lesson: Path, tmp_path: Path, postgres_url: str) -> None:
    back = str(tmp_path / "back.db")
    said = run("migrate", "--from", str(lesson), "--to", postgres_url)
    assert "t: " in said
    assert "grown anew from both stores, and equal: t" in said
    assert json.loads(run("migrate", "--from", postgres_url, "--to", back, "--json"))["regrown"] == ["t"]
    assert "grown anew" not in run("migrate", "--from", str(lesson), "--to", back, "--regrow", "0")
    with Store.open(file_url(lesson)) as before, Store.open(file_url(Path(back))) as after:
        assert before.snapshot("t") == after.snapshot("t")


def test_trees_of_other_logs_are_told_apart(tmp_path: Path) -> None:
    """The logs are compared, and not the stored trees: no store has one."""
    asked = published_model([Nominal("x", "ab")], ["o", "s"], alpha=0.9)
    specification = complete_specification(message_of_specification(asked)).SerializeToString()
    urls = [file_url(tmp_path / f"{number}.db") for number in range(3)]
    for url, klass in zip(urls, "oos", strict=True):
        with Store.open(url) as store:
            for name in ("a", "b", "c", "empty"):
                store.create_model(name, specification, budget=0)
            for name in ("a", "b", "c"):
                label = encode(precise(Frame(("o", "s")), klass))
                store.append_instances(name, ["r"], np.zeros((1, 1)), [label])
    told: list[str] = []
    assert compare_regrown(urls[0], urls[1], 2, told.append).names == ("a", "c")
    assert told == ["a", "c"]
    with pytest.raises(
        CorruptStore, match="model a: the trees of the moved log differ from those of the old one"
    ):
        compare_regrown(urls[0], urls[2], 1)
