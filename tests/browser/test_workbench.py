"""The workbench: item and classes are in view on any screen, ten answers can be opened again, doubt has grades."""

import random
import re
import string
import struct
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from browser.conftest import answer, glance, heading, kept, press
from playwright.sync_api import Page, expect

from quercus.client import Client, Numeric, Specification
from quercus.client.keys import GRADES
from quercus.client.shown import guess_in
from quercus.specification.display import MediaItem
from quercus.specification.presentation import Presentation

pytestmark = pytest.mark.browser
Visit = Callable[..., Page]
SCREENS = {
    "desktop": (1440, 900),
    "small": (1024, 768),
    "phone": (390, 844),
    "1440 at 200 %": (720, 450),
    "1024 at 200 %": (512, 384),
}
WINES = ["Barolo", "Grignolino", "Barbera"]
SHAPES: dict[str, tuple[int, list[str], bool]] = {  # attributes, classes, whether there is a picture
    "wb-13": (13, WINES, False),
    "wb-22": (22, ["edible", "poisonous"], False),
    "wb-200": (200, ["normal", "worn", "broken"], False),
    "wb-picture": (8, list(string.digits), True),
    "wb-26": (16, list(string.ascii_uppercase), False),
}


def picture(number: int) -> bytes:
    """A PNG of 8 by 8 grey pixels."""
    rows = b"".join(
        b"\0" + bytes((number * 31 + 7 * k + 13 * row) % 256 for k in range(8)) for row in range(8)
    )

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


@pytest.fixture(scope="module")
def shapes(client: Client) -> list[str]:
    chance = random.Random(3)  # noqa: S311
    for name, (width, classes, has_picture) in SHAPES.items():
        attributes = [Numeric(f"measured value {k}", cuts=4) for k in range(width)]
        client.create_model(name, Specification(attributes, classes, budget=60, min_instances=1))
        rows = [[chance.random() for _ in attributes] for _ in range(60)]
        displays = [[MediaItem("image", "scan", data=picture(k))] for k in range(60)] if has_picture else None
        client.push(name, rows, ids=[f"row-{k}" for k in range(60)], displays=displays)
        client.wait_grown(name)
    return list(SHAPES)


SEEN = """() => {
  const inView = (element) => {
    const box = element.getBoundingClientRect();
    const at = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
    const isInside = box.top >= 0 && box.left >= 0 && box.bottom <= innerHeight && box.right <= innerWidth;
    return isInside && element.contains(at);
  };
  const classes = [...document.querySelectorAll("#stage button.class")];
  const item = document.querySelector("#stage .item").getBoundingClientRect();
  const scan = document.querySelector("#stage .picture img")?.getBoundingClientRect();
  const rows = [...document.querySelectorAll("#stage .values-list > div")].map((each) => each.getBoundingClientRect());
  const sizes = classes.map((each) => each.getBoundingClientRect());
  const text = (selector) => parseFloat(getComputedStyle(document.querySelector(selector)).fontSize);
  const page = document.scrollingElement;
  return {
    pocket: [...document.querySelectorAll("#stage .pocket button")].every(inView),
    unseen: classes.filter((each) => !inView(each)).map((each) => each.value),
    first: classes[0].getBoundingClientRect().top,
    least: Math.min(...sizes.flatMap((each) => [each.height, each.width])),
    item: item.height / innerHeight,
    cut: scan ? Math.max(scan.bottom - item.bottom, scan.right - item.right) : 0,
    filled: scan ? Math.max(scan.width / item.width, scan.height / item.height) : 1,
    row: Math.min(...rows.map((each) => each.height)),
    scrolls: [page.scrollHeight - innerHeight, page.scrollWidth - innerWidth],
    question: text("#stage .question") / text("#stage h1"),
    columns: new Set(rows.map((each) => each.left)).size,
  };
}"""


