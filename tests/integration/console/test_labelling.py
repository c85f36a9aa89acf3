"""Labelling over HTTP, with forms as without scripts and with JSON as scripts send it."""

import asyncio
import http.client
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from html import unescape

import pytest
from integration.client.serving import Serving
from support.consoles import ConsoleProcess, Visitor

from quercus.client import AttributeView, Client, Nominal, Numeric, Presentation, Specification
from quercus.client.aio import Client as AsyncClient
from quercus.client.keys import UNSEEN_S
from quercus.console.labeller_queue import LabellerAction, LabellerQueue

CLASSES = ["x", "s", "o"]


@pytest.fixture(scope="module")
def client(shared_server: Serving) -> Iterator[Client]:
    with Client(shared_server.address) as client:
        yield client


@pytest.fixture
def model(client: Client, request: pytest.FixtureRequest) -> str:
    name = "c-" + re.sub("[^a-z0-9]+", "-", request.node.name)[:60]
    client.create_model(name, Specification([Nominal("X", "abc"), Nominal("Y", "de")], CLASSES, budget=8))
    rows = [{"X": x, "Y": y} for x in "abc" for y in "de"] * 3
    client.push(name, rows, ids=[f"row-{k}" for k in range(len(rows))])
    client.wait_grown(name)
    return name


def fields(text: str) -> dict[str, str]:
    """The hidden fields of the query that a page shows."""
    found = {}
    for name in ("query", "lease_token", "shown"):
        match = re.search(f'name="{name}" value="([^"]*)"', text)
        assert match is not None, text[:2000]
        found[name] = unescape(match[1])
    return found


def look_at(ann: Visitor, base: str) -> str:
    """Load the page with the query, and look at it."""
    page = ann.get(base).text
    time.sleep(UNSEEN_S)
    return page


def said(client: Client, model: str) -> list[tuple[str, str]]:
    return [(each.kind, each.text) for each in client.answers(model)]


def test_a_console_that_ends_while_a_page_waits_says_nothing_of_it(
    client: Client, shared_server: Serving
) -> None:
    """The page waits up to 20 s for a query; the program ends after 3."""
    client.create_model("c-waits", Specification([Numeric("x")], ["yes", "no"], budget=5))
    console = ConsoleProcess(shared_server.address)
    visitor = Visitor(console.port)
    visitor.get("/sign-in")
    visitor.sign_in(name="ann")
    wanted = {"page": "p", "have": [], "wait_s": 20, "count": 1}
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(visitor.script, "/m/c-waits/label/next", wanted)
        time.sleep(1.0)
        said = console.stop()
        assert (
            isinstance(asked.exception(30), http.client.HTTPException | OSError)
            or asked.result().status >= 500
        )
    assert "Traceback" not in said


def test_forms_alone_answer_all_kinds(ann: Visitor, client: Client, model: str) -> None:
    base = f"/m/{model}/label"
    for path, more in (
        ("answer", {"class": "s", "comment": "clear"}),
        ("answer", {"several": ["x", "o"]}),
        ("answer", {"plausibility-0": "1", "plausibility-1": ".5", "plausibility-2": "0"}),
        ("refuse", {}),
        ("skip", {}),
        ("postpone", {}),
    ):
        shown = look_at(ann, base)
        assert ann.form(f"{base}/{path}", fields(shown) | more).headers["location"] == base
    assert said(client, model) == [
        ("answered", "s"),
        ("answered", "x|o"),
        ("answered", "x:1.0 s:0.5 o:0.0"),
        ("refused", ""),
    ]
    answers = list(client.answers(model))
    assert answers[0].comment == "clear"
    assert answers[0].labeller == "ann"
    assert answers[0].took_s is not None
    steps = [step.kind for step in client.query_history(model)]
    assert (steps.count("skipped"), steps.count("postponed")) == (1, 1)
    assert "Postponed" in ann.get(base).text


