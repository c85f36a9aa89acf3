"""The same 60 queries at a terminal and in the console at the pace of a person, and a thousand answers in one page.

``make labelling-trial`` runs it. Both labellers read each row for the same time, press a wrong key at the same rows,
and take it back or correct it. What is left of the time is that of the program.
"""

from __future__ import annotations

import random
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from integration.client.serving import Serving
from playwright.sync_api import Page, sync_playwright

from quercus.client import Client, Nominal, Numeric, Specification
from support.consoles import ConsoleProcess
from support.terminals import PROMPT, Screen

CLASSES = ("Barolo", "Grignolino", "Barbera")
QUERIES = 60
READ_S = 1.2
"""Median time in which a row is read; lognormal, different from row to row."""
KEYS, BACK = "bga", "z"
SLIP_SEEN_S = 0.6
"""A wrong key that is noticed at once is taken back."""
SLIP_LATE_S = 2.5
"""A wrong key that is noticed while the next row is on the screen for so long is corrected."""
ANSWERS = 1_000
STEP = 100


def truth(instance: str) -> int:
    """Return which class a row is of: the key to press, less one."""
    return int(instance.removeprefix("bottle-")) % len(CLASSES)


def read_s(instance: str) -> float:
    """Return how long a row is read."""
    return READ_S * random.Random(instance).lognormvariate(0.0, 0.35)  # noqa: S311


def slip(instance: str) -> str:
    """Return what happens at a row: a key that is taken back, one that is corrected, or nothing."""
    return {5: "taken back", 11: "corrected"}.get(int(instance.removeprefix("bottle-")) % 15, "")


def make_model(client: Client, name: str, count: int, budget: int, **settings: Any) -> None:
    """Make a model whose rows are all asked about."""
    attributes = [Numeric("alcohol", cuts=8), Numeric("hue", cuts=8), Nominal("soil", ["clay", "lime"])]
    client.create_model(name, Specification(attributes, CLASSES, budget=budget, **settings))
    chance = random.Random(7)  # noqa: S311
    rows = [
        [11 + k % 3 + chance.random(), 0.5 + chance.random(), chance.choice(["clay", "lime"])]
        for k in range(count)
    ]
    client.push(name, rows, ids=[f"bottle-{k}" for k in range(count)])
    client.wait_grown(name, timeout_s=120)


@dataclass
class Trial:
    """The record of one labeller."""

    seconds: float = 0.0
    reading: float = 0.0
    shown: list[float] = field(default_factory=list)
    slips: dict[str, int] = field(default_factory=lambda: {"taken back": 0, "corrected": 0})


class Terminal:
    """``quercus label`` at a pty."""

    def __init__(self, server: str, model: str) -> None:
        self._screen = Screen("label", model, "--labeller", "ann", server=server)

    def next(self) -> str:
        """Return the row that is shown next."""
        found: list[str] = []
        while not found:  # a notice repeats the line of keys
            found = re.findall(r"instance (\S+)  ·", self._screen.expect(PROMPT))
        return found[-1]

    def press(self, key: str) -> None:
        """Press a key now."""
        self._screen.press(key, 0.0)

    def close(self) -> None:
        """End."""
        self._screen.close()


class Browser:
    """The console in a Chromium."""

    def __init__(self, page: Page, url: str, model: str) -> None:
        self._page, self._last = page, ""
        page.goto(f"{url}/sign-in")
        page.get_by_label("Your name").fill("ann")
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("heading", name="Models").wait_for()
        page.goto(f"{url}/m/{model}/label")

    def next(self) -> str:
        """Return the row that is shown next."""
        pattern = f"^(?!{re.escape(self._last)}$)bottle-" if self._last else "^bottle-"
        shown = self._page.locator("#stage h1").filter(has_text=re.compile(pattern))
        shown.wait_for(timeout=90_000)
        self._last = shown.inner_text()
        return self._last

    def press(self, key: str) -> None:
        """Press a key now."""
        self._page.keyboard.press(key)

    def close(self) -> None:
        """End."""
        self._page.close()


def label_all(screen: Terminal | Browser) -> Trial:
    """Answer until all is answered."""
    trial, slipped = Trial(), set[str]()
    shown = screen.next()
    since = time.monotonic()
    for count in range(1, QUERIES + 1):
        _wait(trial, read_s(shown))
        right = KEYS[truth(shown)]
        kind = "" if shown in slipped or count > QUERIES - 2 else slip(shown)
        if kind:
            slipped.add(shown)
            trial.slips[kind] += 1
            screen.press(KEYS[(truth(shown) + 1) % len(CLASSES)])
            screen.next()
            _wait(trial, SLIP_SEEN_S if kind == "taken back" else SLIP_LATE_S)
            screen.press(BACK)
            screen.next()
            _wait(trial, max(0.4, read_s(shown) / 2))
        pressed = time.monotonic()
        screen.press(right)
        if count < QUERIES:
            shown = screen.next()
            trial.shown.append(time.monotonic() - pressed)
    trial.seconds = time.monotonic() - since
    return trial


