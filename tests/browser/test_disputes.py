"""Disputes in a browser: settled by keys, taken back, without scripts, only by who may; from labels to the export."""

import csv
import io
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from browser.conftest import CLASSES, glance, make_wine
from integration.client.serving import Serving
from playwright.sync_api import Page, expect
from support.accessible import COLOURS, faults_of
from support.command_line import quercus

from quercus.client import Client, LabellingPolicy, Nominal, Numeric, Specification, Statement

pytestmark = pytest.mark.browser
Visit = Callable[..., Page]
KEYS = {"Barolo": "b", "Grignolino": "g", "Barbera": "a"}


@pytest.fixture
def disputed(client: Client, wine: str) -> str:
    """Ann says what holds; bob differs about three of nine rows, and of one he is not sure."""
    said = [Statement(f"bottle-{k}", CLASSES[k % 3], "ann") for k in range(9)]
    said += [
        Statement(f"bottle-{k}", CLASSES[(k + (k % 3 == 1)) % 3], "bob", comment="stained") for k in range(9)
    ]
    client.state(wine, said)
    client.state(wine, [Statement("bottle-7", {"Barolo": 1.0, "Grignolino": 0.3, "Barbera": 0.3}, "bob")])
    return wine


TWICE = """() => {
  for (let k = 0; k < 2; k++)
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "g", code: "KeyG", bubbles: true }));
}"""
"""The key of a class, pressed twice before the next row is there."""


def shown(page: Page) -> str:
    return page.locator("#row-name").inner_text()


def press(page: Page, key: str, then: str) -> None:
    """Press a key, and wait until a row is shown."""
    glance(page)
    page.keyboard.press(key)
    page.locator("#row-name").filter(has_text=re.compile(f"^{re.escape(then)}$")).wait_for()


def test_disputes_are_settled_by_keys_and_taken_back(visit: Visit, client: Client, disputed: str) -> None:
    page = visit(f"/m/{disputed}", name="eve")
    link = page.get_by_role("link", name="3 of 9 rows are in dispute")
    link.click()
    expect(page.locator("#count")).to_contain_text("3 of 9 rows are in dispute.")
    assert shown(page) == "bottle-1"
    voices = page.locator(".voice").all_inner_texts()
    assert [re.search(r"\w+", each)[0] for each in voices] == ["ann", "bob"]  # type: ignore[index]
    assert "Grignolino" in voices[0]
    assert "Barbera" in voices[1]
    assert "“stained”" in voices[1]
    assert page.locator(".dispute .values-list").inner_text().count("\n") >= 5  # its values
    glance(page)
    page.evaluate(TWICE)
    page.locator("#row-name").filter(has_text="bottle-4").wait_for()
    assert [each.instance for each in client.disputes(disputed)] == ["bottle-4", "bottle-7"]
    expect(page.locator("#flash")).to_contain_text("bottle-1: Grignolino, in your name.")
    press(page, "k", "bottle-7")
    assert "rather sure" in page.locator(".voice").nth(1).inner_text()
    press(page, "b", "bottle-4")  # the key of a class, not "back"
    back = page.get_by_role("button", name="undo bottle-7")
    assert "z" in (back.get_attribute("aria-keyshortcuts") or "")
    press(page, "z", "bottle-7")
    expect(page.locator("#flash")).to_contain_text("taken back")
    assert client.get_dispute(disputed, "bottle-7").disputed
    press(page, "z", "bottle-1")
    assert [each.instance for each in client.disputes(disputed)] == ["bottle-1", "bottle-4", "bottle-7"]
    page.get_by_label("Class").select_option("Barolo")
    page.get_by_role("button", name="Filter").click()
    assert shown(page) == "bottle-7"
    assert page.locator(".dispute-list a").count() == 1
    glance(page)
    page.keyboard.press("g")
    expect(page.get_by_role("heading", name="No dispute passes the filter")).to_be_visible()
    (kept,) = [
        each for each in client.answers(disputed) if each.kind == "adjudicated" and each.state == "counts"
    ]
    assert (kept.labeller, kept.instance, kept.text) == ("eve", "bottle-7", "Grignolino")


def test_disputes_are_settled_without_scripts(visit: Visit, client: Client, disputed: str) -> None:
    page = visit(f"/m/{disputed}/disputes", name="eve", java_script_enabled=False)
    page.get_by_role("button", name="Grignolino").click()
    assert shown(page) == "bottle-4"
    page.get_by_text("one of several").click()
    page.get_by_role("checkbox", name="Barolo").check()
    page.get_by_role("checkbox", name="Barbera").check()
    page.get_by_role("button", name="Decide", exact=True).click()
    assert client.get_dispute(disputed, "bottle-4").labels[-1].text == "Barolo|Barbera"
    page.get_by_role("link", name=re.compile("bottle-1 Grignolino")).click()
    expect(page.locator(".voice.decided")).to_contain_text("eve decided")
    page.get_by_role("button", name="Take it back").click()
    assert client.get_dispute(disputed, "bottle-1").disputed


