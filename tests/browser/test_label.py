"""The page to label on, in a real browser."""

import re
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from browser.conftest import GLANCE_MS, answer, heading, kept, make_wine, press, sign_in
from integration.client.serving import Serving
from playwright.sync_api import Page, Route, expect
from support.consoles import ConsoleProcess

from quercus.client import Client, Numeric, Specification

pytestmark = pytest.mark.browser
Visit = Callable[..., Page]


def log(client: Client, model: str) -> list[tuple[str, str, str]]:
    return [(each.instance, each.kind, each.text) for each in client.answers(model)]


PAINTED_SINCE = """ms => {
  const [paint] = performance.getEntriesByName("first-contentful-paint");
  const [{ domInteractive }] = performance.getEntriesByType("navigation");
  return paint && domInteractive && performance.now() > Math.max(paint.startTime, domInteractive) + ms;
}"""
"""True once the page has been there to be read for a time; a busy machine paints late."""

WATCHED = """() => {
  const stage = document.getElementById("stage"), shown = () => stage.querySelector("article")?.dataset.name;
  let name = shown(), since = performance.now(), pressed = since; window.watched = {};
  addEventListener("keydown", () => { pressed = performance.now(); }, true);
  new MutationObserver(() => {
    if (!shown() || shown() === name) return;
    watched[name] = (pressed - since) / 1000; name = shown(); since = performance.now();
  }).observe(stage, { childList: true });
}"""


def test_queries_by_keys_alone(visit: Visit, client: Client, wine: str) -> None:
    """The log says what was pressed, and each answer took from the sight of the query to its last key."""
    began = time.monotonic()
    page = visit(f"/m/{wine}/label")
    page.evaluate(WATCHED)
    first = page.locator("#stage article").get_attribute("data-name")
    said = []
    for keys, kind, text in (
        (("b",), "answered", "Barolo"),
        (("s", "b", "a", "Enter"), "answered", "Barolo|Barbera"),
        (("c", *"rot", "Enter", "g"), "answered", "Grignolino"),
        (("r",), "refused", ""),
        (("k",), "", ""),
        (("p",), "", ""),
        (("A",), "answered", "Barbera"),
        *((("bga"[k % 3],), "answered", ("Barolo", "Grignolino", "Barbera")[k % 3]) for k in range(6)),
    ):
        instance = answer(page, *keys)
        expect(page.locator("#stage h1")).to_be_focused()
        if kind:
            said.append((instance, kind, text))
    shown = press(page, "u")
    for value in ("1", ".5", "0"):
        page.keyboard.type(value)
        page.keyboard.press("Tab" if value != "0" else "Enter")
    said.append((shown, "answered", "Barolo:1.0 Grignolino:0.5 Barbera:0.0"))
    kept(page)
    assert log(client, wine) == said
    assert [each.comment for each in client.answers(wine)] == ["", "", "rot", *[""] * 9]
    steps = [step.kind for step in client.query_history(wine)]
    assert (steps.count("skipped"), steps.count("postponed")) == (1, 1)
    watched = page.evaluate("watched")
    answers = [each for each in client.answers(wine) if each.kind == "answered"]
    took = {f"models/{wine}/queries/{each.query}": each.took_s for each in answers}
    timed = [name for name in watched if name in took and name != first]
    assert len(timed) >= 9
    assert all(took[name] > 0.9 * GLANCE_MS / 1000 for name in timed)
    assert sum(took[name] for name in timed) < time.monotonic() - began
    # The page waits for a core now and then, between one look at its clock and the other.
    assert statistics.median(abs(took[name] - watched[name]) for name in timed) < GLANCE_MS / 1000


