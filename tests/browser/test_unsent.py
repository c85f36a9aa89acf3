"""Answers that the server does not have yet outlive page, tab and browser, and are sent once, in the right name."""

import os
import re
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from browser.conftest import answer, heading, kept, make_wine, press, sign_in, unsent
from integration.client.serving import Serving
from playwright.sync_api import Browser, Dialog, Page, expect
from support.consoles import ConsoleProcess

from quercus.client import Client, Numeric, Specification
from quercus.console.pages.label import MOST_AHEAD
from quercus.specification.display import MediaItem

pytestmark = pytest.mark.browser
Visit = Callable[..., Page]


GIF = bytes.fromhex("47494638396101000100800000000000ffffff21f90400000000002c00000000010001000002024401003b")
"""A picture of one pixel."""


def texts(client: Client, model: str) -> list[tuple[str, str, str]]:
    return [(each.labeller, each.instance, each.text) for each in client.answers(model)]


def go_offline(page: Page, client: Client, model: str) -> None:
    """Lose the network once the next query is there."""
    for _ in range(200):
        if client.get_model(model).queries_leased >= 2:
            break
        page.wait_for_timeout(50)
    page.wait_for_load_state("networkidle")
    page.context.set_offline(True)


def hold_ahead(page: Page, client: Client, model: str) -> None:
    """Wait until the page holds all that it holds ahead."""
    for _ in range(100):
        if client.get_model(model).queries_leased == 1 + MOST_AHEAD:
            return
        page.wait_for_timeout(100)
    raise AssertionError("the page does not hold as many")


def answer_offline(page: Page, client: Client, model: str, key: str) -> str:
    """Answer the query that is shown while nobody hears it; the next one was there already."""
    go_offline(page, client, model)
    shown = answer(page, key)
    expect(page.locator("#away")).to_contain_text("1 answer is kept here, even if you close this page")
    return shown


def ask(page: Page, accept: bool) -> list[str]:
    """Say yes or no to what the browser asks from now on; the kinds and words of what it asked."""
    asked: list[str] = []

    def decide(dialog: Dialog) -> None:
        asked.append(f"{dialog.type} {dialog.message}")
        if accept:
            dialog.accept()
        else:
            dialog.dismiss()

    page.on("dialog", decide)
    return asked


def test_an_answer_given_offline_outlives_its_tab(visit: Visit, client: Client, wine: str) -> None:
    page = visit(f"/m/{wine}/label", "eve")
    home, first = page.url, answer_offline(page, client, wine, "b")
    asked = ask(page, accept=True)
    with page.expect_event("close"):
        page.close(run_before_unload=True)
    assert asked == ["beforeunload "]
    context = page.context
    context.set_offline(False)
    again = context.new_page()
    again.goto(home)
    kept(again)
    assert texts(client, wine) == [("eve", first, "Barolo")]
    assert heading(again) != first
    answer(again, "g")  # nothing is asked when all is well, nor of what is sent while the page closes
    asked = ask(again, accept=False)
    with again.expect_event("close"):
        again.close(run_before_unload=True)
    assert asked == []


def test_an_answer_given_offline_to_a_gold_question_counts_once(
    visit: Visit, client: Client, wine: str
) -> None:
    rows = [f"bottle-{k}" for k in range(20)]
    client.mark_gold(wine, dict.fromkeys(rows, "Barolo"), labeller="lea")
    client.set_labelling_policy(wine, replace(client.labelling_policy(wine), gold_share=1.0))
    page = visit(f"/m/{wine}/label", "eve")
    home, first = page.url, answer_offline(page, client, wine, "b")
    assert first in rows
    (other,) = client.lease(wine, "cid", wait_s=20.0).queries
    client.answer(other, "Barbera")  # growth asks others by now
    with page.expect_event("close"):
        ask(page, accept=True)
        page.close(run_before_unload=True)
    context = page.context
    context.set_offline(False)
    again = context.new_page()
    again.goto(home)
    kept(again)
    assert {(each.labeller, each.instance, each.text, each.state) for each in client.answers(wine)} == {
        *((("lea", row, "Barolo", "counts")) for row in rows),
        ("cid", other.instance, "Barbera", "gold"),
        ("eve", first, "Barolo", "gold"),
    }
    scores = {each.name: (each.gold_answered, each.gold_right) for each in client.labellers(wine)}
    assert scores == {"cid": (1, 0), "eve": (1, 1)}