def _wait(trial: Trial, seconds: float) -> None:
    """Read, or notice: a person at work."""
    trial.reading += seconds
    time.sleep(seconds)


def check(client: Client, model: str, trial: Trial) -> None:
    """Every row has one answer, which is right, and the log has each correction once."""
    deadline = time.monotonic() + 30
    while client.get_model(model).queries_answered < QUERIES:
        assert time.monotonic() < deadline, f"{client.get_model(model).queries_answered} of {QUERIES} answers"
        time.sleep(0.1)
    time.sleep(1.0)
    answers = list(client.answers(model))
    kinds = [each.kind for each in answers]
    assert kinds.count("answered") == QUERIES
    assert kinds.count("corrected") == trial.slips["corrected"]
    newest = {each.instance: each.text for each in answers}
    assert newest == {row: CLASSES[truth(row)] for row in newest}
    assert len(newest) == QUERIES


def report(name: str, trial: Trial) -> None:
    """Say how long it took."""
    each = trial.seconds / QUERIES
    reading = trial.reading / QUERIES
    half = statistics.median(trial.shown) * 1000
    most = sorted(trial.shown)[int(len(trial.shown) * 0.95)] * 1000
    print(
        f"{name}: {QUERIES} queries in {trial.seconds:.1f} s, {each:.2f} s an answer, {reading:.2f} s of it reading; "
        f"from key to next query p50 {half:.0f} ms, p95 {most:.0f} ms; {trial.slips['taken back']} taken back, "
        f"{trial.slips['corrected']} corrected, none lost",
        flush=True,
    )


ANSWER = """count => new Promise((done, failed) => {
  const stage = document.getElementById("stage");
  let left = count, last = "";
  const deadline = performance.now() + 300000;
  const look = () => {
    if (performance.now() > deadline) return failed(new Error(`${left} answers left`));
    const article = stage.querySelector("article");
    if (article !== null && article.dataset.name !== last) {
      if (left-- === 0) return done();
      last = article.dataset.name;
    }
    article?.querySelector(".class").click(); // it counts once the query could be read
    setTimeout(look, 10);
  };
  look();
})"""


def watch_heap(page: Page, url: str, model: str) -> None:
    """Answer a thousand queries in one page, and say how large its heap is after each hundred."""
    Browser(page, url, model).next()
    debugger = page.context.new_cdp_session(page)
    page.set_default_timeout(300_000)
    since = time.monotonic()
    for answered in range(0, ANSWERS + 1, STEP):
        if answered:
            page.evaluate(ANSWER, STEP)
        debugger.send("HeapProfiler.collectGarbage")
        used = debugger.send("Runtime.getHeapUsage")["usedSize"] / 2**20
        counted = debugger.send("Memory.getDOMCounters")
        print(
            f"{answered:5,} answers, {time.monotonic() - since:5.0f} s: heap {used:.2f} MiB, "
            f"{counted['nodes']:,} nodes, {counted['jsEventListeners']} listeners",
            flush=True,
        )


@contextmanager
def running() -> Iterator[tuple[Serving, ConsoleProcess, Callable[[], Page]]]:
    """A server, a console and a browser."""
    path = shutil.which("chromium")
    assert path is not None, "there is no Chromium: apt-get install --no-install-recommends chromium"
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        server = Serving(Path(folder))
        console = ConsoleProcess(server.address)
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield server, console, browser.new_page
        finally:
            browser.close()
            console.stop()
            server.stop()


def main() -> None:
    """Run the parts that are named: trial, heap; default both."""
    parts = sys.argv[1:] or ["trial", "heap"]
    with running() as (server, console, page), Client(server.address) as client:
        if "trial" in parts:
            for name in ("terminal", "console"):
                make_model(client, name, QUERIES, QUERIES)
                screen = (
                    Terminal(server.address, name)
                    if name == "terminal"
                    else Browser(page(), console.url, name)
                )
                trial = label_all(screen)
                check(client, name, trial)
                screen.close()
                report(name, trial)
        if "heap" in parts:
            make_model(
                client, "heap", ANSWERS + 200, ANSWERS + 100, learner="abc45", strategy="covering-committee"
            )
            watch_heap(page(), console.url, "heap")


if __name__ == "__main__":
    main()
