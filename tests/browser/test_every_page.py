"""Every page in every state, on three screens, in light and dark: what axe finds, and pictures for eyes to look at.

``make screens`` writes the pictures. What is to be looked at follows from the routes of the console: one that no look
reaches, and that is not named as no page, fails.
"""

import io
import json
import os
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browser.conftest import PATIENCE_MS, answer, glance, heading, kept, press
from integration.client.serving import Serving
from PIL import Image, ImageDraw
from playwright.sync_api import Browser, Page, expect
from starlette.routing import Match, Route
from support.accessible import COLOURS, faults_of
from support.consoles import ConsoleProcess

from quercus.client import (
    ClassExample,
    Client,
    Guidance,
    LabellingPolicy,
    Nominal,
    Numeric,
    Specification,
    Statement,
)
from quercus.console.app import ROUTES
from quercus.server.gate.access import issue_token
from quercus.specification.display import LinkItem, MediaItem, TextItem
from quercus.specification.presentation import AttributeView, Presentation
from quercus.storage import Store, file_url

pytestmark = pytest.mark.browser
SIZES: dict[str, dict[str, Any]] = {
    "1440": {"viewport": {"width": 1440, "height": 900}},
    "1024": {"viewport": {"width": 1024, "height": 768}},
    "390": {"viewport": {"width": 390, "height": 844}, "has_touch": True},
}
PICTURES = os.environ.get("SCREENS", "")
"""Folder for a picture of each look; empty: none are taken."""
CLASSES = ["unripe", "ripe", "overripe"]
KEYS = dict(zip(CLASSES, "uro", strict=True))
ORCHARDS = ["north slope", "south slope", "valley"]
PEARS = 200
LETTERS = [chr(ord("A") + k) for k in range(26)]
MOTHS = "length,colour,note,kind\n" + "\n".join(
    f"{k / 4},{'rb'[k % 2]},the wing of moth {k} has a spot,{('Lymantria', 'Tortrix', '')[k % 3]}"
    for k in range(40)
)
PEOPLE = {"olga": ["operator", "labeller", "corrector"], "ann": ["labeller"], "bob": ["labeller"]}


def pear(number: int, ripeness: float) -> bytes:
    """A drawing of a pear, the redder the riper."""
    image = Image.new("RGB", (480, 360), (236, 240, 243))
    colour, left = (int(120 + 110 * ripeness), int(170 - 70 * ripeness), 60), 90 + number * 37 % 60
    drawing = ImageDraw.Draw(image)
    drawing.ellipse((left + 60, 60, left + 190, 220), fill=colour)
    drawing.ellipse((left + 20, 130, left + 230, 330), fill=colour)
    drawing.line((left + 125, 66, left + 140, 24), fill=(90, 60, 30), width=9)
    for k in range(number % 9):
        x, y = left + 60 + k * 53 % 130, 170 + k * 31 % 120
        drawing.ellipse((x, y, x + 12, y + 12), fill=(110, 80, 40))
    written = io.BytesIO()
    image.save(written, "PNG")
    return written.getvalue()


