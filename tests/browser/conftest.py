"""One Chromium, one server and one console for all tests of pages."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from integration.client.serving import Serving
from playwright.sync_api import Browser, Page, expect, sync_playwright
from support.consoles import ConsoleProcess

from quercus.client import Client, Nominal, Numeric, Specification

CLASSES = ["Barolo", "Grignolino", "Barbera"]
PATIENCE_MS = 45_000
"""A busy machine takes its time; what is not so by then is wrong."""

GLANCE_MS = 450
"""A labeller looks before pressing; what is pressed within 250 ms of a new query does not count."""
expect.set_options(timeout=PATIENCE_MS)
LOOK = "ms => new Promise(done => requestAnimationFrame(() => setTimeout(done, ms)))"


@pytest.fixture(scope="module")  # no longer: while Playwright runs, no other test may start an event loop
def browser() -> Iterator[Browser]:
    path = shutil.which("chromium")
    if path is None:
        missing = "there is no Chromium: apt-get install --no-install-recommends chromium"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="session")
def console(shared_server: Serving) -> Iterator[ConsoleProcess]:
    process = ConsoleProcess(shared_server.address)
    yield process
    assert "Traceback" not in process.stop()


@pytest.fixture(scope="session")
def client(shared_server: Serving) -> Iterator[Client]:
    with Client(shared_server.address) as connected:
        yield connected


@pytest.fixture
def visit(browser: Browser, console: ConsoleProcess) -> Iterator[Callable[..., Page]]:
    """Sign in and open a page; at the end no page may have broken the policy or raised an error."""
    contexts, faults = [], list[str]()

    def opened(path: str, name: str = "ann", url: str = "", **options: object) -> Page:
        context = browser.new_context(**({"viewport": {"width": 1280, "height": 860}} | options))  # type: ignore[arg-type]
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        context.expose_binding("reportViolation", lambda _, what: faults.append(what))
        context.add_init_script(
            "addEventListener('securitypolicyviolation', (e) =>"
            " reportViolation(`${e.violatedDirective} ${e.blockedURI} ${e.sourceFile}`))"
        )
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        sign_in(page, url or console.url, name)
        page.goto((url or console.url) + path)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert faults == []


def sign_in(page: Page, url: str, name: str) -> None:
    page.goto(f"{url}/sign-in")
    page.get_by_label("Your name").fill(name)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Models").wait_for()


@pytest.fixture
def wine(client: Client, request: pytest.FixtureRequest) -> str:
    """A model that asks, with rows that are easy to tell apart."""
    return make_wine(client, "b-" + re.sub("[^a-z0-9]+", "-", request.node.name)[:50])


def make_wine(client: Client, name: str, budget: int = 60, **settings: Any) -> str:
    attributes = [Numeric("alcohol", cuts=8), Numeric("hue", cuts=8), Nominal("soil", ["clay", "lime"])]
    client.create_model(name, Specification(attributes, CLASSES, budget=budget, **settings))
    rows = [[11 + k % 7 * 0.5, 0.5 + k % 5 * 0.2, ["clay", "lime"][k % 2]] for k in range(70)]
    client.push(name, rows, ids=[f"bottle-{k}" for k in range(len(rows))])
    client.wait_grown(name)
    return name


def heading(page: Page) -> str:
    return page.locator("#stage h1").inner_text()


def glance(page: Page) -> None:
    """Look at what is shown, by the time of the page: a busy machine paints late."""
    page.wait_for_load_state()
    page.locator("#keys-switch:not([hidden]), body:not(:has(#keys-switch))").first.wait_for(state="attached")
    page.evaluate(LOOK, GLANCE_MS)


def press(page: Page, *keys: str) -> str:
    """Press keys at the query that is shown; return its instance."""
    shown = heading(page)
    glance(page)
    for key in keys:
        page.keyboard.press(key)
    return shown


def answer(page: Page, *keys: str) -> str:
    """Press keys that answer, and wait until another query is shown."""
    shown = press(page, *keys)
    page.locator("#stage h1").filter(has_not_text=re.compile(f"^{re.escape(shown)}$")).wait_for()
    return shown


UNSENT = """() => new Promise((done, failed) => {
  const request = indexedDB.open("quercus", 1);
  request.onerror = () => failed(request.error);
  const key = { keyPath: "number", autoIncrement: true };
  request.onupgradeneeded = () => request.result.createObjectStore("unsent", key);
  request.onsuccess = () => {
    const all = request.result.transaction("unsent").objectStore("unsent").getAll();
    all.onsuccess = () => { request.result.close(); done(all.result); };
  };
})"""


def unsent(page: Page) -> list[dict[str, Any]]:
    """The answers on the disk of the page's browser that the server does not have."""
    found: list[dict[str, Any]] = page.evaluate(UNSENT)
    return found


def kept(page: Page) -> None:
    """Wait until nothing waits to be sent."""
    for _ in range(200):
        waiting = unsent(page)
        if not waiting:
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"still in the outbox: {waiting}")