def test_who_may_not_decide_is_told_who_may(visit: Visit, client: Client, disputed: str) -> None:
    client.set_labelling_policy(disputed, LabellingPolicy(corrections="nobody"), ["corrections"])
    page = visit(f"/m/{disputed}/disputes", name="eve")
    expect(page.locator("#who-decides")).to_have_text(
        "By the labelling policy only tokens with the role corrector may decide."
    )
    assert page.locator("button.class").count() == 0
    glance(page)
    page.keyboard.press("g")
    assert shown(page) == "bottle-1"
    assert faults_of(page, colours=COLOURS[:1]) == []


ITEMS = 200


@pytest.mark.release
@pytest.mark.timeout(600)
def test_two_labellers_differ_and_a_third_settles_by_keys(
    visit: Visit, client: Client, shared_server: Serving, tmp_path: Path
) -> None:
    """200 items with two answers each; all that differ are settled, and the export has every word with its author."""
    name = "b-adjudicated"
    attributes = [Numeric("alcohol", cuts=8), Nominal("soil", ["clay", "lime"])]
    client.create_model(name, Specification(attributes, CLASSES, budget=2 * ITEMS, learner="abc45"))
    client.set_labelling_policy(name, LabellingPolicy(answers_per_query=2, max_conflict=1.0))
    rows = [[11 + k % 9 * 0.5, ["clay", "lime"][k % 2]] for k in range(ITEMS)]
    truth = {f"bottle-{k}": CLASSES[k % 9 // 3] for k in range(ITEMS)}
    client.push(name, rows, ids=list(truth))
    client.wait_grown(name)
    wrong = {each for k, each in enumerate(truth) if k % 7 == 3}

    def label(labeller: str) -> None:
        with Client(shared_server.address) as own:
            for query in own.queries(name, labeller, idle_s=20.0):
                right = truth[query.instance]
                errs = labeller == "bob" and query.instance in wrong
                own.answer(query, CLASSES[(CLASSES.index(right) + 1) % 3] if errs else right)

    with ThreadPoolExecutor(2) as at_work:
        list(at_work.map(label, ("ann", "bob")))
    assert {each.instance for each in client.disputes(name)} == wrong
    agreement = client.agreement(name)
    assert (agreement.shared, agreement.disputed) == (ITEMS, len(wrong))

    page = visit(f"/m/{name}/disputes", name="cid")
    left = len(wrong)
    while left:
        row = shown(page)
        glance(page)
        page.keyboard.press(KEYS[truth[row]])
        left -= 1
        expect(page.locator("#flash")).to_contain_text(f"{row}: {truth[row]}")
        expect(page.locator("#count")).to_contain_text(f"{left} of {ITEMS} rows are in dispute")
    expect(page.get_by_role("heading", name="No row is in dispute")).to_be_visible()

    file = tmp_path / "answers.csv"
    assert quercus("answers", name, "-o", str(file), server=shared_server.address).returncode == 0
    said = list(csv.DictReader(io.StringIO(file.read_text(encoding="utf-8"))))
    by_labeller = {
        who: {each["item"]: each for each in said if each["labeller"] == who} for who in ("ann", "bob", "cid")
    }
    assert len(said) == 2 * ITEMS + len(wrong)
    assert {item: each["answer"] for item, each in by_labeller["ann"].items()} == truth
    assert {item for item, each in by_labeller["bob"].items() if each["answer"] != truth[item]} == wrong
    assert {item: each["answer"] for item, each in by_labeller["cid"].items()} == {
        each: truth[each] for each in wrong
    }
    assert {each["kind"] for each in by_labeller["cid"].values()} == {"adjudicated"}
    assert {
        each["state"] for who in ("ann", "bob") for item, each in by_labeller[who].items() if item in wrong
    } == {"replaced"}
    assert {each["item"]: each["class"] for each in said if each["item"] in wrong} == {
        each: truth[each] for each in wrong
    }


def test_the_page_of_many_disputes_fits_every_screen(visit: Visit, client: Client) -> None:
    name = make_wine(client, "b-many-disputes")
    labellers = ["ann", "bob", "a labeller with a rather long name"]
    client.state(
        name,
        [
            Statement(f"bottle-{k}", CLASSES[(k + p) % 3], who)
            for k in range(60)
            for p, who in enumerate(labellers)
        ],
    )
    page = visit(f"/m/{name}/disputes")
    for width, height in ((1440, 900), (1024, 768), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        across = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert page.evaluate(across) <= 0
        box = page.locator("button.class").first.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= height  # seen without scrolling, on a phone too