class World:
    """A server with tokens, a console, and models as a team has them after some days."""

    def __init__(self, serving: Serving, folder: Path) -> None:
        self.serving, self.folder = serving, folder
        with Store.open(file_url(folder / "quercus.db")) as store:
            self.tokens = {name: issue_token(store.access, name, roles)[0] for name, roles in PEOPLE.items()}
            issue_token(store.access, "press-7", ["sensor"], ["pears"], 86_400.0)
            store.access.revoke_token(issue_token(store.access, "carl", ["reader"])[1].id)
        self.clients = {
            name: Client(self.serving.address, token=token) for name, token in self.tokens.items()
        }
        self.olga = self.clients["olga"]
        self._make_pears()
        self._make_letters()
        self.olga.create_model("spent", Specification([Numeric("x")], ["yes", "no"], budget=0))
        self.olga.push("spent", [[1], [2]])
        self.console = ConsoleProcess(self.serving.address)

    def _make_pears(self) -> None:
        chance = random.Random(7)  # noqa: S311
        attributes = [
            Numeric("firmness", cuts=16),
            Numeric("sugar", cuts=16),
            Numeric("weight", cuts=16),
            Numeric("hue", cuts=16),
            Nominal("orchard", ORCHARDS),
        ]
        look = Presentation(
            [
                AttributeView(
                    "firmness", unit="kg/cm²", description="Force of a penetrometer on the peeled fruit."
                ),
                AttributeView("sugar", unit="°Bx"),
                AttributeView("weight", unit="g"),
                AttributeView("hue", unit="°"),
            ]
        )
        guidance = Guidance(
            "Pears of the autumn harvest",
            "Look at the picture first, then at the firmness.\n\nA pear below 3 kg/cm² is never unripe. "
            "In doubt, see https://pears.example/ripeness and ask.",
            (
                ClassExample("unripe", "pear-012", "green, hard, no scent"),
                ClassExample("overripe", "pear-031", "brown spots, gives way to the thumb"),
            ),
        )
        self.olga.create_model(
            "pears", Specification(attributes, CLASSES, budget=150, presentation=look, guidance=guidance)
        )
        self.ripeness = {f"pear-{k:03}": chance.random() for k in range(PEARS)}
        rows = [
            [
                round(8 - 6 * ripe + chance.gauss(0, 0.5), 1),
                round(9 + 5 * ripe + chance.gauss(0, 0.6), 1),
                round(chance.gauss(180, 25)),
                round(110 - 50 * ripe + chance.gauss(0, 6)),
                chance.choice(ORCHARDS),
            ]
            for ripe in self.ripeness.values()
        ]
        shown = [
            [
                MediaItem("image", "photograph", data=pear(k, ripe), alt=f"a pear, number {k}"),
                TextItem("note of the picker", "Taken from the lower branches after two days of rain."),
                LinkItem("sheet of the tree", "https://pears.example/trees/17"),
            ]
            for k, ripe in enumerate(self.ripeness.values())
        ]
        self.olga.push("pears", rows, ids=list(self.ripeness), displays=shown)
        self.olga.set_labelling_policy("pears", LabellingPolicy(gold_share=0.1, max_conflict=1.0))
        gold = {row: self.truth(row) for row in list(self.ripeness)[150:156]}
        self.olga.mark_gold("pears", gold)
        self.olga.wait_grown("pears")
        for labeller, count in (("ann", 40), ("bob", 15)):
            client = self.clients[labeller]
            for _, query in zip(range(count), client.queries("pears", labeller), strict=False):
                client.answer(query, self.truth(query.instance), took_s=chance.uniform(1, 6))
        names = list(self.ripeness)
        for who, slips in (("ann", 9), ("bob", 5)):
            said = [
                Statement(row, CLASSES[(CLASSES.index(self.truth(row)) + (k % slips == 1)) % 3], who)
                for k, row in enumerate(names[100:130])
            ]
            self.clients[who].state("pears", said)
        unsure = {"unripe": 0.3, "ripe": 1.0, "overripe": 0.7}
        self.clients["bob"].state("pears", [Statement(names[105], unsure, "bob", comment="soft on one side")])
        self.olga.wait_grown("pears")

    def _make_letters(self) -> None:
        attributes = [Numeric(f"width of stroke {k}", cuts=4) for k in range(22)]
        self.olga.create_model("letters", Specification(attributes, LETTERS, learner="abc45", budget=200))
        rows = [[(k * (j + 3)) % 17 / 4 for j in range(22)] for k in range(80)]
        labels = [LETTERS[k % 26] if k < 52 else None for k in range(80)]
        self.olga.push("letters", rows, labels, ids=[f"letter-{k}" for k in range(80)])
        self.olga.wait_grown("letters")

    def truth(self, row: str) -> str:
        return CLASSES[int(3 * self.ripeness[row])]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("world")
    made, serving = None, Serving(folder, 0, "--access", "tokens")
    try:
        made = World(serving, folder)
        yield made
        assert "Traceback" not in made.console.stop()
    finally:
        (serving if made is None else made.serving).stop()


class Walk:
    """One visitor's way through all pages on one screen."""

    def __init__(self, page: Page, world: World) -> None:
        self.page, self.world = page, world

    def go(self, path: str) -> None:
        self.page.goto(f"{self.world.console.url}{path}")
        self.page.wait_for_load_state()

    def sign_in(self, name: str) -> None:
        self.page.context.clear_cookies()
        self.go("/sign-in")
        self.page.get_by_label("Token").fill(self.world.tokens[name])
        self.page.get_by_role("button", name="Sign in").click()
        self.page.get_by_role("heading", name="Models").wait_for()

    def label(self, model: str = "pears") -> None:
        self.go(f"/m/{model}/label")
        self.page.locator("#stage h1").wait_for()
        glance(self.page)