def test_a_key_waits_for_the_script_of_the_page(visit: Visit, client: Client, wine: str) -> None:
    """On a slow line the query is there to be read before the page can take an answer."""
    page = visit("/")
    late: list[Route] = []
    page.route("**/static/outbox.js", lambda route: late.append(route))  # noqa: PLW0108  (Playwright writes into it)
    page.goto(f"{page.url}m/{wine}/label", wait_until="commit")
    first = heading(page)
    page.wait_for_function(PAINTED_SINCE, arg=GLANCE_MS)
    page.keyboard.press("g")
    assert page.locator("#keys-switch").is_hidden()
    (outbox,) = late
    outbox.continue_()
    page.locator("#stage h1").filter(has_not_text=re.compile(f"^{first}$")).wait_for()
    kept(page)
    assert log(client, wine) == [(first, "answered", "Grignolino")]
    (took_s,) = (each.took_s for each in client.answers(wine))
    assert took_s is not None
    assert took_s > GLANCE_MS / 2000


def test_many_classes_leave_half_of_a_phone_to_the_row(visit: Visit, client: Client) -> None:
    classes = [f"one of the long names, number {k}" for k in range(40)]
    client.create_model("many-classes", Specification([Numeric("x")], classes, budget=9, min_instances=1))
    client.push("many-classes", [[k] for k in range(5)])
    client.wait_grown("many-classes")
    page = visit("/m/many-classes/label", viewport={"width": 360, "height": 740})
    keys = page.locator(".answers").bounding_box()
    assert keys is not None
    assert keys["height"] <= 740 / 2 + 1


def test_an_answer_taken_back_within_the_delay_is_never_sent(visit: Visit, client: Client, wine: str) -> None:
    page = visit(f"/m/{wine}/label")
    page.evaluate(
        """() => { window.said = []; const line = document.getElementById("status");
          new MutationObserver(() => said.push(line.textContent)).observe(line, { childList: true }); }"""
    )
    first = answer(page, "b")
    page.keyboard.press("z")  # at once: a busy machine has used up part of the second by now
    expect(page.locator("#stage h1")).to_have_text(first)
    expect(page.locator("#status")).to_have_text(re.compile("before it was sent"))
    assert any(line.startswith(f"{first}: Barolo. Sending in 1 s") for line in page.evaluate("said"))
    assert log(client, wine) == []
    answer(page, "g")
    kept(page)
    assert log(client, wine) == [(first, "answered", "Grignolino")]


def test_back_after_the_second_corrects(visit: Visit, client: Client, wine: str) -> None:
    page = visit(f"/m/{wine}/label")
    first = answer(page, "b")
    kept(page)
    second = heading(page)
    press(page, "z")
    expect(page.locator("#earlier")).to_have_text(re.compile(f"^You said: Barolo, {first}"))
    page.keyboard.press("Escape")
    expect(page.locator("#stage h1")).to_have_text(second)
    press(page, "z")
    press(page, "a")
    expect(page.locator("#stage h1")).to_have_text(second)
    kept(page)
    press(page, "z")
    press(page, "r")
    kept(page)
    assert [kind for _, kind, _ in log(client, wine)] == ["answered", "corrected", "undone"]
    assert answer(page, "g") == second
    page.keyboard.press("*")  # it waits no second when the page goes
    page.get_by_role("heading", name="Your answers").wait_for()
    client.wait_grown(wine)
    page.reload()
    expect(page.get_by_role("listitem").first).to_contain_text("Grignolino")


def test_keys_are_keys_only_when_they_are_meant(visit: Visit, client: Client, wine: str) -> None:
    page = visit(f"/m/{wine}/label")
    first = press(page, "Control+b", "Alt+b", "Meta+b", "Shift+Digit1", "1", "x", "F1")
    assert heading(page) == first
    press(page, "c", "b")
    expect(page.locator(".comment-text")).to_have_value("b")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="keys: on").click()
    press(page, "b")
    assert heading(page) == first
    page.get_by_role("button", name="keys: off").click()
    press(page, "?")
    expect(page.get_by_role("dialog")).to_contain_text("plausibility 1")
    press(page, "g")
    page.keyboard.press("Escape")
    assert heading(page) == first
    assert log(client, wine) == []
    page.get_by_role("button", name="Grignolino").click()
    kept(page)
    assert log(client, wine) == [(first, "answered", "Grignolino")]