def test_every_class_is_in_view_on_every_screen(visit: Visit, shapes: list[str]) -> None:
    """13, 22 and 200 attributes, a picture beside 8, and 26 classes; nothing is scrolled, and no picture is cut."""
    page = visit("/")
    home, wrong = page.url.rstrip("/"), []
    for name in shapes:
        page.goto(f"{home}/m/{name}/label")
        page.locator("#stage h1").wait_for()
        for screen, (width, height) in SCREENS.items():
            page.set_viewport_size({"width": width, "height": height})
            page.wait_for_timeout(50)
            seen = page.evaluate(SEEN)
            small = screen not in ("desktop", "small")
            holds = {
                "all classes": not seen["unseen"],
                "the pocket": not small or seen["pocket"],
                "the first from the top": small or seen["first"] < 60,
                "targets": seen["least"] >= (44 if small else 36),
                "more than half for the item": seen["item"] >= 0.55,
                "no picture is cut": seen["cut"] <= 0,
                "the picture fills its card": seen["filled"] > 0.55,
                "rows of 28 px": screen == "1024 at 200 %" or 27.5 <= seen["row"] <= 28.5,
                "the page does not scroll": seen["scrolls"] == [0, 0],
                "the question is the largest": seen["question"] > 1.1,
                "columns": small or SHAPES[name][2] or seen["columns"] >= 2,
            }
            wrong += [(name, screen, what, seen) for what, is_so in holds.items() if not is_so]
    assert wrong == []


def test_values_that_find_no_room_are_folded(visit: Visit, shapes: list[str]) -> None:
    """Once they are opened, they are open in the next row too."""
    page = visit("/m/wb-200/label")
    rest = page.locator("#stage .rest")
    expect(rest.locator("summary")).to_have_text("and 176 more")
    expect(rest.get_by_text("measured value 199")).to_be_hidden()
    rest.locator("summary").click()
    expect(rest.get_by_text("measured value 199")).to_be_visible()
    page.locator("#stage h1").focus()
    answer(page, "n")
    expect(rest.get_by_text("measured value 199")).to_be_visible()
    named = page.locator("#stage .values-list dt").all_inner_texts()
    assert sorted(named) == sorted(f"measured value {k}" for k in range(200))


def test_a_picture_is_enlarged_by_a_key(visit: Visit, shapes: list[str]) -> None:
    """Its pixels stay squares, and a class can be given meanwhile."""
    page = visit("/m/wb-picture/label", viewport={"width": 1440, "height": 900})
    scan = page.get_by_role("img", name="scan")
    expect(scan).to_have_css("image-rendering", "pixelated")
    before = scan.bounding_box()
    press(page, "v")
    after = scan.bounding_box()
    assert before is not None
    assert after is not None
    assert before["height"] > 500
    assert after["width"] > 1400
    assert after["height"] > before["height"]
    page.keyboard.press("Escape")
    assert scan.bounding_box() == before
    page.get_by_role("button", name="enlarge scan").click()
    shown = press(page, "7")
    expect(page.locator("#stage h1")).not_to_have_text(shown)
    assert page.locator(".zoomed").count() == 0


def test_ten_answers_can_be_opened_again(visit: Visit, client: Client, wine: str) -> None:
    """Undo goes back one step after the other; a click opens any of them; a reload lists them."""
    page = visit(f"/m/{wine}/label")
    said = [answer(page, "bga"[k % 3]) for k in range(12)]
    listed = page.get_by_role("list", name="Your last answers")
    expect(listed.get_by_role("listitem").first).to_contain_text(
        said[-1]
    )  # drawn once the next query is painted
    assert [text.split("\n")[0] for text in listed.get_by_role("listitem").all_inner_texts()] == said[:1:-1]
    kept(page)
    present = heading(page)
    for step in range(10):
        page.keyboard.press("z")
        expect(page.locator("#stage h1")).to_have_text(said[11 - step])
    page.keyboard.press("z")
    expect(page.locator("#status")).to_have_text("There is no earlier answer in this session.")
    press(page, "g")  # the third answer, which was Barbera
    expect(page.locator("#stage h1")).to_have_text(present)
    listed.get_by_role("button", name=said[5]).click()
    expect(page.locator("#earlier")).to_contain_text(f"You said: Barbera, {said[5]}")
    page.keyboard.press("Escape")
    expect(page.locator("#stage h1")).to_have_text(present)
    kept(page)
    corrected = [each for each in client.answers(wine) if each.kind == "corrected"]
    assert [(each.instance, each.text) for each in corrected] == [(said[2], "Grignolino")]
    page.reload()
    assert set(said[3:]) < {text.split("\n")[0] for text in listed.get_by_role("listitem").all_inner_texts()}
    page.get_by_role("button", name="undo").click()  # what was answered before the page was opened
    expect(page).to_have_url(re.compile("/label/history$"))


