"""The page of items over HTTP: filters, one row, labels one by one and many at once, exports."""

import csv
import io
import json
import re
from collections.abc import Iterator
from html import escape, unescape
from urllib.parse import quote

import pytest
from integration.client.serving import Serving
from support.consoles import Visitor

from quercus.client import (
    AnswerFilter,
    Client,
    MediaItem,
    Nominal,
    Numeric,
    RowFilter,
    Specification,
    Statement,
)

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360000002000001"
    "e221bc330000000049454e44ae426082"
)
CLASSES = ["yes", "no", "<b>"]


@pytest.fixture(scope="module")
def client(shared_server: Serving) -> Iterator[Client]:
    with Client(shared_server.address) as client:
        yield client


@pytest.fixture
def model(client: Client, request: pytest.FixtureRequest) -> str:
    """120 rows, of which the file labels every third, each with a picture."""
    name = "i-" + re.sub("[^a-z0-9]+", "-", request.node.name)[:50]
    attributes = [Numeric("size", cuts=8), Nominal("colour", ["red", "green", "blue"])]
    client.create_model(name, Specification(attributes, CLASSES, budget=9))
    rows = [[k / 3, ["red", "green", "blue"][k % 3]] for k in range(120)]
    labels = [CLASSES[int(k > 60)] if k % 3 == 0 else None for k in range(120)]
    displays = [[MediaItem("image", "photo", data=PIXEL, alt="a dot")] for _ in rows]
    client.push(name, rows, labels, ids=[f"a/{k}" for k in range(120)], displays=displays)
    client.wait_grown(name)
    return name


def ids(page: str) -> list[str]:
    """The rows of a list, in order."""
    named = re.findall(r'<th scope="row"><a href="[^"]*">(?:<img[^>]*>)?([^<]*)</a>', page)
    return [unescape(found) for found in named]


def test_all_pages_of_a_filter_have_its_rows_once(ann: Visitor, client: Client, model: str) -> None:
    expected = [row.id for row in client.instances(model, RowFilter(labelled=False), "doubt desc")]
    assert len(expected) == 80
    found, address = [], f"/m/{model}/items?known=no&order=doubt+desc"
    for _ in range(4):
        page = ann.get(address).text
        found += ids(page)
        following = re.search(r'href="([^"]*)">Next page', page)
        if following is None:
            break
        address = unescape(following[1])
    assert found == expected
    assert "80 rows of this filter" in page
    assert ann.get(f"/m/{model}/items?text=A/11").text.count('name="row"') == 11


def test_a_wrong_filter_says_what_may_stand_there(ann: Visitor, model: str) -> None:
    for field, value, said in (
        ("doubt", "2", "doubt: is '2', must be a number from 0 to 1, or a percentage"),
        ("order", "size", "order: is 'size', must be one of pushed, "),
        ("class", "maybe", "class: 'maybe' is not a class"),
        ("page", "x", "was not made by a listing of rows of this model with this filter and order"),
    ):
        page = ann.get(f"/m/{model}/items?{field}={value}")
        assert page.status == 400
        assert said in unescape(page.text)
        assert "No row passes" not in page.text  # it is not known whether one does


def test_a_row_is_labelled_corrected_and_opened_again(ann: Visitor, client: Client, model: str) -> None:
    path = f"/m/{model}/items/row?id=a%2F1"
    page = ann.get(path).text
    assert "No labeller has said anything about it." in page
    assert "&lt;b&gt;" in page
    assert "<b>" not in re.sub(r"<b>[^<]*[0-9.]+</b>", "", page)
    picture = re.search(r'<img src="([^"]*)" alt="a dot"', page)
    assert picture is not None
    assert ann.ask("GET", unescape(picture[1])).headers["content-type"] == "image/png"
    for given in ("no", "yes"):
        done = ann.form(f"/m/{model}/items/say", {"id": "a/1", "act": "label", "class": given})
        assert done.status == 303
        assert f"a/1: {given}." in ann.get(done.headers["location"]).text
    row = client.get_instance(model, "a/1")
    assert row.contour == (1.0, 0.0, 0.0)
    assert [each.author for each in row.history if each.kind == "statement"] == ["ann", "ann"]
    done = ann.form(f"/m/{model}/items/say", {"id": "a/1", "act": "take-back"})
    assert "the row may be asked again" in ann.get(done.headers["location"]).text
    assert client.get_instance(model, "a/1").contour == (1.0, 1.0, 1.0)