@pytest.mark.release
def test_an_answer_given_offline_outlives_a_browser_that_is_killed(
    browser: Browser, console: ConsoleProcess, client: Client, wine: str, tmp_path: Path
) -> None:
    def start() -> Page:
        context = browser.browser_type.launch_persistent_context(
            tmp_path, executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        return context.pages[0]

    page = start()
    sign_in(page, console.url, "eve")
    page.goto(f"{console.url}/m/{wine}/label")
    first = answer_offline(page, client, wine, "b")
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(tmp_path).encode() in each.read_bytes():
                os.kill(int(each.parent.name), signal.SIGKILL)
        except (FileNotFoundError, ProcessLookupError):
            continue
    page = start()
    sign_in(page, console.url, "eve")  # its session was lost with it, or not
    page.goto(f"{console.url}/m/{wine}/label")
    kept(page)
    assert texts(client, wine) == [("eve", first, "Barolo")]
    page.context.close()


def test_two_tabs_send_an_answer_once(visit: Visit, client: Client, wine: str) -> None:
    """The second one lives, and takes over what the first one leaves; a third one leaves that to it."""
    page = visit(f"/m/{wine}/label", "eve")
    sent: list[str] = []
    page.context.on("request", lambda each: sent.append(each.url) if each.url.endswith("/answer") else None)
    other = page.context.new_page()
    other.goto(page.url)
    first = answer_offline(page, client, wine, "b")
    tries = len(sent)
    other.wait_for_timeout(6_000)  # the first one lives: it is left to it
    assert len(unsent(other)) == 1
    assert all("label/answer" in url for url in sent)
    page.close()
    sent.clear()
    other.context.set_offline(False)
    kept(other)
    assert tries >= 1
    assert len(sent) == 1
    assert texts(client, wine) == [("eve", first, "Barolo")]


def test_ten_queries_can_be_answered_while_nobody_is_reached(visit: Visit, client: Client) -> None:
    """Their pictures are there too; then the answers are sent in order."""
    name = "u-ten"
    client.create_model(
        name, Specification([Numeric("x", cuts=8)], ["yes", "no"], budget=60, min_instances=1)
    )
    shown = [[MediaItem("image", "dot", data=GIF + bytes([k]))] for k in range(60)]
    client.push(name, [[k] for k in range(60)], ids=[f"row-{k}" for k in range(60)], displays=shown)
    client.wait_grown(name)
    page = visit(f"/m/{name}/label", "eve")
    hold_ahead(page, client, name)
    page.wait_for_load_state("networkidle")
    page.context.set_offline(True)
    said = []
    for k in range(MOST_AHEAD):
        said.append((answer(page, "yn"[k % 2]), ("yes", "no")[k % 2]))
        assert page.locator("#stage img").evaluate("each => each.complete && each.naturalWidth") == 1
    assert client.get_model(name).queries_answered == 0
    page.context.set_offline(False)
    kept(page)
    assert [(each.instance, each.text) for each in client.answers(name)] == said


@pytest.mark.release
def test_two_tabs_show_different_queries(visit: Visit, client: Client, wine: str) -> None:
    """A tab that is closed leaves what it had to the others."""
    page = visit(f"/m/{wine}/label", "eve")
    page.wait_for_load_state("networkidle")
    other = page.context.new_page()
    other.goto(page.url)
    other.locator("#stage h1").wait_for()
    seen = []
    for _ in range(3):
        seen += [answer(page, "b"), answer(other, "g")]
    kept(page)
    kept(other)
    assert len(set(seen)) == 6
    page.reload()
    page.locator("#stage h1").wait_for()
    tabs = [page, other]
    tabs.append(page.context.new_page())
    tabs[2].goto(page.url)
    tabs[2].locator("#stage h1").wait_for()
    page.wait_for_load_state("networkidle")
    assert len({*seen, *map(heading, tabs)}) == 9


def test_any_page_of_the_labeller_sends_what_was_left(visit: Visit, client: Client, wine: str) -> None:
    page = visit(f"/m/{wine}/label", "eve")
    home, first = page.url.split("/m/")[0], answer_offline(page, client, wine, "b")
    context = page.context
    page.close()
    context.set_offline(False)
    page = context.new_page()
    page.goto(home)
    kept(page)
    expect(page.locator("#unsent")).to_be_hidden()
    assert texts(client, wine) == [("eve", first, "Barolo")]


def test_who_signs_out_with_unsent_answers_is_asked(visit: Visit, client: Client, wine: str) -> None:
    page = visit(f"/m/{wine}/label", "eve")
    answer_offline(page, client, wine, "b")
    page.route("**/label/answer", lambda route: route.abort())
    page.context.set_offline(False)
    asked = ask(page, accept=False)
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_timeout(2_500)
    expect(page).to_have_url(re.compile("/label$"))
    assert len(asked) == 1
    assert (
        "1 answer is not sent yet. It stays in this browser, and can be sent only when eve signs in"
        in asked[0]
    )
    page.unroute("**/label/answer")
    page.get_by_role("button", name="Sign out").click()  # now it is sent first, and nothing is asked
    page.get_by_role("heading", name="Sign in").wait_for()
    assert len(asked) == 1
    assert len(texts(client, wine)) == 1
    assert unsent(page) == []


def test_an_answer_is_sent_in_no_other_name(
    visit: Visit, client: Client, shared_server: Serving, wine: str
) -> None:
    """The console dies, eve goes, and bob signs in at her browser."""
    console = ConsoleProcess(shared_server.address)
    page = visit(f"/m/{wine}/label", "eve", console.url)
    page.wait_for_load_state("networkidle")
    first = heading(page)
    console.process.kill()
    console.process.communicate()
    press(page, "b")
    expect(page.locator("#away")).to_contain_text("1 answer is kept here")
    context = page.context
    page.close()
    console = ConsoleProcess(shared_server.address, console.port)
    try:
        page = context.new_page()
        page.goto(f"{console.url}/sign-in")
        expect(page.locator("#unsent")).to_contain_text("1 answer waits in this browser, of eve.")
        sign_in(page, console.url, "bob")
        page.goto(f"{console.url}/m/{wine}/label")
        second = answer(page, "g")
        for _ in range(100):
            if texts(client, wine):
                break
            page.wait_for_timeout(100)
        assert texts(client, wine) == [("bob", second, "Grignolino")]
        page.get_by_role("button", name="Sign out").click()
        page.get_by_label("Your name").wait_for()
        assert [each["labeller"] for each in unsent(page)] == ["eve"]
        sign_in(page, console.url, "eve")
        kept(page)
        assert texts(client, wine)[1:] == [("eve", first, "Barolo")]
        page.goto("about:blank")
    finally:
        console.stop()


def test_what_the_server_refuses_is_said_until_it_is_read(visit: Visit, client: Client, wine: str) -> None:
    """Meanwhile the lease has ended, and somebody else has answered."""
    page = visit(f"/m/{wine}/label", "eve")
    home, first = page.url, answer_offline(page, client, wine, "b")
    context = page.context
    page.close()
    for each in client.list_queries(wine, ["leased"]):
        client.end_lease(each.name)
    context.set_offline(False)
    page = context.new_page()
    page.goto(home)
    line = page.locator("#refused li")
    expect(line).to_contain_text(
        f"{first}: Barolo was not accepted: it was given back, or an operator took it back"
    )
    expect(line).not_to_contain_text("lease")
    page.reload()
    expect(line).to_contain_text(f"{first}: Barolo was not accepted: ")
    line.get_by_role("button", name=f"Dismiss: {first}: Barolo").click()
    expect(page.locator("#refused")).to_be_hidden()
    page.reload()
    page.locator("#stage h1").wait_for()
    expect(page.locator("#refused")).to_be_hidden()
    assert texts(client, wine) == []
    assert unsent(page) == []


@pytest.mark.parametrize("broken", ["indexedDB", "full"])
def test_a_browser_that_stores_nothing_is_named(visit: Visit, client: Client, wine: str, broken: str) -> None:
    page = visit("/")
    page.add_init_script(
        {
            "indexedDB": "IDBFactory.prototype.open = () => { throw new DOMException('denied', 'SecurityError'); }",
            "full": "IDBObjectStore.prototype.put = () => { throw new DOMException('full', 'QuotaExceededError'); }",
        }[broken]
    )
    page.goto(f"{page.url}m/{wine}/label")
    page.locator("#stage h1").wait_for()
    go_offline(page, client, wine)
    shown = answer(page, "b")
    expect(page.locator("#unkept")).to_contain_text("Unsent answers are lost when you close the page")
    expect(page.locator("#away")).to_contain_text(
        "1 answer is in this page alone, and lost with it: keep it open"
    )
    asked = ask(page, accept=False)
    page.close(run_before_unload=True)
    page.wait_for_timeout(500)
    assert asked == ["beforeunload "]
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_timeout(500)
    assert asked[1:] == [
        "confirm 1 answer is not sent yet. It is in this page alone, and lost with it. Sign out all the same?"
    ]
    page.context.set_offline(False)
    for _ in range(100):
        if texts(client, wine):
            break
        page.wait_for_timeout(100)
    assert texts(client, wine) == [("ann", shown, "Barolo")]


def test_an_answer_about_a_model_that_was_made_anew_is_refused(
    visit: Visit, client: Client, wine: str
) -> None:
    """Its queries have the same numbers, and a correction needs no lease."""
    page = visit(f"/m/{wine}/label", "eve")
    answer(page, "b")
    kept(page)
    go_offline(page, client, wine)
    press(page, "z")
    press(page, "g")
    client.delete_model(wine)
    make_wine(client, wine)
    page.context.set_offline(False)
    expect(page.locator("#refused li")).to_contain_text("is another model now")
    assert texts(client, wine) == []