def test_doubt_has_grades(visit: Visit, client: Client, wine: str) -> None:
    page = visit(f"/m/{wine}/label")
    answer(page, "d", "b")
    glance(page)
    page.get_by_role("radio", name="only a guess", exact=True).check()
    page.get_by_role("button", name="Grignolino").click()
    expect(page.locator("#status")).to_have_text(re.compile(": Grignolino, only a guess[.]"))
    glance(page)
    expect(page.get_by_role("radio", name="sure", exact=True)).to_be_checked()  # it is chosen for one answer
    page.locator("#stage h1").focus()
    answer(page, "d", "d", "d", "a")
    kept(page)
    rather, guess = (grade.others for grade in GRADES[1:])
    assert [each.text for each in client.answers(wine)] == [
        f"Barolo:1.0 Grignolino:{rather} Barbera:{rather}",
        f"Barolo:{guess} Grignolino:1.0 Barbera:{guess}",
        "Barbera",
    ]


def test_doubt_is_behind_one_button_on_a_phone(visit: Visit, client: Client, wine: str) -> None:
    """With scripts and without them; keys bring it up, and Escape puts it away."""
    phone: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
    page = visit(f"/m/{wine}/label", **phone)
    expect(page.locator("#stage .doubts")).to_be_hidden()
    expect(page.locator("#stage .why")).to_be_hidden()
    glance(page)
    page.get_by_role("button", name="Not sure …").tap()
    glance(page)
    page.get_by_text("rather sure", exact=True).tap()
    expect(page.locator("#stage .doubts")).to_be_hidden()
    page.get_by_role("button", name="Barolo").tap()
    expect(page.locator("#status")).to_have_text(re.compile(": Barolo, rather sure[.]"))
    press(page, "s", "b", "g")
    expect(page.locator("#stage .doubts")).to_be_visible()
    answer(page, "Enter")
    expect(page.locator("#stage .doubts")).to_be_hidden()
    kept(page)
    page = visit(f"/m/{wine}/label", java_script_enabled=False, **phone)
    page.get_by_role("button", name="Not sure …").tap()
    page.get_by_text("only a guess", exact=True).tap()
    page.touchscreen.tap(200, 200)
    with page.expect_navigation():
        page.get_by_role("button", name="Barbera").tap()
    assert [each.text for each in client.answers(wine)][1:] == [
        "Barolo|Grignolino",
        "Barolo:0.7 Grignolino:0.7 Barbera:1.0",
    ]