def test_the_way_back_from_a_row_leads_to_the_same_list(ann: Visitor, model: str) -> None:
    here = f"/m/{model}/items?text=a+1~&known=no"
    row = ann.get(f"/m/{model}/items/row?id=a%2F1&back={quote(here)}").text
    assert f'href="{escape(here)}">Back to the list' in row
    given = {"act": "preview", "of": "checked", "row": ["a/1"], "label": "yes", "back": here}
    assert f'href="{escape(here)}">Change nothing' in ann.form(f"/m/{model}/items/bulk", given).text


def test_a_script_cannot_send_what_only_a_form_sends(ann: Visitor, model: str) -> None:
    ann.get(f"/m/{model}/items")
    for path in ("items/bulk", "items/say", "desk/policy", "extend", "classify", "disputes/settle"):
        assert ann.script(f"/m/{model}/{path}", {"act": 5, "row": 7, "budget": [4]}).status == 415


def test_many_rows_are_labelled_after_a_look_and_all_of_it_is_taken_back(
    ann: Visitor, client: Client, model: str
) -> None:
    ann.get(f"/m/{model}/items")
    ann.form(f"/m/{model}/items/say", {"id": "a/1", "act": "label", "class": "no"})
    before = {row.id: row.contour for row in client.instances(model)}
    fields = {"act": "preview", "of": "all", "label": "yes", "back": f"/m/{model}/items", "f-known": "no"}
    page = ann.form(f"/m/{model}/items/bulk", fields).text
    assert "79 rows would be labelled yes by ann." in page
    assert {row.id: row.contour for row in client.instances(model)} == before  # nothing is said yet
    plan = re.search(r'name="plan" value="([^"]+)"', page)
    assert plan is not None
    done = ann.form(f"/m/{model}/items/bulk", {"act": "do", "plan": plan[1]})
    assert done.status == 303
    shown = ann.get(done.headers["location"]).text
    assert "79 rows are labelled yes." in shown
    assert client.row_page(model, RowFilter(labelled=False)).total == 0
    again = ann.form(f"/m/{model}/items/bulk", {"act": "do", "plan": plan[1]})
    assert again.status == 409
    undo = ann.form(f"/m/{model}/items/bulk", {"act": "undo", "plan": plan[1]})
    assert undo.status == 303
    assert {row.id: row.contour for row in client.instances(model)} == before


