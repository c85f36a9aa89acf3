"""The hands of a labeller, and what is logged of them: keys by name, numbers as typed, presses at what was seen."""

import re
import string
import time
from collections.abc import Callable

import pytest
from browser.conftest import GLANCE_MS, answer, glance, heading, kept, press
from playwright.sync_api import Page, expect

from quercus.client import Client, Numeric, Specification

pytestmark = pytest.mark.browser
Visit = Callable[..., Page]


def make_model(client: Client, name: str, classes: list[str]) -> str:
    client.create_model(name, Specification([Numeric("x")], classes, budget=20, min_instances=1))
    client.push(name, [[k] for k in range(12)])
    client.wait_grown(name)
    return name


def texts(client: Client, model: str) -> list[tuple[str, str]]:
    return [(each.kind, each.text) for each in client.answers(model)]


def spoken(page: Page, name: str) -> str | None:
    return page.get_by_role("button", name=name, exact=True).get_attribute("aria-keyshortcuts")


def test_a_digit_is_the_key_of_the_class_of_its_name(visit: Visit, client: Client) -> None:
    model = make_model(client, "h-digits", [*string.digits, "10"])
    page = visit(f"/m/{model}/label")
    for key in ("5", "0", "Numpad3", "e"):  # 1 and 0 are other classes: 10 has a letter
        answer(page, key)
    assert spoken(page, "10") == "e"
    page.locator("#stage h1").focus()
    press(page, "?")
    expect(page.get_by_role("dialog").get_by_role("row", name="5 5", exact=True)).to_be_visible()
    page.keyboard.press("Escape")
    kept(page)
    assert texts(client, model) == [("answered", name) for name in ("5", "0", "3", "10")]


def test_letters_are_keys_of_classes_before_they_are_keys_of_commands(visit: Visit, client: Client) -> None:
    """Q answers Q and does not leave; the commands have signs, and the page says which."""
    model = make_model(client, "h-letters", list(string.ascii_uppercase))
    page = visit(f"/m/{model}/label")
    first = heading(page)
    for key in ("q", "A", "b", "x"):
        answer(page, key)
    expect(page.locator("#back kbd")).to_have_text("<")
    answer(page, "+", "s", "r", "Enter")
    answer(page, "/")
    assert spoken(page, "X") == "x"
    assert page.locator("summary", has_text="one of several").get_attribute("aria-keyshortcuts") == "Plus"
    kept(page)
    page.keyboard.press("<")
    expect(page.get_by_role("button", name="Take it back")).to_have_attribute("aria-keyshortcuts", "/")
    page.keyboard.press("Escape")
    assert texts(client, model) == [
        *[("answered", name) for name in ("Q", "A", "B", "X", "R|S")],
        ("refused", ""),
    ]
    assert first != heading(page)


def test_what_is_typed_into_a_number_replaces_it(visit: Visit, client: Client, wine: str) -> None:
    page = visit(f"/m/{wine}/label")
    press(page, "u")
    page.keyboard.type(".2")
    page.keyboard.press("Enter")
    fields = page.locator("#stage .grades input")
    glance(page)
    page.locator("summary", has_text="weigh classes").click()  # as its key does
    expect(fields.nth(0)).to_be_focused()
    fields.nth(1).click()
    page.keyboard.type("0,5")
    fields.nth(0).click()
    page.keyboard.type(".7")
    fields.nth(1).click()  # again: what is there is replaced
    page.keyboard.type(".3")
    page.keyboard.press("Enter")
    kept(page)
    assert texts(client, wine) == [
        ("answered", "Barolo:0.2 Grignolino:1.0 Barbera:1.0"),
        ("answered", "Barolo:0.7 Grignolino:0.3 Barbera:1.0"),
    ]


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "forms"])
def test_no_number_is_refused(visit: Visit, client: Client, wine: str, scripts: bool) -> None:
    page = visit(f"/m/{wine}/label", java_script_enabled=scripts)
    first = heading(page)
    if scripts:
        glance(page)
    page.locator("summary", has_text="weigh classes").click()
    field = page.locator("#stage .grades input").first
    for wrong in ("1.5", "-1", "abc", "1e400", "."):
        field.fill(wrong)
        field.press("Enter")
        page.wait_for_timeout(50)
        assert heading(page) == first
        if scripts:
            expect(page.locator("#status")).to_have_text(
                f'The plausibility of Barolo is "{wrong}", must be a number from 0 to 1, as .2'
            )
    assert texts(client, wine) == []
    for each in page.locator("#stage .grades input").all():
        each.fill("0")
    if scripts:
        field.press("Enter")
        expect(page.locator("#status")).to_contain_text("at least one class must be possible")
    field.fill(",25")
    field.press("Enter")
    page.locator("#stage h1").filter(has_not_text=re.compile(f"^{first}$")).wait_for()
    if scripts:
        kept(page)
    assert texts(client, wine) == [("answered", "Barolo:0.25 Grignolino:0.0 Barbera:0.0")]