def test_the_guess_is_accepted_with_enter_and_can_be_withheld(visit: Visit, client: Client) -> None:
    """The page of the model says how often it was taken; who withholds it takes it out of the reason too."""
    classes, rows = ["low", "high"], [[k / 40] for k in range(40)]
    client.create_model(
        "wb-guess", Specification([Numeric("x", cuts=8)], classes, budget=40, min_instances=1)
    )
    client.push("wb-guess", rows, ids=[f"r{k}" for k in range(40)])
    client.wait_grown("wb-guess")
    for _, query in zip(range(6), client.queries("wb-guess", "tom"), strict=False):
        client.answer(query, classes[query.values["x"] >= 0.5])
    client.wait_grown("wb-guess")
    page = visit("/m/wb-guess/label")
    taken = []
    for other in (False, False, True):
        guessed = page.locator("#stage button.guessed")
        name = guessed.get_attribute("value")
        assert name is not None
        said = re.compile(rf"^Enter accepts {name} \(\d+\s%\)$")
        expect(page.locator("#stage .guess")).to_have_text(said)
        expect(guessed).to_have_attribute("aria-description", re.compile("^the model's guess, "))
        key = "hl"[name == "high"] if other else "Enter"
        taken.append((answer(page, key), classes[name == "low"] if other else name))
        kept(page)
        client.wait_grown("wb-guess")
    page.keyboard.press("z")
    press(page, "Enter")  # a correction is nobody's guess
    expect(page.locator("#earlier")).to_be_visible()
    page.keyboard.press("Escape")
    mine = [each for each in client.answers("wb-guess") if each.labeller == "ann"]
    assert [(each.instance, each.text) for each in mine] == taken
    assert [guess_in(each.shown) is not None for each in mine] == [True] * 3
    page.goto(page.url.removesuffix("/label"))
    expect(page.locator("#guesses")).to_contain_text(
        "Of the last 3 answers beside a guess of the model, 2 took it (67 %)"
    )
    client.update_model("wb-guess", presentation=Presentation(withheld=["guess"]))
    page.goto(page.url + "/label")
    page.locator("#stage h1").wait_for()
    shown = press(page, "Enter")
    assert heading(page) == shown
    expect(page.locator("#stage .guessed")).to_have_count(0)
    assert "guess" not in page.locator("#stage .why").inner_text().lower()


PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True}


def test_no_number_is_broken(visit: Visit, client: Client) -> None:
    """Each is one line on every screen, and lies inside the card; long names break after their underscores."""
    names = [f"the_long/name_of_a_quantity_{k}" for k in range(20)]
    attributes = [Numeric(each, cuts=4) for each in names]
    client.create_model("wb-digits", Specification(attributes, WINES, budget=9, min_instances=1))
    client.push("wb-digits", [[-2.718281828459045e-05 * (j + k) for k in range(20)] for j in range(1, 10)])
    client.wait_grown("wb-digits")
    page = visit("/m/wb-digits/label")
    for width, height in SCREENS.values():
        page.set_viewport_size({"width": width, "height": height})
        wrong = page.evaluate("""() => [...document.querySelectorAll("#stage dd")].filter((each) => {
          const range = document.createRange();
          range.selectNodeContents(each);
          const text = range.getBoundingClientRect(), row = each.parentElement.getBoundingClientRect();
          return range.getClientRects().length > 1 || text.right > row.right + 1 || text.left < row.left;
        }).map((each) => each.textContent)""")
        assert wrong == []
    name = page.locator("#stage dt").first
    assert name.inner_html() == "the_<wbr>long/<wbr>name_<wbr>of_<wbr>a_<wbr>quantity_<wbr>0"