def test_strict_order_is_that_of_the_tree_that_knows_every_answer(
    visit: Visit, client: Client, wine: str
) -> None:
    """Query for query what a program is asked that waits for the tree after each answer, about the same rows."""

    def key(instance: str) -> int:
        return int(instance.removeprefix("bottle-")) % 3

    twin = make_wine(client, f"{wine[:40]}-twin")
    asked = []
    for _, query in zip(range(5), client.queries(twin, "tom"), strict=False):
        asked.append(query.instance)
        client.answer(query, query.classes[key(query.instance)])
    page = visit(f"/m/{wine}/label?order=strict")
    seen = [answer(page, "bga"[key(heading(page))]) for _ in range(5)]
    assert seen == asked
    kept(page)
    assert client.get_model(wine).queries_leased == 1  # none is held unseen


def test_two_labellers_never_see_one_query(visit: Visit, client: Client, wine: str) -> None:
    pages = [visit(f"/m/{wine}/label", name) for name in ("ann", "bob")]
    seen: list[str] = []
    for _ in range(3):
        seen += [answer(page, "b") for page in pages]
    assert heading(pages[0]) != heading(pages[1])
    assert len(set(seen)) == len(seen)
    for page in pages:
        kept(page)
    assert sorted(instance for instance, _, _ in log(client, wine)) == sorted(seen)


def test_the_loss_of_a_query_is_reported(
    visit: Visit, client: Client, shared_server: Serving, wine: str
) -> None:
    """An operator ends the leases of the query that is shown, and of the next one that nobody has seen."""
    console = ConsoleProcess(shared_server.address, 0, "--lease-s", "10")
    try:
        page = visit(f"/m/{wine}/label", "eve", console.url)
        shown = heading(page)
        page.wait_for_load_state("networkidle")  # all that it holds ahead is there
        for each in client.list_queries(wine, ["leased"]):
            client.end_lease(each.name)
        expect(page.locator("#status")).to_have_text(re.compile(f"^{shown} is no longer yours"))
        page.locator("#stage h1").wait_for()
        said = answer(page, "g")
        kept(page)
        assert log(client, wine) == [(said, "answered", "Grignolino")]
        page.goto("about:blank")
    finally:
        console.stop()


def test_the_unseen_query_is_the_one_that_the_newest_tree_asks(
    visit: Visit, client: Client, wine: str
) -> None:
    page = visit(f"/m/{wine}/label")
    answer(page, "b")
    with page.expect_response(lambda response: response.url.endswith("/label/exchange")) as refreshed:
        kept(page)
    unseen = refreshed.value.json()["queries"][0]["name"]
    client.wait_grown(wine)
    held = {query.name for query in client.list_queries(wine, ["leased"])}
    assert {unseen, page.locator("#stage article").get_attribute("data-name")} < held
    assert len(held) <= 12
    shown = answer(page, "g")
    assert shown != heading(page)
    assert page.locator("#stage article").get_attribute("data-name") == unseen


def test_no_row_is_shown_twice_where_requests_overtake_each_other(
    visit: Visit, client: Client, wine: str
) -> None:
    """A request for more stays under way as trees grow: what is exchanged beside it would come with its reply too."""
    page = visit(f"/m/{wine}/label")
    page.wait_for_load_state("networkidle")
    held: list[Route] = []

    def hold_the_first(route: Route) -> None:
        if held:
            route.continue_()
        else:
            held.append(route)

    page.route("**/label/next", hold_the_first)
    seen = []
    for _ in range(5):  # exchanges would be under way, and back
        seen.append(answer(page, "b"))
        kept(page)
        client.wait_grown(wine)
        page.wait_for_timeout(500)
    reply = held[0].fetch()
    page.route(
        "**/label/grown", lambda route: route.abort()
    )  # no further exchange, which may take it away again
    seen += [answer(page, "g") for _ in range(4)]
    kept(page)
    held[0].fulfill(response=reply)
    seen += [answer(page, "a") for _ in range(12)]
    assert len(set(seen)) == len(seen)
    kept(page)
    assert sorted(instance for instance, _, _ in log(client, wine)) == sorted(seen)