def at(path: str) -> Callable[[Walk], None]:
    return lambda walk: walk.go(path)


def asked(command: str = "", model: str = "pears") -> Callable[[Walk], None]:
    """Show a query, and press the key of a command."""

    def reach(walk: Walk) -> None:
        walk.label(model)
        if command:
            keys = json.loads(walk.page.locator("#stage article").get_attribute("data-commands") or "")
            walk.page.keyboard.press(keys[command][0])
        walk.page.wait_for_load_state("networkidle")

    return reach


def corrected(walk: Walk) -> None:
    walk.label()
    answer(walk.page, KEYS[walk.world.truth(heading(walk.page))])
    kept(walk.page)
    press(walk.page, "z")
    expect(walk.page.locator("#earlier")).to_be_visible()


def offline(walk: Walk) -> None:
    walk.label()
    walk.page.wait_for_load_state("networkidle")
    walk.page.context.set_offline(True)
    for _ in range(2):
        answer(walk.page, KEYS[walk.world.truth(heading(walk.page))])
    expect(walk.page.locator("#away")).to_contain_text("kept here")


def refused(walk: Walk) -> None:
    """Answers that waited are not taken, for the leases ended meanwhile; the page may have leased one of them again."""
    for each in walk.world.olga.list_queries("pears", ["leased"]):
        walk.world.olga.end_lease(each.name)
    walk.page.context.set_offline(False)
    expect(walk.page.locator("#refused li").first).to_be_visible()
    walk.page.wait_for_load_state("networkidle")


def dismissed(walk: Walk) -> None:
    """Nothing of this labeller is left over, and the menu of a phone is open."""
    for _ in range(walk.page.locator("#refused button").count()):
        walk.page.locator("#refused button").first.click()
    menu = walk.page.get_by_role("button", name="Menu", exact=True)
    if menu.is_visible():
        menu.click()
    expect(walk.page.locator("#refused")).to_be_hidden()


def opened_more(walk: Walk) -> None:
    """The last answers, which are in a sheet of their own on a phone."""
    walk.label()
    more = walk.page.get_by_role("button", name="More", exact=True)
    if more.is_visible():
        more.click()
    expect(walk.page.get_by_role("list", name="Your last answers")).to_be_visible()


def paused(walk: Walk) -> None:
    walk.label()
    walk.page.evaluate("Date.now = () => 9e12")  # much later
    walk.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(walk.page.locator("#paused")).to_be_visible()


def previewed(walk: Walk) -> None:
    walk.go("/m/pears/items?only=disputed")
    walk.page.get_by_role("checkbox", name=re.compile("^Choose")).first.check()
    walk.page.get_by_role("button", name="Show what would change").click()
    walk.page.get_by_role("heading", name=re.compile("would be labelled")).wait_for()


def classified(walk: Walk) -> None:
    walk.go("/m/pears/classify")
    walk.page.get_by_label("firmness, or its lower end").fill("4")
    walk.page.get_by_role("button", name="Classify").click()
    walk.page.get_by_role("heading", name=re.compile("^(It is|Most likely) ")).wait_for()


def misset(walk: Walk) -> None:
    walk.go("/m/pears/desk")
    walk.page.get_by_label("Answers in all").fill("many")
    walk.page.get_by_role("button", name="Set the budget").click()
    expect(walk.page.get_by_role("alert")).to_contain_text("must be a whole number")


def planned(walk: Walk) -> None:
    walk.go("/create")
    walk.page.get_by_label("File").set_input_files(
        {"name": "moths.csv", "mimeType": "text/csv", "buffer": MOTHS.encode()}
    )
    walk.page.get_by_role("heading", name="moths.csv").wait_for()
    walk.page.get_by_label("Names of the classes").fill("Lymantria, Tortrix")
    expect(walk.page.get_by_text("Classes (2): Lymantria, Tortrix.")).to_be_visible()