def test_a_second_click_on_a_form_answers_no_query_that_nobody_has_seen(
    ann: Visitor, client: Client, model: str
) -> None:
    """The first page goes on to the next query, and the second click finds the button of that one."""
    base = f"/m/{model}/label"
    expected = []
    for act in ("answer", "refuse", "skip"):
        first = fields(look_at(ann, base))
        ann.form(f"{base}/answer", first | {"class": "s"})
        ann.form(
            f"{base}/answer", first | {"class": "s"}
        )  # before the next page is there: the same answer, once
        expected.append(("answered", "s"))
        since = time.monotonic()
        second = fields(ann.get(base).text)
        ann.form(f"{base}/{act}", second | {"class": "x"})
        took_s = time.monotonic() - since
        page = ann.get(base).text
        if "appeared only with your second click" in page:
            assert fields(page) == second
        else:
            assert took_s > UNSEEN_S  # the machine is busy: this was no double click
            expected += {"answer": [("answered", "x")], "refuse": [("refused", "")], "skip": []}[act]
    assert said(client, model) == expected


def test_the_time_of_a_lease_that_was_lost_does_not_count(shared_server: Serving, client: Client) -> None:
    """On a page without scripts, a labeller who leases a query again has looked at it since then."""
    model = "c-leased-again"
    client.create_model(model, Specification([Nominal("X", "abc")], CLASSES, budget=2))
    client.push(model, [{"X": "a"}])
    client.wait_grown(model)

    async def label() -> float:
        async with AsyncClient(shared_server.address) as mine:
            queue = LabellerQueue(mine, model, "ann", lease_s=1.0)
            (lost,) = await queue.next_queries("", wait_s=60.0)
            while queue.find_held(lost.name):
                await asyncio.sleep(0.05)
            again_at = time.monotonic()
            (again,) = await queue.next_queries("", wait_s=60.0)
            assert again.name == lost.name
            await queue.submit_action(
                LabellerAction("answer", again.name, again.lease_token, "x"), tuple(CLASSES)
            )
            return time.monotonic() - again_at

    longest_s = asyncio.run(label())
    (answer,) = client.answers(model)
    assert answer.took_s is not None
    assert answer.took_s <= longest_s


def test_what_was_shown_is_kept_with_the_answer(ann: Visitor, client: Client, model: str) -> None:
    base = f"/m/{model}/label"
    versions = []
    for look in (None, Presentation([AttributeView("X", title="side")]), Presentation(withheld=["reason"])):
        if look is not None:
            client.update_model(model, presentation=look)
        page = look_at(ann, base)
        ann.form(f"{base}/answer", fields(page) | {"class": "s"})
        client.wait_grown(model)
        versions.append(client.get_model(model).specification.presentation)
    first, second, third = (each.shown for each in client.answers(model))
    assert re.fullmatch(r"presentation=- display=- tree=\d+( guess=\d)?", first)
    assert re.fullmatch(r"presentation=[0-9a-f]{16} display=- tree=\d+( guess=\d)?", second)
    assert re.fullmatch(r"presentation=[0-9a-f]{16} display=- tree=-", third)
    assert second.split()[0] != third.split()[0]
    lease = fields(look_at(ann, base)) | {"class": "s", "shown": "x" * 201, "back": "history"}
    ann.form(f"{base}/answer", lease)
    assert "shown: has 201 characters, must have at most 200" in ann.get(f"{base}/history").text


def test_a_page_loaded_twice_shows_the_same_query(ann: Visitor, model: str) -> None:
    base = f"/m/{model}/label"
    first = fields(ann.get(base).text)
    assert fields(ann.get(base).text) == first
    other = Visitor(ann.port)
    other.sign_in(name="bob")
    assert fields(other.get(base).text)["query"] != first["query"]


def test_scripts_hold_the_next_query_and_exchange_it_unseen(ann: Visitor, client: Client, model: str) -> None:
    base = f"/m/{model}/label"
    current = fields(ann.get(base).text)
    given = ann.script(f"{base}/next", {"have": [current["query"]], "wait_s": 10}).json
    (unseen,) = given["queries"]
    assert unseen["name"] != current["query"]
    assert given["progress"] == {"answered": 0, "budget": 8, "text": "0 of 8 answers"}
    assert ann.script(f"{base}/answer", current | {"label": "s", "took_s": 1.5}).json == {
        "conflict": False,
        "wants_more": False,
    }
    assert ann.script(f"{base}/grown", {"wait_s": 10}).json == {"newer": True}
    assert ann.script(f"{base}/grown", {"wait_s": 10}).json == {"newer": False}
    (fresh,) = ann.script(f"{base}/exchange", {"unseen": [unseen["name"]]}).json["queries"]
    head = fresh["name"]
    assert fields(ann.get(base).text)["query"] == head
    held = [query.name for query in client.list_queries(model, ["leased"])]
    assert held == [head]  # the one that nobody saw is open again, or it is this one
    assert [answer.took_s for answer in client.answers(model)] == [1.5]
    assert ann.script(f"{base}/beat", {}).json == {"lost": [], "elsewhere": []}


