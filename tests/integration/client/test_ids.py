"""Ids are any text that can be shown on a line: whatever door a row goes through, it comes out with the same id."""

import csv
import io
import itertools
import json
from pathlib import Path

import grpc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from integration.client.serving import Serving
from support.command_line import quercus

from quercus.client import (
    AnswerFilter,
    Client,
    InvalidArgument,
    Nominal,
    NotFound,
    Specification,
    Statement,
    TextItem,
)
from quercus.specification.names import CONTROLS
from quercus.storage import Store
from quercus.v1 import instance_pb2, instance_pb2_grpc

NASTY = [
    *("images/2026/01/a.jpg", "s3://bucket/key", "https://example.org/x?a=b&c=d#e", "SUP/2026-0001"),
    *("\N{WOMAN}\u200d\N{MICROSCOPE}", "a b", "50%", "%2F", "%", "..", ".", "/", "//", "a/../b", "[red]x[/]"),
    *(
        "x,\"y';z",
        "=1+2",
        "-x",
        "@y",
        "a\N{NO-BREAK SPACE}.",
        "Ü\u0308",
        "{id}",
        "a|b",
        "models/m/instances/x",
    ),
    *("x" * 200, "🦉" * 200, "\\n", "<b>&amp;</b>", "$HOME", "`id`", "\N{HEBREW LETTER ALEF}b"),
]
SPECIFICATION = Specification([Nominal("X", "ab")], ["o", "s"], budget=len(NASTY))
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200)
IDS = st.lists(
    TEXT.filter(lambda text: CONTROLS.search(text) is None and text == text.strip()),
    min_size=1,
    max_size=30,
    unique=True,
)
_numbers = itertools.count()


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(ids=IDS)
def test_any_printable_id_comes_back_through_every_call(client: Client, ids: list[str]) -> None:
    model = f"ids-{next(_numbers)}"
    client.create_model(model, SPECIFICATION)
    assert client.push(
        model, [["a"]] * len(ids), ids=ids, displays=[[TextItem("t", "u")]] * len(ids)
    ).stored == len(ids)
    assert client.push(model, [["a"]] * len(ids), ids=ids).known == len(ids)
    assert [each.id for each in client.instances(model)] == ids
    assert [client.get_instance(model, each).id for each in ids] == ids
    client.state(model, [Statement(each, "o", "ann") for each in ids])
    assert [each.instance for each in client.answers(model)] == ids
    (told,) = client.answers(model, AnswerFilter(instances=ids[-1:]))
    assert told.instance == ids[-1]
    events = client.watch_events(model, kinds=["instance", "statement"])
    assert [each.instance for each in itertools.islice(events, 2 * len(ids))] == ids * 2
    events.close()


def test_queries_answers_and_files_keep_ids(client: Client, serving: Serving, tmp_path: Path) -> None:
    """Asked, answered, written, read, exported and imported."""
    client.create_model("ids-nasty", SPECIFICATION)
    client.push("ids-nasty", [["ab"[k % 2]] for k in range(len(NASTY))], ids=NASTY)
    asked = []
    for query in itertools.islice(client.queries("ids-nasty", "ann"), 6):
        asked.append(query.instance)
        client.answer(query, "os"[len(asked) % 2])
    assert set(asked) <= set(NASTY)
    client.state("ids-nasty", [Statement(each, "s", "bob") for each in NASTY])
    said = [
        (each.instance, each.text) for each in client.answers("ids-nasty", AnswerFilter(labellers=["bob"]))
    ]
    for name in ("answers.csv", "answers.jsonl"):
        done = quercus("answers", "ids-nasty", "-o", str(tmp_path / name), server=serving.address)
        assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    cells = list(csv.DictReader(io.StringIO((tmp_path / "answers.csv").read_text())))
    for rows in (lines, cells):
        assert [(each["item"], each["answer"]) for each in rows if each["labeller"] == "bob"] == said
    client.create_model("ids-again", SPECIFICATION)
    client.push("ids-again", [["ab"[k % 2]] for k in range(len(NASTY))], ids=NASTY)
    again = quercus("push", "ids-again", str(tmp_path / "answers.csv"), "--labels", server=serving.address)
    assert again.returncode == 0, again.stderr
    assert {each.instance for each in client.answers("ids-again", AnswerFilter(labellers=["bob"]))} == set(
        NASTY
    )
    shown = quercus("answers", "ids-nasty", "--newest", "100", server=serving.address)
    assert shown.returncode == 0
    assert "images/2026/01/a.jpg" in shown.stdout
    assert "[red]x[/]" in shown.stdout
    store, log = f"sqlite:///{tmp_path / 'other.db'}", tmp_path / "log.jsonl"
    for arguments in (
        ("export", "ids-nasty", str(log), "--store", serving.store),
        ("export", "ids-nasty", str(tmp_path / "table.csv"), "--store", serving.store),
    ):
        done = quercus(*arguments)
        assert done.returncode == 0, done.stderr
    Store.open(store).close()
    done = quercus("import", str(log), "--store", store)
    assert done.returncode == 0, done.stderr
    with Store.open(store) as opened:
        assert [each.id for each in opened.list_instances("ids-nasty")] == NASTY
    table = list(csv.DictReader(io.StringIO((tmp_path / "table.csv").read_text())))
    assert [each["id"] for each in table] == NASTY


def test_names_on_the_wire_are_percent_encoded(client: Client, serving: Serving) -> None:
    client.create_model("ids-wire", SPECIFICATION)
    client.push("ids-wire", [["a"]], ids=["images/a b.jpg"])
    name = "models/ids-wire/instances/images%2Fa%20b.jpg"
    with grpc.insecure_channel(serving.address) as channel:
        stub = instance_pb2_grpc.InstanceServiceStub(channel)
        assert stub.GetInstance(instance_pb2.GetInstanceRequest(name=name)).name == name
        with pytest.raises(grpc.RpcError, match="%2F"):
            stub.GetInstance(instance_pb2.GetInstanceRequest(name="models/ids-wire/instances/images/a b.jpg"))


@pytest.mark.parametrize(
    "wrong", ["", "a\nb", "a\tb", "a\u2028", "\u202eb", "\x7f", "x" * 201, " a", "a\N{NO-BREAK SPACE}"]
)
def test_what_is_no_id(client: Client, model: object, name: str, wrong: str) -> None:
    with pytest.raises(InvalidArgument, match=r"^ids\[1\]: has "):
        client.push(name, [["a", 1.0]] * 2, ids=["fine", wrong])
    with pytest.raises(NotFound):
        client.get_instance(name, "fine")
