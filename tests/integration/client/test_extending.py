"""Clients of a model that gets further classes and attributes: the library, and the command line."""

import json
from collections.abc import Iterator

import pytest
from integration.client.serving import Serving
from support.command_line import quercus

from quercus.client import AlreadyExists, Client, InvalidArgument, Nominal, Numeric, Specification, Statement
from quercus.client.bridges.arriving import RowBridge
from quercus.client.bridges.messages import MessageFormat


@pytest.fixture(scope="module")
def client(shared_server: Serving) -> Iterator[Client]:
    with Client(shared_server.address) as client:
        yield client


def made(client: Client, name: str) -> None:
    attributes = [Numeric("size"), Nominal("colour", ["red", "green"])]
    client.create_model(name, Specification(attributes, ["a", "b"], budget=9))
    client.push(name, [[k / 3, ["red", "green"][k % 2]] for k in range(12)], ["a", "b"] * 4 + [None] * 4)
    client.wait_grown(name)


def test_a_client_goes_on_with_rows_of_before_and_of_now(shared_server: Serving, client: Client) -> None:
    made(client, "later")
    with Client(shared_server.address) as other:
        before = other.classify("later", [[1.0, "red"]])  # it remembers the attributes
        extended = client.extend_model(
            "later", classes=["rust"], attributes=[Numeric("humidity"), Nominal("wind")]
        )
        assert extended.specification.classes == ("a", "b", "rust")
        assert [(e.sequence, e.classes, e.attributes) for e in extended.extensions] == [
            (13, ("rust",), ("humidity", "wind"))
        ]
        other.push("later", [[1.0, "green"]], ["a"], ids=["old"])
        client.push("later", [[1.0, "red", 0.9, "west"]], ["rust"], ids=["new"])
        client.push(
            "later", [{"size": 2.0, "colour": None, "wind": "east"}], [{"a": 1.0, "rust": 0.5}], ids=["named"]
        )
        last = client.wait_grown("later").sequence_grown
        now = client.classify("later", [[1.0, "red", 0.9, "west"]], min_sequence=last)
        again = other.classify("later", [[1.0, "red"]], min_sequence=last)
    assert (before.classes, now.classes, again.classes) == (("a", "b"), *[("a", "b", "rust")] * 2)
    assert client.get_instance("later", "old").values == {
        "size": 1.0, "colour": "green", "humidity": None, "wind": None
    }  # fmt: skip
    assert client.get_instance("later", "named").contour == (1.0, 0.0, 0.5)
    with pytest.raises(InvalidArgument, match=r"classes\[0\]: is 'rust'"):
        client.extend_model("later", classes=["rust"])
    with pytest.raises(InvalidArgument, match="must be a list"):
        client.extend_model("later", classes="mould")
    client.extend_model("later", classes=["mould"], request_id="once")
    assert len(client.extend_model("later", classes=["mould"], request_id="once").specification.classes) == 4
    with pytest.raises(AlreadyExists, match="once"):
        client.extend_model("later", classes=["moss"], request_id="once")


def test_the_command_line_adds_them_in_words(shared_server: Serving, client: Client) -> None:
    server = shared_server.address
    made(client, "typed")
    done = quercus(
        "models", "update", "typed", "--add-class", "rust", "--add-attribute", "humidity:number",
        "--add-attribute", "wind:west,east", "--budget", "20", server=server,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    shown = quercus("models", "show", "typed", server=server).stdout
    assert "a, b, rust" in shown
    assert "class rust and attributes humidity, wind came with event 13" in " ".join(shown.split())
    model = json.loads(quercus("models", "show", "typed", "--json", server=server).stdout)
    assert model["specification"]["attributes"][-1]["values"] == ["west", "east"]
    assert (model["specification"]["budget"], model["extensions"][0]["sequence"]) == (20, 13)
    for flag, text, code, reason in (
        ("--add-attribute", "humidity", 2, "NAME:number"),
        ("--add-attribute", "humidity:number", 1, "'humidity'"),
        ("--add-class", "rust", 1, "'rust'"),
    ):
        wrong = quercus("models", "update", "typed", flag, text, server=server)
        assert (wrong.returncode, reason in wrong.stderr) == (code, True), wrong.stderr


def test_a_list_goes_on_over_an_extension(client: Client) -> None:
    """The second page has a class that the model did not have when the list began."""
    client.create_model("listed-on", Specification([Numeric("x", edges=[0.5])], ["a", "b"], budget=0))
    client.push("listed-on", [[k % 2] for k in range(1001)], ids=[f"r{k}" for k in range(1001)])
    client.state("listed-on", [Statement(f"r{k}", who, who) for k in range(1001) for who in "ab"])
    found = client.disputes("listed-on")
    first = next(found)
    client.extend_model("listed-on", classes=["c"])
    *_, last = found
    assert (first.instance, list(first.known), last.instance) == ("r0", ["a", "b"], "r1000")
    assert list(last.known) == list(last.labels[0].plausibility) == ["a", "b", "c"]


def test_messages_of_a_bus_may_lack_what_came_later(client: Client) -> None:
    """As rows of every other client may; a field that the model had from the start is still asked for."""
    made(client, "later-on-a-bus")
    client.extend_model("later-on-a-bus", attributes=[Numeric("humidity")])
    pusher: RowBridge[None] = RowBridge(client, "later-on-a-bus", None, MessageFormat())
    pusher.read_attributes()
    assert pusher.push([pusher.read({"topic": "t"}, b'{"id": "n", "size": 1}', "n")])
    assert (pusher.tally.stored, pusher.tally.rejected) == (0, 1)
    assert pusher.push([pusher.read({"topic": "t"}, b'{"id": "m", "size": 1, "colour": "red"}', "m")])
    assert (pusher.tally.stored, pusher.tally.rejected) == (1, 1)
    assert client.get_instance("later-on-a-bus", "m").values["humidity"] is None