def test_two_pages_of_a_labeller_have_different_queries(ann: Visitor, client: Client) -> None:
    """A query that a page has is for no other one while it lives, and for the next one when it is gone."""
    model, rows = "c-two-pages", [{"X": each} for each in "abc" * 16]
    client.create_model(model, Specification([Nominal("X", "abc")], CLASSES, budget=40))
    client.push(model, rows)
    client.wait_grown(model)
    base = f"/m/{model}/label"

    def take(page: str, count: int) -> set[str]:
        given = ann.script(f"{base}/next", {"page": page, "count": count, "wait_s": 10}).json
        return {each["name"] for each in given["queries"]}

    came_with = fields(ann.get(base).text)["query"]
    assert fields(ann.get(base).text)["query"] == came_with  # no script has claimed it
    assert ann.script(f"{base}/beat", {"page": "one", "have": [came_with]}).json["elsewhere"] == []
    assert ann.script(f"{base}/beat", {"page": "two", "have": [came_with]}).json["elsewhere"] == [came_with]
    one, two = take("one", 10) | {came_with}, take("two", 10)
    assert 11 > len(one) > len(two) > 0  # at most a quarter of what was open, and twelve on all pages
    assert one.isdisjoint(two)
    assert fields(ann.get(base).text)["query"] not in one | two
    shown = max(one)
    assert ann.script(f"{base}/leave", {"page": "one", "shown": shown}).status == 200
    assert fields(ann.get(base).text)["query"] == shown
    for wrong in ({"count": 0}, {"count": 11}, {"count": True}, {"page": 7}, {"page": "x" * 65}):
        assert ann.script(f"{base}/next", wrong).status == 400


def test_what_another_console_leased_is_answered(
    ann: Visitor, client: Client, model: str, shared_server: Serving
) -> None:
    """After a console died, its answers come through the next one."""
    other = ConsoleProcess(shared_server.address)
    try:
        visitor = Visitor(other.port)
        visitor.sign_in(name="ann")
        lease = fields(visitor.get(f"/m/{model}/label").text)
    finally:
        other.process.kill()
        other.process.communicate()
    assert ann.script(f"/m/{model}/label/answer", lease | {"label": ["x", "s"]}).status == 200
    assert said(client, model) == [("answered", "x|s")]
    again = ann.script(f"/m/{model}/label/answer", lease | {"label": ["x", "s"]})
    assert again.status == 200  # the acknowledgement was lost: it counts once
    assert said(client, model) == [("answered", "x|s")]


def test_own_answers_are_listed_and_corrected(ann: Visitor, client: Client, model: str) -> None:
    base = f"/m/{model}/label"
    lease = fields(look_at(ann, base))
    ann.form(f"{base}/answer", lease | {"class": "s"})
    page = ann.get(f"{base}/history").text
    assert "You said s." in page
    corrected = {"query": lease["query"], "lease_token": "", "back": "history"}
    answer = ann.form(f"{base}/correct", corrected | {"several": ["x", "o"]})
    assert answer.headers["location"] == f"{base}/history"
    assert "Corrected" in ann.get(f"{base}/history").text
    ann.form(f"{base}/undo", corrected)
    assert [kind for kind, _ in said(client, model)] == ["answered", "corrected", "undone"]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"label": "y"}, "'y' is not a class of this model"),
        ({"label": []}, "neither a class nor a list of classes"),
        ({"label": {"x": 2}}, "must lie in [0, 1]"),
        ({"label": {"x": 0}}, "is 0 for every class"),
        ({"label": "x", "took_s": -1}, "took s"),
        ({"label": "x", "took_s": 10**400}, "took s: must be a number of seconds"),
        ({"label": "x", "comment": "c" * 2001}, "at most 2,000"),
        ({"label": "x", "query": "models/other/queries/1"}, "must be one of the model"),
        ({"label": "x", "query": "x"}, "must be one of the model"),
        ({"label": "x", "lease_token": 3}, "lease token: is missing"),
        ({"label": "x", "lease_token": "none"}, ""),
        ({"label": "x", "model_uid": "another"}, "is another model now"),
    ],
)
def test_a_wrong_answer_names_what_is_wrong(
    ann: Visitor, client: Client, model: str, more: dict[str, object], says: str
) -> None:
    lease = fields(ann.get(f"/m/{model}/label").text)
    answer = ann.script(f"/m/{model}/label/answer", lease | more)
    assert 400 <= answer.status < 500
    assert says in answer.json["error"]
    assert said(client, model) == []


