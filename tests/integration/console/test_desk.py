"""The desk of whoever leads a model: what it does, and who is refused."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from integration.client.serving import Serving
from support.consoles import ConsoleProcess, Visitor

from quercus.client import Client, Guidance, Nominal, NotFound, Numeric, Specification
from quercus.server.gate.access import issue_token
from quercus.storage import Store, file_url

FORMS = ("budget", "policy", "gold", "gold-back", "gold-share", "guidance", "rows", "delete")


class World:
    """A server with tokens, a console, and people: an operator, a lead of one model, a labeller, a reader."""

    def __init__(self, folder: Path) -> None:
        self.serving = Serving(folder, 0, "--access", "tokens")
        people = {
            "olga": ("operator", None), "lead": ("operator", ["m"]), "ann": ("labeller", None), "bob": ("reader", None),
        }  # fmt: skip
        with Store.open(file_url(folder / "quercus.db")) as store:
            self.tokens = {
                name: issue_token(store.access, name, [role], models)[0]
                for name, (role, models) in people.items()
            }
        self.console = ConsoleProcess(self.serving.address)
        self.olga = Client(self.serving.address, token=self.tokens["olga"])

    def make(self, name: str) -> None:
        attributes = [Numeric("x", cuts=8), Nominal("soil", ("clay", "lime"))]
        self.olga.create_model(name, Specification(attributes, ("red", "white"), budget=9))
        self.olga.push(
            name, [[k, ("clay", "lime")[k % 2]] for k in range(8)], ids=[f"b{k}" for k in range(8)]
        )

    def visitor(self, name: str) -> Visitor:
        found = Visitor(self.console.port)
        assert found.sign_in(token=self.tokens[name]).status == 303
        return found


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("desk"))
    made.make("m")
    made.make("other")
    yield made
    made.olga.close()
    assert "Traceback" not in made.console.stop()
    made.serving.stop()


def send(visitor: Visitor, model: str, act: str, **fields: object) -> str:
    """Send a form of the desk, and return what the page after it says."""
    answer = visitor.form(f"/m/{model}/desk/{act}", fields)
    page = visitor.get(answer.headers["location"]) if answer.status == 303 else answer
    found = re.search(r'class="(?:note|fault break)" role="(?:status|alert)">([^<]*)<', page.text)
    return found[1] if found else page.text


def upload(visitor: Visitor, model: str, name: str, content: str, *, act: str = "rows", **fields: str) -> str:
    visitor.get(f"/m/{model}/desk")
    parts = [
        f'--b\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'
        for key, value in ({"form_token": visitor.form_token} | fields).items()
    ]
    parts.append(
        f'--b\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n{content}\r\n--b--\r\n'
    )
    answer = visitor.ask(
        "POST",
        f"/m/{model}/desk/{act}",
        "".join(parts).encode(),
        content_type="multipart/form-data; boundary=b",
    )
    page = visitor.get(answer.headers["location"]) if answer.status == 303 else answer
    found = re.search(r'class="(?:note|fault break)" role="(?:status|alert)">([^<]*)<', page.text)
    return found[1] if found else page.text


def test_only_who_leads_the_model_sees_its_desk(world: World) -> None:
    before = (world.olga.get_model("m"), world.olga.labelling_policy("m"))
    for name in ("ann", "bob"):
        visitor = world.visitor(name)
        assert "/m/m/desk" not in visitor.get("/m/m").text
        answer = visitor.get("/m/m/desk")
        assert answer.status == 403
        assert f"The token of {name} does not allow that" in answer.text
        for act in FORMS:
            assert visitor.form(f"/m/m/desk/{act}", {"typed": "m", "budget": "1", "title": "x"}).status == 403
    lead = world.visitor("lead")
    assert lead.get("/m/m/desk").status == 200
    assert "/m/m/desk" in lead.get("/m/m").text
    for act in FORMS:  # of a model that is not its own, whether it exists or not
        for model in ("other", "nothing"):
            assert lead.form(f"/m/{model}/desk/{act}", {"typed": model, "budget": "1"}).status == 403
    assert lead.get("/m/other/desk").status == 403
    assert lead.form("/m/m/desk/policy", {"budget": "1", "form_token": "x" * 43}).status == 403
    assert lead.form("/m/m/desk/delete", {"typed": "m"}, sec_fetch_site="cross-site").status == 403
    assert lead.form("/m/m/desk/nothing", {}).status == 404
    assert Visitor(world.console.port).get("/m/m/desk").status == 303
    assert (world.olga.get_model("m").specification, world.olga.labelling_policy("m")) == (
        before[0].specification, before[1],
    )  # fmt: skip


def test_budget_and_assignment_are_set_and_count(world: World) -> None:
    """Each by a form of its own, which is one call: what is refused changes nothing."""
    lead = world.visitor("lead")
    lead.get("/m/m/desk")
    assert send(lead, "m", "budget", budget="20").startswith("The budget is set: 20 answers")
    fields = {
        "answers_per_query": "2",
        "per_hour": "100",
        "per_labeller": "",
        "labellers": "bea\r\n carl ,bea",
    }
    assert send(lead, "m", "policy", **fields).startswith("Who labels is set")
    policy = world.olga.labelling_policy("m")
    assert (policy.answers_per_query, policy.per_hour, policy.per_labeller) == (2, 100, None)
    assert policy.labellers == ("bea", "carl")
    assert world.olga.get_model("m").budget == 20
    with Client(world.serving.address, token=world.tokens["ann"]) as ann:
        assert ann.lease("m", "ann").idle == "not_assigned"
    assert "Others label this model" in world.visitor("ann").get("/m/m/label").text
    for act, given, fault in (
        (
            "budget",
            {"budget": "x"},
            "Answers in all: is &#39;x&#39;, must be a whole number in [0, 1,000,000]",
        ),
        ("budget", {"budget": "-1"}, "is &#39;-1&#39;, must be a whole number in [0, 1,000,000]"),
        (
            "budget",
            {"budget": "9999999999"},
            "is &#39;9999999999&#39;, must be a whole number in [0, 1,000,000]",
        ),
        ("budget", {"budget": ""}, "Answers in all: is &#39;&#39;, must be a whole number"),
        (
            "policy",
            {"answers_per_query": "21"},
            "Labellers who answer each query: is &#39;21&#39;, must be a whole number in [1, 20]",
        ),
        ("policy", {"answers_per_query": "0"}, "is &#39;0&#39;, must be a whole number in [1, 20]"),
        ("policy", {"labellers": "x" * 300}, "labeller 1: has 300 characters"),
        ("policy", {"labellers": "dora", "per_hour": "many"}, "must be a whole number in [0, 2,147,483,647]"),
    ):
        page = lead.form(f"/m/m/desk/{act}", given)
        assert page.status == 400
        assert fault in page.text, re.findall(r'role="alert">([^<]*)<', page.text)
    assert (world.olga.labelling_policy("m"), world.olga.get_model("m").budget) == (policy, 20)
    send(lead, "m", "policy", answers_per_query="", labellers="")
    assert world.olga.labelling_policy("m").labellers == ()
    assert send(lead, "m", "budget", budget="9").startswith("The budget is set: 9 answers")


def test_guidelines_are_text_and_nothing_else(world: World) -> None:
    """Markup, scripts and addresses of other kinds stay text, for the lead and for the labellers."""
    lead = world.visitor("lead")
    lead.get("/m/m/desk")
    evil = '<script>alert(1)</script>\r\n\r\njavascript:alert(2) https://a.example/"onx=1 [x](javascript:1)'
    fields = {
        "title": "Bottles <b>", "text": evil, "example-class": ["red", "white"], "example-row": ["b1", ""],
        "example-remark": ["<img src=x onerror=alert(3)>", "gone"],
    }  # fmt: skip
    assert send(lead, "m", "guidance", **fields).startswith("The guidelines are saved")
    guidance = world.olga.get_model("m").specification.guidance
    assert guidance is not None
    assert [(each.class_name, each.instance) for each in guidance.examples] == [("red", "b1")]
    shown = world.visitor("ann").get("/m/m/label/guidelines/m").text
    for page in (lead.get("/m/m/desk").text, lead.get("/").text, shown):
        assert "<script>alert" not in page
        assert "<img" not in page
        assert "Bottles <b>" not in page
        assert 'href="javascript' not in page
    assert 'href="https://a.example/"' in shown
    assert "x 1" in shown  # a value of the example
    assert "Bottles &lt;b&gt;" in lead.get("/").text
    bad = lead.form(
        "/m/m/desk/guidance",
        {"title": "t", "example-class": "red", "example-row": "b99", "example-remark": "r"},
    )
    assert bad.status == 400
    assert "which is not a row of m" in bad.text
    assert 'value="b99"' in bad.text  # what was typed is still there
    assert send(lead, "m", "guidance", title="", text="").startswith("The guidelines are saved")
    assert world.olga.get_model("m").specification.guidance is None
    assert world.visitor("ann").get("/m/other/label/guidelines/other").status == 200
    assert lead.get("/m/m/label/guidelines/other").status == 403


def test_rows_of_a_file_are_added_and_the_others_named(world: World) -> None:
    lead = world.visitor("lead")
    rows = world.olga.get_model("m").instance_count
    said = upload(
        lead,
        "m",
        "new.csv",
        "id,x,soil,kind\nn1,1.5,clay,red\nn2,oops,lime,red\nn3,2,lime,\n",
        id="id",
        **{"class": "kind"},
    )
    assert said.startswith("Added: 2 rows. Refused: 1, the first in line 3:")
    assert world.olga.get_model("m").instance_count == rows + 2
    assert list(world.olga.get_instance("m", "n1").contour) == [1.0, 0.0]
    again = "id,x,soil,kind\nn1,1.5,clay,red\n"
    told = upload(lead, "m", "new.csv", again, id="id", **{"class": "kind"})
    assert told == "Added: 0 rows. Already there: 1."
    assert "with another label" in upload(lead, "m", "new.csv", again, id="id")
    for name, content, fields, fault in (
        ("a.exe", "x", {}, "must end in .csv"),
        ("a.csv", "x,soil\n1,clay\n", {"class": "nope"}, "nope"),
        ("a.csv", "soil\nclay\n", {}, "x"),
        ("a.csv", "", {}, "a.csv"),
    ):
        told = upload(lead, "m", name, content, **fields)
        assert fault in told
        assert "quercus-console-" not in told  # where it was kept
    assert world.olga.get_model("m").instance_count == rows + 2


def test_a_file_makes_a_row_a_gold_question_once(world: World) -> None:
    lead = world.visitor("lead")
    told = upload(lead, "m", "gold.csv", "id,label\nb1,red\nb2,red\nb1,white\n", act="gold")
    assert told == "file: gold.csv: line 4: has row &#39;b1&#39; twice"
    assert "has a header but no rows" in upload(lead, "m", "gold.csv", "id,label\n", act="gold")
    assert world.olga.gold_questions("m") == []


def test_each_form_of_gold_questions_does_one_thing(world: World) -> None:
    """So what is said of it is said of the whole of it."""
    lead = world.visitor("lead")
    bad = {"gold_share": "200", "unmark": "none"}
    assert send(lead, "m", "gold", marks="b1, red", **bad) == "1 row marked."
    assert send(lead, "m", "gold-share", gold_share="10") == (
        "10 % of the queries are gold questions from now on."
    )
    assert send(lead, "m", "gold-share", gold_share="200").startswith(
        "Share of the queries, in percent: is &#39;200&#39;"
    )
    assert send(lead, "m", "gold") == "rows: name one, with its class, or choose a file of them"
    assert send(lead, "m", "gold-back") == "rows: check those whose marks to take back"
    assert [each.instance for each in world.olga.gold_questions("m")] == ["b1"]
    assert send(lead, "m", "gold-back", unmark="b1") == "1 row unmarked."
    assert world.olga.gold_questions("m") == []
    assert world.olga.labelling_policy("m").gold_share == 0.1
    world.olga.set_labelling_policy("m", replace(world.olga.labelling_policy("m"), gold_share=0.0))


def test_answers_are_sent_as_files(world: World) -> None:
    world.olga.wait_grown("other")
    for _ in range(2):
        (query,) = world.olga.lease("other", "ann", wait_s=20).queries
        world.olga.answer(query, "red", comment="=1+1")
    olga = world.visitor("olga")
    lines = olga.get("/m/other/desk/answers.jsonl")
    assert lines.headers["content-disposition"] == 'attachment; filename="other-answers.jsonl"'
    assert [json.loads(line)["answer"] for line in lines.text.splitlines()] == ["red", "red"]
    csv = olga.get("/m/other/desk/answers.csv").text.splitlines()
    assert csv[0].startswith("number,time,item,labeller,answer")
    assert len(csv) == 3
    assert "'=1+1" in csv[1]
    assert olga.get("/m/other/desk/answers.exe").status == 404
    assert "2 of 9 answers" in olga.get("/m/other/desk").text
    assert re.search(
        r'<th scope="row">ann</th><td>2</td><td>2</td><td>2</td>', olga.get("/m/other/desk").text
    )
    assert world.visitor("lead").get("/m/other/desk/answers.csv").status == 403
    empty = world.visitor("lead").get("/m/m/desk/answers.csv")
    assert empty.text.splitlines()[0].startswith("number,time")


def test_a_model_is_deleted_by_its_name_alone(world: World) -> None:
    world.make("gone")
    olga = world.visitor("olga")
    olga.get("/m/gone/desk")
    for typed in ("", "Gone", "gone ", "m"):
        page = olga.form("/m/gone/desk/delete", {"typed": typed})
        assert page.status == 400
        assert "type gone to delete it" in page.text
    assert world.olga.get_model("gone").name == "gone"
    assert send(olga, "gone", "delete", typed="gone") == "The model gone is deleted."
    with pytest.raises(NotFound):
        world.olga.get_model("gone")
    assert world.olga.get_model("m").specification.guidance in (None, Guidance())
