"""Pages of rows on a phone, and what is folded: nothing scrolls sideways, and no row is cut."""

from collections.abc import Callable
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from browser.test_workbench import picture
from playwright.sync_api import Page, expect
from support.accessible import faults_of

from quercus.client import Client, Numeric, Specification
from quercus.specification.display import MediaItem, TextItem

pytestmark = pytest.mark.browser
Visit = Callable[..., Page]
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
LETTERS = [chr(ord("A") + k) for k in range(26)]


@pytest.fixture(scope="module")
def letters(client: Client) -> str:
    """Rows with a picture and a text, of 26 classes."""
    client.create_model(
        "small",
        Specification(
            [Numeric(f"width {k}", cuts=4) for k in range(12)], LETTERS, learner="abc45", budget=20
        ),
    )
    rows = [[(k * (j + 3)) % 17 / 4 for j in range(12)] for k in range(60)]
    shown = [
        [MediaItem("image", "scan", data=picture(k)), TextItem("note", "Seen twice.")] for k in range(60)
    ]
    labels = [LETTERS[k % 26] if k < 52 else None for k in range(60)]
    client.push("small", rows, labels, ids=[f"letter-{k}" for k in range(60)], displays=shown)
    client.wait_grown("small")
    return "small"


def test_a_list_of_rows_fits_a_phone_and_its_bar_is_there_once_a_row_is_chosen(
    visit: Visit, letters: str
) -> None:
    page = visit(f"/m/{letters}/items", **PHONE)
    wide = (
        "[...document.querySelectorAll('.wide')].filter((each) => each.scrollWidth > each.clientWidth).length"
    )
    assert page.evaluate(wide) == 0
    change = page.get_by_role("button", name="Show what would change")
    expect(change).not_to_be_in_viewport()
    page.get_by_role("checkbox", name="Choose letter-0", exact=True).check()
    expect(change).to_be_in_viewport()
    assert Axe().run(page).response["violations"] == []
    page.set_viewport_size({"width": 1024, "height": 768})
    page.reload()
    expect(change).to_be_in_viewport()  # above 50 rows as below them


@pytest.mark.parametrize(
    ("width", "letters_percent", "seen"), [(390, 100, 1.0), (360, 100, 1.0), (320, 100, 0.5), (390, 150, 0.5)]
)
def test_all_pages_of_a_model_are_on_one_line_of_a_phone(
    visit: Visit, letters: str, width: int, letters_percent: int, seen: float
) -> None:
    """The line scrolls where they do not fit, and the page does not."""
    page = visit(f"/m/{letters}/desk", viewport={"width": width, "height": 844}, has_touch=True)
    page.evaluate(f"document.documentElement.style.fontSize = '{letters_percent}%'")
    links = page.get_by_role("navigation", name=letters).get_by_role("link")
    expect(links).to_have_text(["Label", "Items", "Tree", "Model", "Classify", "Lead"])
    assert len({round(each["y"]) for link in links.all() if (each := link.bounding_box())}) == 1
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    if seen < 1.0:
        links.last.focus()  # Chromium leaves a link where it is if most of it is seen
    expect(links.last).to_be_in_viewport(ratio=seen)
    assert Axe().run(page).response["violations"] == []


def test_many_classes_are_folded_behind_the_likeliest(visit: Visit, letters: str) -> None:
    page = visit(f"/m/{letters}/items/row?id=letter-3")
    bars = page.locator(".bars tbody tr")
    expect(bars.filter(visible=True)).to_have_count(5)
    expect(bars.first.get_by_role("rowheader")).to_have_text("D")
    page.get_by_text("and 21 more", exact=True).click()
    expect(bars.filter(visible=True)).to_have_count(26)
    picture_on_page = page.get_by_role("img", name="scan")
    expect(picture_on_page).to_have_css("image-rendering", "pixelated")
    box = picture_on_page.bounding_box()
    assert box is not None
    assert box["width"] > 200


@pytest.mark.parametrize("width", [700, 890, 900])
def test_the_letters_of_a_tree_can_be_read_or_are_not_drawn(visit: Visit, letters: str, width: int) -> None:
    page = visit(f"/m/{letters}/tree", viewport={"width": width, "height": 768})
    page.locator(".icicle").wait_for()
    assert page.locator(".icicle text").first.is_visible() == (width > 896)
    assert faults_of(page) == []


CUT = """() => {
  const edge = document.querySelector("#stage .item").getBoundingClientRect().bottom;
  const rows = [...document.querySelectorAll("#stage .values-list > div")].map((each) => each.getBoundingClientRect());
  return rows.filter((row) => row.top < edge - 1 && row.bottom > edge + 1).length;
}"""


def test_no_row_below_a_picture_is_cut(visit: Visit, letters: str) -> None:
    page = visit(f"/m/{letters}/label", **PHONE)
    page.locator("#stage h1").wait_for()
    assert Axe().run(page).response["violations"] == []
    for height in range(700, 900, 17):
        page.set_viewport_size({"width": 390, "height": height})
        for _ in range(50):
            if not page.evaluate(CUT):
                break
            page.wait_for_timeout(50)
        assert page.evaluate(CUT) == 0, height