def test_numbers_of_a_form_are_those_that_it_shows(ann: Visitor, client: Client, model: str) -> None:
    """An empty field is the 1 that it shows, a comma is a point, and what is no such number is refused."""
    base = f"/m/{model}/label"
    lease = fields(look_at(ann, base))
    for wrong in ("1.5", "-.1", "0,5 ,", "1e400", "1_0", "nan", "½"):
        numbers = {"plausibility-0": "1", "plausibility-1": wrong, "plausibility-2": ""}
        refused = ann.form(f"{base}/answer", lease | numbers)
        assert refused.status == 400
        assert "the plausibility of &#39;s&#39; is" in refused.text
    assert ann.form(f"{base}/answer", lease | {"plausibility-0": "1"}).status == 400  # half a form
    ann.form(f"{base}/answer", lease | {"plausibility-0": ",2", "plausibility-1": "0", "plausibility-2": ""})
    assert said(client, model) == [("answered", "x:0.2 s:0.0 o:1.0")]


def test_who_signs_out_while_the_page_waits_for_a_query_has_to_sign_in(ann: Visitor, client: Client) -> None:
    """The console's log, in which a traceback fails the tests, says nothing of it."""
    client.create_model("c-nothing-to-ask", Specification([Nominal("X", "abc")], CLASSES, budget=2))
    with ThreadPoolExecutor(1) as pool:
        page = pool.submit(ann.script, "/m/c-nothing-to-ask/label/next", {"have": [], "wait_s": 15})
        time.sleep(1)
        assert ann.form("/sign-out", {}).status == 303
        assert page.result(30).status == 401


def test_a_script_needs_the_secret_and_json(ann: Visitor, model: str) -> None:
    base = f"/m/{model}/label"
    assert ann.script(f"{base}/beat", {}, x_form_token="").status == 403
    assert ann.script(f"{base}/beat", {}, content_type="text/plain").status == 415
    assert (
        ann.ask(
            "POST", f"{base}/beat", "[1]", content_type="application/json", x_form_token=ann.form_token
        ).status
        == 400
    )
    assert Visitor(ann.port).script(f"{base}/beat", {}).status == 401
    assert ann.script(f"{base}/next", {"have": [1]}).status == 400
    assert ann.script(f"{base}/next", {"wait_s": 1e9}).status == 400
    halved = ann.script(f"{base}/answer", {"comment": "\ud83d"})  # half of an emoji, as JavaScript cuts one
    assert (halved.status, "half a character" in halved.json["error"]) == (400, True)
    assert ann.script(f"{base}/nothing", {}).status == 404
    assert ann.get("/m/none/label").status == 404


def test_the_help_calls_an_answer_what_its_button_says(ann: Visitor, model: str) -> None:
    page = ann.get(f"/m/{model}/label").text
    rows = re.findall(r'data-command="(\w+)">[^<]*</kbd></th><td><strong>([^<]+)</strong>', page)
    query = page[page.index("<article") : page.index("</article>")]
    buttons = re.findall(
        r"(?:<form class=\"say act\"[^>]*/(\w+)\"|data-panel=\"(\w+)\").*?</kbd> (.*?)</", query, re.S
    )
    shown = {act or panel: name.removeprefix("<span>") for act, panel, name in buttons}
    assert shown.keys() == {"set", "plausibilities", "refuse", "skip", "postpone", "comment"}
    assert shown.items() <= dict(rows).items()
