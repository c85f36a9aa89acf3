"""The page that says why a row is predicted as it is, over HTTP."""

import re
from collections.abc import Iterator
from html import unescape

import pytest
from integration.client.serving import Serving
from support.consoles import Visitor

from quercus.client import Client, Nominal, Numeric, Specification, Statement


@pytest.fixture(scope="module")
def client(shared_server: Serving) -> Iterator[Client]:
    with Client(shared_server.address) as client:
        yield client


def test_a_page_says_then_and_now_and_who_changed_it(ann: Visitor, client: Client) -> None:
    attributes = [Numeric("size", edges=[1.0, 2.0]), Nominal("colour", ["red", "green"])]
    client.create_model("w", Specification(attributes, ["oak", "<b>"], learner="abc45", budget=0))
    client.push("w", [[0.5, "red"], [1.5, "green"], [2.5, "red"]], ["oak", None, None], ids=["a/0", "b", "c"])
    client.state("w", [Statement(each, "<b>", "bob", comment="looked <twice>") for each in ("b", "c")])
    client.wait_grown("w")
    row = ann.ask("GET", "/m/w/items/row?id=b").text
    (link,) = re.findall(r'<a href="(/m/w/items/why[^"]*)">', row)
    page = ann.ask("GET", unescape(link))
    assert page.status == 200
    assert re.search(r"<h2>Then: <span[^>]*>oak</span>", page.text)
    assert re.search(r"<h2>Now: <span[^>]*>&lt;b&gt;</span>", page.text)
    assert "oak became &lt;b&gt;" in page.text
    assert "bob on " in page.text
    assert "looked &lt;twice&gt;" in page.text
    assert "the model said oak" in page.text
    assert "<script" not in page.text.partition("<main")[2]

    for at in ("soon", "0001-01-01T00:00%2B10:00", "9" * 19):
        wrong = ann.ask("GET", f"/m/w/items/why?id=b&at={at}")
        assert wrong.status == 400
        assert "must be the number of an event, or a time such as 2026-11-22 09:30 (UTC)" in wrong.text
    assert "at most" not in ann.ask("GET", "/m/w/items/why?id=b&at=1").text
    late = ann.ask("GET", "/m/w/items/why?id=b&at=1000")
    assert late.status == 400
    assert "1000" in late.text
    assert ann.ask("GET", "/m/w/items/why?id=none").status == 404


def test_a_correction_that_others_overrule_changed_nothing(client: Client) -> None:
    """Its event and that of what holds since then are stored together: no tree was ever between them."""
    specification = Specification(
        [Numeric("size", edges=[1.0])], ["oak", "ash"], learner="abc45", budget=4, min_instances=1
    )
    client.create_model("w-joint", specification)
    client.push("w-joint", [[0.5], [1.5]], [None, "ash"], ids=["a", "b"])
    client.wait_grown("w-joint")
    query = client.lease("w-joint", "ann", wait_s=20).queries[0]
    assert query.instance == "a"
    client.answer(query, "oak")
    client.state("w-joint", [Statement("a", "oak", who) for who in ("bob", "cleo")])
    before = client.wait_grown("w-joint").sequence_committed
    (mine,) = [each for each in client.answers("w-joint") if each.labeller == "ann"]
    client.correct_answer("w-joint", mine, "ash", labeller="ann")
    client.wait_grown("w-joint")
    found = client.explain_row("w-joint", "a", before)
    assert (found.now.as_of, found.now.class_name) == (before + 2, "oak")  # of the other two
    assert found.changes == ()