def test_a_sheet_of_a_phone_takes_no_second_tap_and_no_press_passes_it(
    visit: Visit, client: Client, wine: str
) -> None:
    """A double tap on its button refuses nothing; a tap beside the sheet closes it, and answers no class."""
    page = visit(f"/m/{wine}/label", **PHONE)
    shown = heading(page)
    glance(page)
    box = page.get_by_role("button", name="Not sure …").bounding_box()
    assert box is not None
    for across in (0.2, 0.5, 0.8):
        at = box["x"] + across * box["width"], box["y"] + box["height"] / 2
        page.touchscreen.tap(*at)
        page.touchscreen.tap(*at)
        expect(page.locator("#stage .doubts")).to_be_visible()
        assert page.evaluate(
            "([x, y]) => document.elementFromPoint(x, y).closest('.grade') !== null", list(at)
        )
        expect(page.get_by_role("radio", name="sure", exact=True)).to_be_checked()
        glance(page)
        page.get_by_role("button", name="Close").tap()
        expect(page.locator("#stage .doubts")).to_be_hidden()
    barolo = page.get_by_role("button", name="Barolo").bounding_box()
    assert barolo is not None
    page.get_by_role("button", name="Why this one").tap()
    glance(page)
    page.touchscreen.tap(barolo["x"] + 20, 200)
    expect(page.locator("#stage .why")).to_be_hidden()
    page.get_by_role("button", name="Menu").tap()
    glance(page)
    page.touchscreen.tap(barolo["x"] + 20, barolo["y"] + 10)
    expect(page.locator("#menu")).to_be_hidden()
    page.wait_for_timeout(100)
    assert heading(page) == shown
    page.touchscreen.tap(barolo["x"] + 20, barolo["y"] + 10)
    expect(page.locator("#stage h1")).not_to_have_text(shown)
    kept(page)
    assert [each.text for each in client.answers(wine)] == ["Barolo"]


def test_a_phone_corrects_by_touch_alone(visit: Visit, client: Client, wine: str) -> None:
    """The last answers are in a sheet; what was said is marked; no guess and no reason stand beside it."""
    page = visit(f"/m/{wine}/label", **PHONE)
    first = heading(page)
    for _ in range(2):
        shown = heading(page)
        glance(page)
        page.get_by_role("button", name="Barolo").tap()
        page.locator("#stage h1").filter(has_not_text=re.compile(f"^{re.escape(shown)}$")).wait_for()
    kept(page)
    present = heading(page)

    def open_first() -> None:
        page.get_by_role("button", name="More").tap()
        glance(page)
        page.get_by_role("list", name="Your last answers").get_by_role("button", name=first).tap()
        expect(page.locator("#stage h1")).to_have_text(first)
        expect(page.locator("#earlier")).to_contain_text(f"You said: Barolo, {first}")

    open_first()
    expect(page.get_by_role("button", name="Barolo")).to_have_attribute("aria-current", "true")
    for gone in (".guess", ".guessed", ".why", ".why-open"):
        expect(page.locator(f"#stage {gone}")).to_have_count(0)
    page.get_by_role("button", name="Not sure …").tap()
    expect(page.locator("#stage .act")).to_have_count(3)
    for act in page.locator("#stage .act").all():
        expect(act).to_be_hidden()
    glance(page)
    page.get_by_role("button", name="Close").tap()
    page.get_by_role("button", name="Leave it").tap()
    expect(page.locator("#stage h1")).to_have_text(present)
    expect(page.locator("#earlier")).to_be_hidden()
    open_first()
    glance(page)
    page.get_by_role("button", name="Take it back").tap()
    expect(page.locator("#stage h1")).to_have_text(present)
    kept(page)
    assert [each.kind for each in client.answers(wine)] == ["answered", "answered", "undone"]


def test_a_form_is_cancelled_and_stands_alone(visit: Visit, shapes: list[str]) -> None:
    """Its Send is in view on a phone with 26 classes, and the fields say what an empty one means."""
    page = visit("/m/wb-26/label", **PHONE)
    page.get_by_role("button", name="Not sure …").tap()
    glance(page)
    page.locator("summary", has_text="weigh classes").tap()
    send = page.locator("#stage .plausibilities .primary").bounding_box()
    assert send is not None
    assert send["y"] + send["height"] <= 844
    expect(page.locator("#stage .grade")).to_be_hidden()
    expect(page.locator("#stage .act").first).to_be_hidden()
    page.get_by_label("What an empty field means").select_option("0")
    fields = page.locator("#stage .grades input")
    assert {each.get_attribute("placeholder") for each in fields.all()} == {"0"}
    assert all(each.bounding_box()["height"] >= 44 for each in fields.all()[:3])  # type: ignore[index]
    page.locator("#stage .plausibilities .cancel").tap()
    expect(page.locator("#stage .grade")).to_be_visible()
