"""`quercus disputes`, as its users meet it."""

import json

import pytest
from support.command_line import quercus

from quercus.client import Client, Nominal, Specification, Statement


@pytest.fixture
def wine(server: str, name: str) -> str:
    """Ann and bob differ about two of five rows; ann is not sure of one of them."""
    with Client(server) as client:
        client.create_model(
            name, Specification([Nominal("colour", "abc")], ["red", "white", "rosé"], budget=20)
        )
        client.push(name, [["a"]] * 5, ids=[str(k) for k in range(5)])
        said = [Statement(str(k), "red", "ann") for k in range(4)]
        said += [Statement(str(k), "red", "bob") for k in range(3)]
        said += [Statement("3", "white", "bob", comment="pale")]
        said += [
            Statement("4", {"red": 1.0, "white": 0.7, "rosé": 0.7}, "ann"),
            Statement("4", "rosé", "bob"),
        ]
        client.state(name, said)
    return name


def run(server: str, *arguments: str, code: int = 0) -> str:
    done = quercus("disputes", *arguments, server=server)
    assert done.returncode == code, done.stdout + done.stderr
    return " ".join((done.stderr if code else done.stdout).split())


def test_disputes_are_shown_settled_and_taken_back(server: str, wine: str) -> None:
    shown = run(server, wine)
    assert "3 ann red sure" in shown
    assert "bob white sure" in shown
    assert "pale" in shown
    assert "red; less plausible: white 0.7, rosé 0.7 only a guess" in shown
    assert f"2 of 5 rows are in dispute; more: quercus disputes {wine} --agreement" in shown
    assert "3 ann" not in run(server, wine, "--likeliest", "rosé")
    (line,) = run(server, wine, "--json", "--first", "1").splitlines()
    found = json.loads(line)
    assert found["item"] == "3"
    assert [(each["labeller"], each["answer"], each["state"]) for each in found["labels"]] == [
        ("ann", "red", "counts"),
        ("bob", "white", "counts"),
    ]
    assert run(server, wine, "--settle", "3", "white", "--by", "eve").startswith("3: white, by eve (number ")
    assert "1 of 5 rows are in dispute" in run(server, wine)
    assert "taken back" in run(server, wine, "--undo", "3", "--by", "eve")
    assert "2 of 5 rows are in dispute" in run(server, wine)


def test_agreement_is_shown_with_its_numbers(server: str, wine: str) -> None:
    shown = run(server, wine, "--agreement")
    assert "in dispute 2 of 5 rows" in shown
    assert "(10 labels of 5 rows)" in shown
    assert "ann and bob 5 3 60 %" in shown
    assert "bob against the accepted label: 4 of 4 rows the same" in shown  # of 3 no one class holds
    found = json.loads(run(server, wine, "--agreement", "--json"))
    assert (found["shared"], found["disputed"]) == (5, 2)
    assert {cell["said"] for each in found["confusions"] for cell in each["cells"]} == {"red", "rosé"}


def test_what_is_wrong_is_named(server: str, wine: str) -> None:
    assert "beech" in run(server, wine, "--settle", "3", "beech", code=1)
    assert "has adjudicated it" in run(server, wine, "--undo", "3", code=1)
    assert "mutually exclusive" in run(server, wine, "--undo", "3", "--agreement", code=2)
