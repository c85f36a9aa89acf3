"""The same 60 queries at a terminal and in the console at the pace of a person, and a thousand answers in one page.

``make labelling-trial`` runs it, PARTS=keys a part of it. Both labellers read each row for the same time, press a wrong
key at the same rows, and take it back or correct it. The rest of the time is the program's.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import statistics
import struct
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from integration.client.serving import Serving
from playwright.sync_api import Page, sync_playwright

from quercus.client import Client, MediaItem, Nominal, Numeric, Specification
from support.consoles import ConsoleProcess
from support.terminals import PROMPT, Screen
from support.waiting import until

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
    """Return the slip at a row: a key that is taken back, one that is corrected, or none."""
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
    until(lambda: client.get_model(model).queries_answered >= QUERIES, f"{QUERIES} answers")
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


WATCH_KEYS = """() => {
  const stage = document.getElementById("stage");
  const taken = (window.taken = []);
  let pressed = null;
  addEventListener("keydown", (event) => (pressed = event.timeStamp), true);
  new MutationObserver(() => {
    if (pressed === null || stage.querySelector("article") === null) return;
    const since = pressed;
    const swapped = performance.now() - since;
    pressed = null;
    requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => {
        const pictures = [...stage.querySelectorAll("img")];
        const areThere = pictures.every((each) => each.complete && each.naturalWidth > 0);
        taken.push([swapped, performance.now() - since, areThere]);
      };
      port2.postMessage(null); // behind the frame that shows it
    });
  }).observe(stage, { childList: true });
}"""
PRESSES, PRESS_S, LATENCY_MS = 100, 0.9, 200


def watch_keys(page: Page, url: str, client: Client, name: str, pictures: bool, latency_ms: int) -> None:
    """Answer at the pace of .9 s an answer, and say how long it takes from a key to the frame with the next row."""
    chance = random.Random(5)  # noqa: S311
    attributes = [Numeric(f"measured value {k}", cuts=8) for k in range(8 if pictures else 22)]
    rows = [[chance.random() for _ in attributes] for _ in range(PRESSES + 100)]
    shown = [[MediaItem("image", "scan", data=noise(chance))] for _ in rows] if pictures else None
    client.create_model(name, Specification(attributes, CLASSES, budget=PRESSES + 60))
    client.push(name, rows, ids=[f"bottle-{k}" for k in range(len(rows))], displays=shown)
    client.wait_grown(name, timeout_s=120)
    screen = Browser(page, url, name)
    if latency_ms:
        line = page.context.new_cdp_session(page)
        line.send("Network.enable")
        each = {"offline": False, "downloadThroughput": -1, "uploadThroughput": -1}
        line.send("Network.emulateNetworkConditions", {"latency": latency_ms, **each})
    screen.next()
    time.sleep(3.0)  # until the first ten are there
    page.evaluate(WATCH_KEYS)
    for _ in range(PRESSES):
        screen.press(chance.choice(KEYS))
        time.sleep(PRESS_S)
    taken = page.evaluate("window.taken")
    page.close()
    swapped, painted = (sorted(each[k] for each in taken) for k in (0, 1))
    half, most = len(taken) // 2, int(len(taken) * 0.9)
    load = os.getloadavg()[0]
    print(
        f"{name}: {len(taken)} of {PRESSES} keys; from key to the frame with the next row p50 {painted[half]:.0f} ms, "
        f"p90 {painted[most]:.0f} ms; of it to the change of the page p50 {swapped[half]:.0f} ms, "
        f"p90 {swapped[most]:.0f} ms; pictures there in {sum(each[2] for each in taken)}; load {load:.1f}",
        flush=True,
    )


def noise(chance: random.Random) -> bytes:
    """Return a PNG of 200 by 150 random grey pixels, 30 kB."""
    lines = b"".join(b"\0" + chance.randbytes(200) for _ in range(150))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 200, 150, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(lines, 1))
        + chunk(b"IEND", b"")
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
    """Run the parts that are named: trial, keys, heap; default all."""
    parts = sys.argv[1:] or ["trial", "keys", "heap"]
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
        if "keys" in parts:
            for name, pictures, latency_ms in (
                ("text", False, 0),
                ("picture", True, 0),
                ("late-text", False, LATENCY_MS),
                ("late-picture", True, LATENCY_MS),
            ):
                watch_keys(page(), console.url, client, name, pictures, latency_ms)
        if "heap" in parts:
            make_model(
                client, "heap", ANSWERS + 200, ANSWERS + 100, learner="abc45", strategy="covering-committee"
            )
            watch_heap(page(), console.url, "heap")


if __name__ == "__main__":
    main()
