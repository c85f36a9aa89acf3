"""Two hundred answers while servers, consoles and tabs die: each that the page took is in the log once, as pressed."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browser.conftest import GLANCE_MS, kept
from integration.client.serving import Serving
from playwright.sync_api import BrowserContext, Page, expect
from playwright.sync_api import TimeoutError as NotThere
from support.consoles import ConsoleProcess

from quercus.client import Client, Nominal, Numeric, Specification

pytestmark = [pytest.mark.browser, pytest.mark.release, pytest.mark.timeout(1800)]
Visit = Callable[..., Page]
CLASSES = ["Barolo", "Grignolino", "Barbera"]
KEYS = dict(zip(CLASSES, "bga", strict=True))
ANSWERS, ROWS, MODEL, LABELLER = 200, 260, "wine", "eve"
BETWEEN = 10
"""Answers from one accident to the next."""
SHOWN_MS = 90_000
LOOKED_MS = 3_000
"""After so long without a query nobody waits for one: the page has none while it reaches nobody."""


class Labelling:
    """One labeller at one browser, and what the pages said they took."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder, self.chance = folder, chance
        self.server = Serving(folder)
        self.console = ConsoleProcess(self.server.address)
        self.home = f"{self.console.url}/m/{MODEL}/label"
        self.took: list[tuple[str, str]] = []
        self.counts: Counter[str] = Counter()

    def say(self, page: Page, patience_ms: int = SHOWN_MS) -> bool:
        """Answer the shown row with any class; return whether there was one."""
        head = page.locator("#stage h1")
        try:
            head.wait_for(timeout=patience_ms)
        except NotThere:
            return False
        row, label = head.inner_text(), self.chance.choice(CLASSES)
        page.wait_for_timeout(GLANCE_MS)
        if head.count() == 0 or head.inner_text() != row:  # taken from the page meanwhile: look again
            return self.say(page, patience_ms)
        page.keyboard.press(KEYS[label])
        expect(page.locator("#said li").filter(has_text=row)).to_contain_text(label)
        self.took.append((row, label))
        return True

    def kill_soon(self, kill: Callable[[], None]) -> threading.Timer:
        """Kill while the next answers are on their way."""
        timer = threading.Timer(self.chance.uniform(0, 1.5), kill)
        timer.start()
        return timer

    def lose_server(self, page: Page) -> Page:
        """The server is killed while answers are sent; those who label go on with what they have."""
        timer = self.kill_soon(self.server.kill)
        for _ in range(self.chance.randint(2, 5)):
            self.say(page, LOOKED_MS)
        timer.join()
        self.say(page, LOOKED_MS)
        self.server = Serving(self.folder, self.server.port)
        return page

    def lose_console(self, page: Page) -> Page:
        """The console is killed, and forgets who was signed in."""

        def kill() -> None:
            self.console.process.kill()
            self.console.process.communicate()

        timer = self.kill_soon(kill)
        for _ in range(self.chance.randint(2, 5)):
            self.say(page, LOOKED_MS)
        timer.join()
        self.say(page, LOOKED_MS)
        self.console = ConsoleProcess(self.server.address, self.console.port)
        page.locator("#away a").click(timeout=SHOWN_MS)  # Sign in again
        page.get_by_label("Your name").fill(LABELLER)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(self.home)
        return page

    def close_offline(self, page: Page) -> Page:
        """The network is lost, then the tab is closed; another one is opened later."""
        context = page.context
        context.set_offline(True)
        for _ in range(self.chance.randint(2, 5)):
            self.say(page, LOOKED_MS)
        page.close()
        context.set_offline(False)
        return self.opened(context)

    def send_from_two(self, page: Page) -> Page:
        """Two tabs lose the network, and send at once when it is back; then one of them is closed."""
        other = self.opened(page.context)
        for _ in range(2):
            self.say(page)
            self.say(other)
        page.context.set_offline(True)
        for _ in range(2):
            self.say(other, LOOKED_MS)
            self.say(page, LOOKED_MS)
        page.context.set_offline(False)
        self.say(other)
        page.close()
        return other

    def opened(self, context: BrowserContext) -> Page:
        page = context.new_page()
        page.goto(self.home)
        return page

    def stop(self) -> None:
        self.console.stop()
        self.server.stop()


@pytest.fixture
def labelling(tmp_path: Path) -> Iterator[Labelling]:
    made = Labelling(tmp_path, random.Random(31))  # noqa: S311
    yield made
    made.stop()


def test_no_answer_of_two_hundred_is_lost(
    visit: Visit, labelling: Labelling, capsys: pytest.CaptureFixture[str]
) -> None:
    began = time.monotonic()
    attributes = [Numeric("alcohol", cuts=8), Numeric("hue", cuts=8), Nominal("soil", ["clay", "lime"])]
    rows = [[11 + k % 7 * 0.5, 0.5 + k % 5 * 0.2, ["clay", "lime"][k % 2]] for k in range(ROWS)]
    with Client(labelling.server.address) as client:
        client.create_model(MODEL, Specification(attributes, CLASSES, budget=ROWS))
        client.push(MODEL, rows, ids=[f"row-{k:03}" for k in range(ROWS)])
        client.wait_grown(MODEL)
    page = visit(f"/m/{MODEL}/label", LABELLER, labelling.console.url)
    accidents = [
        labelling.lose_server,
        labelling.lose_console,
        labelling.close_offline,
        labelling.send_from_two,
    ]
    while len(labelling.took) < ANSWERS:
        accident = accidents[labelling.counts.total() % len(accidents)]
        page = accident(page)
        labelling.counts[accident.__name__] += 1
        wanted = min(ANSWERS, BETWEEN * labelling.counts.total())
        while len(labelling.took) < wanted:
            assert labelling.say(page)
    kept(page)
    expect(page.locator("#refused")).to_be_hidden()
    with Client(labelling.server.address) as client:
        logged = [(each.labeller, each.instance, each.kind, each.text) for each in client.answers(MODEL)]
    took = [(LABELLER, row, "answered", label) for row, label in labelling.took]
    with capsys.disabled():
        lost, more = Counter(took) - Counter(logged), Counter(logged) - Counter(took)
        print(
            f"\n{len(took)} answers, {lost.total()} lost, {more.total()} doubled or changed; "
            f"{dict(labelling.counts)}; {time.monotonic() - began:.0f} s"
        )
    assert sorted(logged) == sorted(took)