def tap_thrice(page: Page, x: float, y: float) -> None:
    """Three taps, 30 ms from one to the other; a busy machine hears of them later."""
    began, device = time.time(), page.context.new_cdp_session(page)
    for k in range(3):
        for kind, points in (("touchStart", [{"x": x, "y": y}]), ("touchEnd", [])):
            tap = {"type": kind, "touchPoints": points, "timestamp": began + 0.03 * k}
            device.send("Input.dispatchTouchEvent", tap)
    device.detach()


@pytest.mark.parametrize("finger", [False, True], ids=["mouse", "finger"])
def test_a_second_press_answers_nothing_unseen(visit: Visit, client: Client, wine: str, finger: bool) -> None:
    """A double click, a double tap, three of them, a key that is held, a press that began before the query came."""
    page = visit(f"/m/{wine}/label", has_touch=finger)
    for name in ("Barolo", "nobody can tell", "I cannot tell", "later"):
        shown = heading(page)
        glance(page)
        button = page.get_by_role("button", name=name)
        box = button.bounding_box()
        assert box is not None
        at = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        if finger:
            tap_thrice(page, *at)
        else:
            page.mouse.click(*at, click_count=3)
        page.locator("#stage h1").filter(has_not_text=re.compile(f"^{shown}$")).wait_for()
        following = heading(page)
        page.wait_for_timeout(100)
        assert heading(page) == following
    glance(page)
    page.keyboard.down("b")
    for _ in range(15):  # repeats of a key that is held
        page.wait_for_timeout(30)
        page.keyboard.down("b")
    page.keyboard.up("b")
    kept(page)
    assert texts(client, wine) == [("answered", "Barolo"), ("refused", ""), ("answered", "Barolo")]
    assert [step.kind for step in client.query_history(wine) if step.kind in ("skipped", "postponed")] == [
        "skipped",
        "postponed",
    ]


def test_a_press_that_began_too_early_counts_for_nothing_however_long_it_lasts(
    visit: Visit, client: Client, wine: str
) -> None:
    page = visit(f"/m/{wine}/label")
    glance(page)
    box = page.get_by_role("button", name="Barbera").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 20, box["y"] + 20)
    page.keyboard.press("b")  # answers; the hand is already on the way to the next click
    page.mouse.down()
    glance(page)
    page.mouse.up()
    page.wait_for_timeout(100)
    kept(page)
    assert texts(client, wine) == [("answered", "Barolo")]
    page.mouse.click(box["x"] + 20, box["y"] + 20)  # one that was meant counts
    kept(page)
    assert texts(client, wine)[1:] == [("answered", "Barbera")]


def test_a_double_click_on_a_form_without_scripts_answers_once(
    visit: Visit, client: Client, wine: str
) -> None:
    page = visit(f"/m/{wine}/label", java_script_enabled=False)
    shown = heading(page)
    page.wait_for_timeout(GLANCE_MS)
    page.get_by_role("button", name="Barbera").dblclick()
    expect(page.locator("#stage h1")).not_to_have_text(shown)
    page.wait_for_load_state("networkidle")
    assert texts(client, wine) == [("answered", "Barbera")]


TYPE_ON = """letters => new Promise(done => {
  const stage = document.querySelector("#stage"), gone = stage.querySelector("h1");
  const type = at => {
    if (at === letters.length) return done();
    const press = { key: letters[at], bubbles: true, cancelable: true };
    document.activeElement.dispatchEvent(new KeyboardEvent("keydown", press));
    setTimeout(type, 300, at + 1);
  };
  new MutationObserver((_, watching) => {
    const shown = stage.querySelector("h1");
    if (shown === null || shown === gone) return;
    watching.disconnect();
    type(0);
  }).observe(stage, { childList: true, subtree: true });
  document.dispatchEvent(new Event("visibilitychange"));
})"""
"""Look for the lease at once, and type on, a letter after more than a glance each, from when another query comes.

The page does so by its own clock: on a busy machine letters from here come when the hands have been at rest.
"""


def test_words_typed_into_a_query_that_goes_away_answer_no_other(
    visit: Visit, client: Client, wine: str
) -> None:
    """An operator ends the lease while the labeller types a comment: the letters that follow are not keys."""
    page = visit(f"/m/{wine}/label")
    press(page, "c")
    page.keyboard.type("ab")
    for each in client.list_queries(wine, ["leased"]):
        client.end_lease(each.name)
    page.evaluate(TYPE_ON, "bbg")
    kept(page)
    assert texts(client, wine) == []