def chosen_learner(walk: Walk) -> None:
    walk.page.get_by_text("Advanced: learner").click()
    walk.page.get_by_role("radio", name="forest A forest").check()
    walk.page.get_by_label("trees", exact=True).fill("0")
    walk.page.get_by_role("button", name="Create the model").click()
    expect(walk.page.get_by_label("trees", exact=True)).to_have_accessible_description(re.compile("must be"))


def made_token(walk: Walk) -> None:
    walk.go("/tokens")
    walk.page.get_by_label("Name of the owner").fill("dora")
    walk.page.get_by_role("checkbox", name="labeller").check()
    walk.page.get_by_role("checkbox", name="pears").check()
    walk.page.get_by_role("button", name="Create the token").click()
    expect(walk.page.get_by_label("Copy it now")).to_be_visible()


def away(walk: Walk) -> None:
    """The server is lost, and comes back while the page is looked at."""
    world = walk.world
    world.serving.kill()
    walk.go("/m/pears")
    walk.page.get_by_role("heading", name="The server is away").wait_for()
    world.serving = Serving(world.folder, world.serving.port, "--access", "tokens")


def signed_out(walk: Walk) -> None:
    walk.page.context.clear_cookies()
    walk.go("/m/pears/label")
    walk.page.get_by_role("heading", name="Sign in").wait_for()


def mistyped(walk: Walk) -> None:
    walk.page.get_by_label("Token").fill("quercus_nothing")
    walk.page.get_by_role("button", name="Sign in").click()
    expect(walk.page.get_by_role("alert")).to_be_visible()


def as_labeller(walk: Walk) -> None:
    walk.sign_in("ann")
    walk.go("/m/pears/desk")
    walk.page.get_by_role("heading", name="Not allowed").wait_for()


def open_row(page: str) -> Callable[[Walk], None]:
    """A row of which two say different things."""

    def reach(walk: Walk) -> None:
        row = next(iter(walk.world.olga.disputes("pears"))).instance
        walk.go(f"/m/pears/items/{page}?id={row}")

    return reach


LOOKS: dict[str, Callable[[Walk], None]] = {
    "models": at("/"),
    "label": asked(),
    "label, 26 classes": asked(model="letters"),
    "label, any model": asked(model="-"),
    "label, rows like it": asked("neighbours"),
    "label, guidelines": asked("guidelines"),
    "label, one of several": asked("set"),
    "label, weigh classes": asked("plausibilities"),
    "label, weigh 26 classes": asked("plausibilities", model="letters"),
    "label, a grade": asked("grade"),
    "label, a comment": asked("comment"),
    "label, a picture enlarged": asked("zoom"),
    "label, help": asked("help"),
    "label, a correction": corrected,
    "label, offline": offline,
    "label, refused": refused,
    "label, refusals dismissed": dismissed,
    "label, last answers": opened_more,
    "label, paused": paused,
    "label, no query": at("/m/spent/label"),
    "your answers": at("/m/pears/label/history"),
    "items": at("/m/pears/items"),
    "items, disputed": at("/m/pears/items?only=disputed"),
    "items, none": at("/m/pears/items?text=nothing"),
    "item": open_row("row"),
    "why": open_row("why"),
    "items, what would change": previewed,
    "disputes": at("/m/pears/disputes"),
    "disputes, none": at("/m/letters/disputes"),
    "model": at("/m/pears"),
    "model, 26 classes": at("/m/letters"),
    "model, no answer": at("/m/spent"),
    "tree": at("/m/pears/tree"),
    "tree, a node": at("/m/letters/tree?node=2"),
    "tree, none": at("/m/spent/tree"),
    "classify": at("/m/pears/classify"),
    "classified": classified,
    "desk": at("/m/pears/desk"),
    "desk, a fault": misset,
    "new model": at("/create"),
    "new model, columns": planned,
    "new model, learner": chosen_learner,
    "tokens": at("/tokens"),
    "tokens, a new one": made_token,
    "not found": at("/m/nothing/tree"),
    "server away": away,
    "sign in": signed_out,
    "sign in, refused": mistyped,
    "not allowed": as_labeller,
}
"""The steps to each state, in this order: some begin where the one before them ends."""

