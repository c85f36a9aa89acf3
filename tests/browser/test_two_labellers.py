"""Two labellers, one in a browser and one at a terminal, label the same 200 rows and disagree; a third decides."""

import csv
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from browser.conftest import GLANCE_MS, kept
from integration.client.serving import Serving
from playwright.sync_api import Page, expect
from support.terminals import PROMPT, Screen

from quercus.client import Client, LabellingPolicy, Nominal, Numeric, Specification

pytestmark = [pytest.mark.browser, pytest.mark.release, pytest.mark.timeout(1800)]
Visit = Callable[..., Page]
CLASSES = ["Barolo", "Grignolino", "Barbera"]
KEYS = dict(zip(CLASSES, "bga", strict=True))
ROWS, NAME = 200, "b-two"


def truth(row: str) -> str:
    return CLASSES[int(row.removeprefix("bottle-")) % 3]


def said_by(labeller: str, row: str) -> str:
    """Return what a labeller says: one of ten rows wrong, not those of the other."""
    number = int(row.removeprefix("bottle-"))
    slips = number % 10 == {"ann": 3, "bob": 7}[labeller]
    return CLASSES[(number + slips) % 3]


@pytest.fixture
def shared(client: Client) -> str:
    """A model that wants two answers to each query."""
    attributes = [Numeric("alcohol", cuts=8), Numeric("hue", cuts=8), Nominal("soil", ["clay", "lime"])]
    client.create_model(NAME, Specification(attributes, CLASSES, budget=2 * ROWS + 50))
    rows = [[11 + k % 3 + k % 7 / 10, 0.5 + k % 5 / 5, ("clay", "lime")[k % 2]] for k in range(ROWS)]
    client.push(NAME, rows, ids=[f"bottle-{k}" for k in range(ROWS)])
    client.set_labelling_policy(NAME, LabellingPolicy(answers_per_query=2), ["answers_per_query"])
    client.wait_grown(NAME)
    return NAME


@pytest.fixture
def terminal(shared_server: Serving, shared: str) -> Iterator[Screen]:
    screen = Screen("label", shared, "--labeller", "bob", server=shared_server.address, size=(80, 24))
    yield screen
    screen.close()


def shown_at(screen: Screen) -> str:
    """Return the row that the terminal shows next."""
    found: list[str] = []
    while not found:  # a notice repeats the line of keys
        found = re.findall(r"instance (\S+)  ·", screen.expect(PROMPT))
    return found[-1]


def label_all(screen: Screen, said: dict[str, str]) -> None:
    """Label all rows at the terminal."""
    while len(said) < ROWS:
        row = shown_at(screen)
        screen.press(KEYS[said_by("bob", row)], GLANCE_MS / 1000)
        said[row] = said_by("bob", row)
    screen.press("q")


def next_row(page: Page, last: str) -> str:
    """Return the row that the page shows, once it is another than the last."""
    head = page.locator("#stage h1").filter(has_text=re.compile(f"^(?!{last or '-'}$)bottle-"))
    head.wait_for(timeout=90_000)
    return head.inner_text()


def downloaded(page: Page, link: str) -> list[dict[str, str]]:
    """Return the lines of the CSV file behind a link."""
    with page.expect_download() as download:
        page.locator(f"main a[href$='/{link}']").click()
    with Path(download.value.path()).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_two_hundred_rows_are_labelled_twice_decided_and_exported(
    visit: Visit, client: Client, shared: str, terminal: Screen
) -> None:
    """No answer is lost, doubled or changed, and each dispute ends with what was decided."""
    page = visit(f"/m/{shared}/label")
    ours: dict[str, dict[str, str]] = {"ann": {}, "bob": {}}
    with ThreadPoolExecutor(1) as pool:  # what is open for one may wait for the other's answer
        at_terminal = pool.submit(label_all, terminal, ours["bob"])
        last = ""
        while len(ours["ann"]) < ROWS:
            last = next_row(page, last)
            page.wait_for_timeout(GLANCE_MS)
            page.keyboard.press(KEYS[said_by("ann", last)])
            ours["ann"][last] = said_by("ann", last)
        kept(page)
        at_terminal.result(600)
    for _ in range(300):
        if client.get_model(shared).queries_answered == ROWS:
            break
        page.wait_for_timeout(100)
    answers = [(each.labeller, each.instance, each.text) for each in client.answers(shared)]
    assert sorted(answers) == sorted(
        (who, row, label) for who, said in ours.items() for row, label in said.items()
    )

    disputed = {row for row in ours["ann"] if ours["ann"][row] != ours["bob"][row]}
    assert len(disputed) == ROWS // 5
    page = visit(f"/m/{shared}/disputes", "carol")
    expect(page.locator("#count")).to_contain_text(f"{len(disputed)} of {ROWS} rows are in dispute")
    for _ in disputed:
        row = page.locator("#row-name").inner_text()
        page.wait_for_timeout(GLANCE_MS)
        with page.expect_navigation():
            page.keyboard.press(KEYS[truth(row)])
    expect(page.get_by_role("heading", name="No row is in dispute")).to_be_visible()

    page.goto(page.url.split("/m/")[0] + f"/m/{shared}/desk")
    of_answers = downloaded(page, "answers.csv")
    decided = {each["item"]: each["answer"] for each in of_answers if each["labeller"] == "carol"}
    assert decided == {row: truth(row) for row in disputed}
    assert sorted((each["labeller"], each["item"], each["answer"]) for each in of_answers) == sorted(
        [*answers, *(("carol", row, label) for row, label in decided.items())]
    )
    of_rows = downloaded(page, "items.csv")
    assert {each["item"]: each["class"] for each in of_rows} == {row: truth(row) for row in ours["ann"]}