def test_what_was_said_before_is_there_again_after_the_undo(ann: Visitor, client: Client, model: str) -> None:
    ann.get(f"/m/{model}/items")
    for row, name in (("a/1", "no"), ("a/2", "yes")):
        ann.form(f"/m/{model}/items/say", {"id": row, "act": "label", "class": name})
    rows = ["a/1", "a/2", "a/4"]
    for label, sentence, after in (
        ("yes", "2 rows would be labelled yes by ann.", [(1.0, 0.0, 0.0)] * 3),
        ("", "2 rows would lose their labels by ann.", [(1.0, 1.0, 1.0)] * 3),
    ):
        fields = {"act": "preview", "of": "checked", "label": label, "back": f"/m/{model}/items", "row": rows}
        page = ann.form(f"/m/{model}/items/bulk", fields).text
        assert sentence in page
        plan = re.search(r'name="plan" value="([^"]+)"', page)
        assert plan is not None
        ann.form(f"/m/{model}/items/bulk", {"act": "do", "plan": plan[1]})
        assert [client.get_instance(model, row).contour for row in rows] == after
        ann.form(f"/m/{model}/items/bulk", {"act": "undo", "plan": plan[1]})
        assert [client.get_instance(model, row).contour for row in rows] == [
            (0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (1.0, 1.0, 1.0)
        ]  # fmt: skip


def test_no_more_rows_than_stated_are_labelled_at_once(ann: Visitor, client: Client) -> None:
    client.create_model("i-large", Specification([Numeric("size")], ["yes", "no"], budget=0))
    client.push("i-large", [[float(k)] for k in range(1001)])
    ann.get("/m/i-large/items")
    fields = {"act": "preview", "of": "all", "label": "yes", "back": "/m/i-large/items"}
    page = ann.form("/m/i-large/items/bulk", fields)
    assert page.status == 400
    assert "rows: are 1,001, at most 1,000 at once: narrow the filter" in unescape(page.text)
    none = ann.form("/m/i-large/items/bulk", fields | {"of": "checked"})
    assert "rows: are missing: check the rows to label" in unescape(none.text)


def test_what_is_listed_is_exported(ann: Visitor, client: Client, model: str) -> None:
    expected = [row.id for row in client.instances(model, RowFilter(class_name="yes"), "pushed desc")]
    table = ann.get(f"/m/{model}/items.csv?class=yes&order=pushed+desc")
    assert table.headers["content-disposition"] == f'attachment; filename="{model}-items.csv"'
    rows = list(csv.DictReader(io.StringIO(table.text)))
    assert [row["item"] for row in rows] == expected
    assert {row["class"] for row in rows} == {"yes"}
    lines = ann.get(f"/m/{model}/items.jsonl?class=yes&order=pushed+desc").text.splitlines()
    assert [json.loads(line)["item"] for line in lines] == expected
    assert ann.get(f"/m/{model}/items.xml").status == 404


def test_own_answers_are_filtered_paged_and_corrected_together(
    ann: Visitor, client: Client, model: str
) -> None:
    given = [f"a/{k}" for k in range(1, 75)]
    client.state(model, [Statement(row, CLASSES[k % 2]) for k, row in enumerate(given)], labeller="ann")
    client.state(model, [Statement("a/1", "no")], labeller="ann")
    base, found = f"/m/{model}/label/history", []
    address = base
    for _ in range(3):
        page = ann.get(address).text
        found += re.findall(r'<strong class="break"><a [^>]*>([^<]*)</a>', page)
        older = re.search(r'href="([^"]*)">Older answers', page)
        if older is None:
            break
        address = unescape(older[1])
    assert found == ["a/1", *reversed(given)]  # the newest first, each once, the corrected one twice
    assert "colour" in page  # the values of its row
    noes = ann.get(f"{base}?class=no&state=now").text
    assert noes.count('name="row" value="a/') == 38
    fields = {
        "act": "preview",
        "of": "answers",
        "label": "yes",
        "back": base,
        "f-class": "no",
        "f-state": "now",
    }
    page = ann.form(f"/m/{model}/items/bulk", fields).text
    assert "38 rows would be labelled yes by ann." in page
    assert page.count("you said no") == 38
    plan = re.search(r'name="plan" value="([^"]+)"', page)
    assert plan is not None
    done = ann.form(f"/m/{model}/items/bulk", {"act": "do", "plan": plan[1]})
    assert "Undo all of it" in ann.get(done.headers["location"]).text
    yes = client.answers(model, AnswerFilter(labellers=["ann"], classes=["yes"], states=["counts"]))
    assert len(list(yes)) == 74
    ann.form(f"/m/{model}/items/bulk", {"act": "undo", "plan": plan[1]})
    noes = client.answers(model, AnswerFilter(labellers=["ann"], classes=["no"], states=["counts"]))
    assert len(list(noes)) == 38
    assert "None of your answers passes this filter." in ann.get(f"{base}?row=nobody").text
    wrong = ann.get(f"{base}?state=maybe")
    assert wrong.status == 400
    assert "state: is 'maybe', must be one of now, past" in unescape(wrong.text)