def test_a_lost_console_loses_no_answer(
    visit: Visit, client: Client, shared_server: Serving, wine: str
) -> None:
    console = ConsoleProcess(shared_server.address)
    page = visit(f"/m/{wine}/label", "eve", console.url)
    answer(page, "b")
    kept(page)
    console.process.kill()
    console.process.communicate()
    page.locator("#stage h1").wait_for()
    press(page, "g")
    expect(page.locator("#away")).to_have_text(re.compile("1 answer is kept here"))
    console = ConsoleProcess(shared_server.address, console.port)
    try:
        expect(page.locator("#away")).to_have_text(re.compile("Sign in again: 1 answer is kept"))
        sign_in(page, console.url, "eve")
        page.goto(f"{console.url}/m/{wine}/label")
        kept(page)
        assert [text for _, _, text in log(client, wine)] == ["Barolo", "Grignolino"]
    finally:
        page.goto("about:blank")
        console.stop()


def test_an_answer_at_which_the_console_fails_delays_no_other(
    visit: Visit, client: Client, wine: str
) -> None:
    page = visit(f"/m/{wine}/label")
    name = page.locator("#stage article").get_attribute("data-name")

    def fail_for_the_first(route: Route) -> None:
        if name is not None and name in (route.request.post_data or ""):
            route.fulfill(status=500, body="Internal Server Error")
        else:
            route.continue_()

    page.route("**/label/answer", fail_for_the_first)
    first = answer(page, "b")
    with page.expect_response(lambda each: each.url.endswith("/answer") and each.status == 200):
        second = answer(page, "g")
    assert log(client, wine) == [(second, "answered", "Grignolino")]
    expect(page.locator("#away")).to_have_text(re.compile("1 answer is kept here"))
    page.unroute("**/label/answer")
    kept(page)
    assert log(client, wine)[1:] == [(first, "answered", "Barolo")]


@pytest.mark.release
@pytest.mark.timeout(300)
def test_a_lost_server_loses_no_answer(visit: Visit, tmp_path: Path) -> None:
    server = Serving(tmp_path)
    console = ConsoleProcess(server.address)
    try:
        with Client(server.address) as client:
            make_wine(client, "wine")
        page = visit("/m/wine/label", "eve", console.url)
        said = []
        for _ in range(2):
            said.append(answer(page, "b"))
            server.kill()
            said.append(press(page, "g"))  # it was there already
            expect(page.locator("#away")).to_have_text(re.compile("kept here"))
            server = Serving(tmp_path, server.port)
            expect(page.locator("#away")).to_be_hidden(timeout=60_000)
            kept(page)
            page.locator("#stage h1").wait_for(timeout=60_000)
        with Client(server.address) as client:
            assert [instance for instance, _, _ in log(client, "wine")] == said
    finally:
        console.stop()
        server.stop()


def test_forms_are_enough(visit: Visit, client: Client, wine: str) -> None:
    page = visit(f"/m/{wine}/label", java_script_enabled=False)
    said = []
    for name in ("Barolo", "Barbera"):
        said.append((heading(page), "answered", name))
        page.wait_for_timeout(GLANCE_MS)
        with (
            page.expect_navigation()
        ):  # else the next press can be one on the page before, which takes this one back
            page.get_by_role("button", name=name).click()
    said.append((heading(page), "answered", "Barolo|Barbera"))
    page.locator("summary", has_text="one of several").click()
    page.get_by_label("Barolo").first.check()
    page.get_by_label("Barbera").first.check()
    with page.expect_navigation():
        page.locator("#stage .set .primary").click()
    assert log(client, wine) == said
    page.get_by_role("link", name="Classify").click()
    page.get_by_label("alcohol, or its lower end").fill("12")
    page.get_by_role("button", name="Classify").click()
    expect(page.get_by_role("heading", name=re.compile("^(It is|Most likely) "))).to_be_visible()


def test_the_next_query_is_there_before_the_server_answers(visit: Visit, client: Client, wine: str) -> None:
    """Requests of the page are held back; meanwhile it shows the query after the answered one."""
    page = visit(f"/m/{wine}/label")
    page.wait_for_load_state("networkidle")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/label/**", hold)
    said = answer(page, "b")
    while held:
        held.pop().continue_()
    page.unroute("**/label/**")
    kept(page)
    assert [instance for instance, _, _ in log(client, wine)] == [said]
