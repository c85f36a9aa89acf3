"""Rows with sets and ranges through every door: pushed, grown, shown, corrected, exported and imported."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from integration.client.serving import Serving
from support.command_line import quercus

from quercus.client import Between, Client, InvalidArgument, Nominal, Numeric, Specification, Statement
from quercus.server.growth.regrowing import regrow_model
from quercus.storage import Store

Row = dict[str, Any]
SKY = Nominal("sky", ["sun", "rain"])
WIND = Numeric("wind", edges=[2.0, 4.0, 6.0])


def rows(count: int = 60) -> tuple[list[Row], list[str | None]]:
    """Return rows of which a third have an uncertain value, and their classes."""
    rng = np.random.default_rng(1)
    found: list[Row] = []
    labels: list[str | None] = []
    for i in range(count):
        up = bool(rng.random() < 0.5)
        row: Row = {"sky": "sun" if up else "rain", "wind": float(rng.integers(0, 5) + 3 * up)}
        if i % 3 == 0:
            row["sky"] = frozenset({"sun", "rain"})
        if i % 5 == 0:
            row["wind"] = Between(row["wind"] - 1.0, row["wind"] + 2.5)
        found.append(row)
        labels.append("up" if up else "down" if i % 4 else None)
    return found, labels


def specification(learner: object = None) -> Specification:
    given = {} if learner is None else {"learner": learner}
    return Specification([SKY, WIND], ["up", "down"], **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "learner", ["active-forest", "abc45", "e2m", "id3", "c45", "averaging", "total-uncertainty"]
)
def test_what_is_served_is_what_the_log_says(
    serving: Serving, client: Client, name: str, learner: str, tmp_path: Path
) -> None:
    given, labels = rows()
    client.create_model(name, specification(learner))
    client.push(name, given[:25], labels[:25], ids=[f"r{i}" for i in range(25)])
    done = client.push(name, given[25:], labels[25:], ids=[f"r{i}" for i in range(25, 60)])
    client.state(name, [Statement("r3", "up")], labeller="a")  # an uncertain row, corrected
    asked = [{"sky": "sun", "wind": 6.0}, {"sky": "rain", "wind": 1.0}, {"sky": {"sun", "rain"}, "wind": 3.0}]
    client.wait_grown(name)
    served = client.classify(name, asked)
    assert [each.label for each in served][:2] == ["up", "down"]
    shown = {each.id: each.values for each in client.instances(name)}
    assert shown["r0"] == {"sky": frozenset({"sun", "rain"}), "wind": Between(*_ends(given[0]["wind"]))}
    assert shown["r1"] == given[1]
    assert done.stored == 35
    again = client.push(name, given[:25], labels[:25], ids=[f"r{i}" for i in range(25)])
    assert (again.stored, again.known) == (0, 25)
    with pytest.raises(Exception, match="with other values"):
        client.push(name, [{"sky": {"sun", "rain"}, "wind": Between(0.0, 9.0)}], labels[:1], ids=["r0"])


def _ends(value: Between) -> tuple[float, float]:
    return value.low, value.high


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"sky": set(), "wind": 1.0}, r"sky.*is a set without values"),
        ({"sky": {"?", None}, "wind": 1.0}, r"sky.*is a set without values"),
        ({"sky": Between(1.0, 2.0), "wind": 1.0}, r"sky.*must be a value or a set of names"),
        ({"sky": "sun", "wind": {"a", "b"}}, r"wind.*must be a value or a Between of numbers"),
        ({"sky": "sun", "wind": Between(2.0, 1.0)}, r"wind.*2.0 to 1.0: the first must be"),
        ({"sky": "sun", "wind": Between(0.0, float("inf"))}, r"wind.*0.0 to inf, must have finite ends"),
        ({"sky": "sun", "wind": Between(float("nan"), 1.0)}, r"wind.*nan to 1.0: the first must be"),
    ],
)
def test_bad_cells_are_named(client: Client, name: str, row: Row, message: str) -> None:
    client.create_model(name, specification())
    with pytest.raises(InvalidArgument, match=message):
        client.push(name, [{"sky": "sun", "wind": 1.0}, row], ["up", "up"])
    assert client.get_model(name).instance_count == 0


def test_a_closed_attribute_refuses_names_outside(client: Client, name: str) -> None:
    sky = Nominal("sky", ["sun", "rain"], max_values=2, overflow="refuse")
    client.create_model(name, Specification([sky], ["up", "down"]))
    with pytest.raises(InvalidArgument, match=r"sky.*is 'hail', but the attribute has 2 values"):
        client.push(name, [{"sky": {"sun", "hail"}}], ["up"])
    with pytest.raises(InvalidArgument, match=r"sky.*is a set of 3 values, at most 2"):
        client.push(name, [{"sky": {"sun", "rain", "hail"}}], ["up"])
    client.push(name, [{"sky": {"sun", "rain"}}], ["up"])


def test_a_set_teaches_its_names(client: Client, name: str) -> None:
    client.create_model(name, specification())
    client.push(name, [{"sky": {"hail", "fog"}, "wind": 1.0}, {"sky": "fog", "wind": 2.0}], ["up", "up"])
    (attribute, _) = client.get_model(name).specification.attributes
    assert attribute.values == ("sun", "rain", "fog", "hail")


def test_a_learner_of_known_values_refuses_by_name(client: Client, name: str) -> None:
    client.create_model(name, specification("belief-entropy"))
    with pytest.raises(InvalidArgument, match=r"wind.*belief-entropy learns from known values alone.*Gao"):
        client.push(name, [{"sky": "sun", "wind": Between(1.0, 2.0)}], ["up"])
    client.push(name, [{"sky": "sun", "wind": 1.0}], ["up"])


@pytest.fixture
def stopped(tmp_path: Path) -> tuple[str, list[Row]]:
    """A store with a model of such rows, whose server has stopped."""
    folder = tmp_path / "own"
    folder.mkdir()
    serving = Serving(folder)
    given, labels = rows(30)
    with Client(serving.address) as client:
        client.create_model("days", specification())
        client.push("days", given, labels, ids=[f"r{i}" for i in range(30)])
        client.push("days", [{"sky": "A|B", "wind": 1.0}], ["up"], ids=["bar"])
        client.wait_grown("days")
    assert serving.stop() == 0
    return serving.store, given


def test_exports_hold_them(stopped: tuple[str, list[Row]], tmp_path: Path) -> None:
    store, given = stopped
    table, lines = tmp_path / "days.csv", tmp_path / "days.jsonl"
    for file in (table, lines):
        done = quercus("export", "days", str(file), "--store", str(store))
        assert done.returncode == 0, done.stderr
    found = {row["id"]: row for row in csv.DictReader(table.read_text().splitlines())}
    low, high = _ends(given[0]["wind"])
    assert found["r0"]["sky"] == "rain|sun"
    assert found["r0"]["wind"] == f"{low:g}..{high:g}"
    assert found["bar"]["sky"] == r"A\|B"
    done = quercus("export", "days", str(tmp_path / "days.parquet"), "--store", str(store))
    assert done.returncode != 0
    assert "wind has the range" in done.stderr
    assert quercus("import", str(lines), "--as", "again", "--store", str(store)).returncode == 0
    assert quercus("check", "--store", str(store)).returncode == 0
    with Store.open(store) as opened:
        last = opened.get_model("days").sequence_committed
        one, two = (regrow_model(opened, each, last) for each in ("days", "again"))
        grown = opened.snapshot("days")
    assert one == two
    assert grown is not None
    assert (grown.as_of, grown.data) == (last, one)  # increment is batch, to the byte
    text = lines.read_text().replace(json.loads(lines.read_text().splitlines()[1])["values"], "AAAA", 1)
    (tmp_path / "bad.jsonl").write_text(text)
    done = quercus("import", str(tmp_path / "bad.jsonl"), "--as", "bad", "--store", str(store))
    assert done.returncode != 0


def test_files_and_lines_of_json(serving: Serving, client: Client, name: str, tmp_path: Path) -> None:
    client.create_model(name, specification())
    file = tmp_path / "days.csv"
    file.write_text("sky,wind,class\nsun|rain,2..5.5,up\nrain,3,down\nfog\\|hail,1,up\n")
    done = quercus("push", name, str(file), server=serving.address)
    assert done.returncode == 0, done.stderr
    line = '{"id": "j", "sky": ["sun", "rain"], "wind": {"low": 1, "high": 2}, "class": "up"}\n'
    done = quercus("push", name, "-", server=serving.address, stdin=line)
    assert done.returncode == 0, done.stderr
    shown = [each.values for each in client.instances(name)]
    both = frozenset({"sun", "rain"})
    assert shown == [
        {"sky": both, "wind": Between(2.0, 5.5)},
        {"sky": "rain", "wind": 3.0},
        {"sky": "fog|hail", "wind": 1.0},
        {"sky": both, "wind": Between(1.0, 2.0)},
    ]
    for wrong, says in (("5..2", "is not a range"), ("1e999..2", "is not a range"), ("..", "is not a range")):
        file.write_text(f"sky,wind,class\nsun,{wrong},up\n")
        done = quercus("push", name, str(file), server=serving.address)
        assert done.returncode != 0
        assert "line 2, column 2 (wind)" in done.stderr
        assert says in done.stderr