NO_PAGES = {
    "/sign-out": "leads to the page to sign in",
    "/m/{model}/label/next": "answers a script",
    "/m/{model}/label/grown": "answers a script",
    "/m/{model}/label/exchange": "answers a script",
    "/m/{model}/label/leave": "answers a script",
    "/m/{model}/label/beat": "answers a script",
    "/m/{model}/label/neighbours/{of}/{number:int}": "a part of the page to label",
    "/m/{model}/label/guidelines/{of}": "a part of the page to label",
    "/m/{model}/label/beside/{of}/{number:int}/{item:int}": "a picture",
    "/m/{model}/label/{act}": "answers a script, or leads to the page to label",
    "/m/{model}/items/say": "leads to the page of the row",
    "/m/{model}/items/beside": "a picture",
    "/m/{model}/items.{form}": "a file",
    "/m/{model}/disputes/beside": "a picture",
    "/m/{model}/disputes/{act}": "leads to the next dispute",
    "/m/{model}/desk/answers.{form}": "a file",
    "/m/{model}/extend": "leads to the page of the model",
    "/m/{model}/tree/node": "a part of the page of the tree",
    "/m/{model}/tree/find": "a part of the page of the tree",
    "/m/{model}/tree/children": "a part of the page of the tree",
    "/m/{model}/tree.{kind}": "a file",
    "/m/{model}/events": "answers a script",
    "/create/progress": "answers a script",
    "/tokens/revoke": "leads to the page of tokens",
    "/healthz": "one word for programs",
    "/static/classes.css": "a style sheet",
}


def route_of(url: str, home: str) -> str:
    """Return the route of the console that answers an address."""
    path = url.removeprefix(home).partition("?")[0].partition("#")[0]
    for method in ("GET", "POST"):
        scope = {"type": "http", "method": method, "path": path}
        for route in ROUTES:
            if isinstance(route, Route) and route.matches(scope)[0] == Match.FULL:
                return route.path
    raise AssertionError(f"no route answers {path}")


def take_pictures(page: Page, name: str) -> None:
    """Take a picture of the page in light and in dark, of a long one as it is on a screen of three times the height."""
    size = page.viewport_size
    assert size is not None
    height = page.evaluate("document.documentElement.scrollHeight")
    page.set_viewport_size(
        {"width": size["width"], "height": min(max(height, size["height"]), 3 * size["height"])}
    )
    for shown in COLOURS[:2]:
        page.emulate_media(**shown, reduced_motion="reduce")
        file = f"{re.sub('[^a-z0-9]+', '-', name)}-{shown['color_scheme']}.png"
        page.screenshot(path=Path(PICTURES) / file)
    page.emulate_media(**COLOURS[0], reduced_motion="reduce")
    page.set_viewport_size(size)


def start(browser: Browser, world: World, screen: str, faults: list[str]) -> Walk:
    context = browser.new_context(**SIZES[screen])
    context.set_default_timeout(PATIENCE_MS)
    context.expose_binding("reportViolation", lambda _, what: faults.append(what))
    context.add_init_script(
        "addEventListener('securitypolicyviolation', (e) =>"
        " reportViolation(`${e.violatedDirective} ${e.blockedURI} ${e.sourceFile}`))"
    )
    page = context.new_page()
    page.on("pageerror", lambda error: faults.append(str(error)))
    return Walk(page, world)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "screen",
    ["1440", pytest.param("1024", marks=pytest.mark.release), pytest.param("390", marks=pytest.mark.release)],
)
def test_every_page_is_accessible_in_every_state(browser: Browser, world: World, screen: str) -> None:
    """In light and dark, on the widest screen also in forced colours; and no page is wider than its screen."""
    found: list[str] = []
    walk = start(browser, world, screen, found)
    walk.sign_in("olga")
    routes = set()
    for name, reach in LOOKS.items():
        reach(walk)
        routes.add(route_of(walk.page.url, world.console.url))
        if PICTURES:  # first: Chromium keeps the lines of tables in forced colours
            take_pictures(walk.page, f"{name} {screen}")
        found += faults_of(walk.page, name, COLOURS if screen == "1440" else COLOURS[:2])
    walk.page.context.close()
    assert found == []
    pages = {each.path for each in ROUTES if isinstance(each, Route)}
    assert routes == pages - set(NO_PAGES), (
        "a page without a look: write one in LOOKS, or say in NO_PAGES what it is"
    )
