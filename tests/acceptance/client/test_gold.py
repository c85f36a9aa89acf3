"""`quercus gold`, as its users meet it."""

import json
from pathlib import Path

import pytest
from support.command_line import quercus

from quercus.client import Client, Nominal, Specification


@pytest.fixture
def wine(server: str, name: str) -> str:
    with Client(server) as client:
        client.create_model(name, Specification([Nominal("colour", "abc")], ["red", "white"], budget=40))
        client.push(name, [["abc"[k % 3]] for k in range(30)], ids=[f"bottle-{k}" for k in range(30)])
        client.wait_grown(name)
    return name


def run(server: str, *arguments: str, code: int = 0) -> str:
    done = quercus(*arguments, server=server)
    assert done.returncode == code, done.stdout + done.stderr
    return " ".join((done.stderr if code else done.stdout).split())


def test_gold_questions_are_marked_by_row_and_by_file_and_scored(
    server: str, wine: str, tmp_path: Path
) -> None:
    assert "has no gold questions" in run(server, "gold", wine)
    marked = run(server, "gold", wine, "--mark", "bottle-7", "red", "--by", "lea", "--comment", "the label")
    assert marked == f"marked: 1 gold question none is asked yet: quercus policy {wine} --gold-share 0.1"
    file = tmp_path / "gold.csv"
    file.write_text("bottle,colour\nbottle-7,red\nbottle-9,white\nbottle-11,\n")
    given = ("gold", wine, str(file), "--item", "bottle", "--answer-column", "colour")
    assert "marked: 1 gold question (1 were marked already)" in run(server, *given)
    assert "gold questions 100 %" in run(server, "policy", wine, "--gold-share", "1")
    with Client(server) as client:
        for _ in range(2):
            (query,) = client.lease(wine, "ann", wait_s=20.0).queries
            assert query.instance in {"bottle-7", "bottle-9"}
            client.answer(query, "red")
    shown = run(server, "gold", wine)
    assert "bottle-7 red 1 of 1 lea" in shown
    assert "bottle-9 white 0 of 1" in shown
    assert "the label" in shown
    assert "1 of 2 (" in run(server, "labellers", wine)
    lines = [json.loads(line) for line in quercus("gold", wine, "--json", server=server).stdout.splitlines()]
    assert [(each["instance"], each["answered"], each["right"]) for each in lines] == [
        ("bottle-7", 1, 1), ("bottle-9", 1, 0),
    ]  # fmt: skip
    assert "taken back: 1 gold question" in run(server, "gold", wine, "--unmark", "bottle-7")
    assert "bottle-7" not in run(server, "gold", wine)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--mark", "bottle-7", "rosé"], 1, "rosé"),
        (["--mark", "nowhere", "red"], 1, "nowhere"),
        (["--unmark", "bottle-7"], 1, "bottle-7 is not a gold question"),
        (["--mark", "bottle-7", "red", "--unmark", "bottle-8"], 2, "mutually exclusive"),
        (["--item", "x"], 2, "name columns of FILE"),
    ],
)
def test_mistakes_are_named(server: str, wine: str, arguments: list[str], code: int, said: str) -> None:
    assert said in run(server, "gold", wine, *arguments, code=code)


def test_a_row_twice_in_a_file_is_refused_with_its_line(server: str, wine: str, tmp_path: Path) -> None:
    file = tmp_path / "gold.csv"
    file.write_text("id,label\nbottle-1,red\nbottle-1,white\n")
    assert "line 3" in run(server, "gold", wine, str(file), code=1)
