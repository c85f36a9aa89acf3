"""Take label.png, a terminal, and workbench.png, the console, of a labeller at work: ``make pictures``.

Both are of a server and a console that this script starts on a store of its own.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright
from rich.console import Console
from sklearn.datasets import load_wine

from quercus.client import Client, Numeric, Specification
from quercus.view.terminal.queries import prompt_line, query_screen

FOLDER = Path(__file__).resolve().parent
QUERCUS = str(Path(sys.executable).with_name("quercus"))
WINES = ["Barolo", "Grignolino", "Barbera"]
KEYS = "bga"
FEW = ["alcohol", "flavanoids", "color_intensity", "proline"]
AT_TERMINAL, IN_CONSOLE = 9, 12
"""Answers before the picture is taken."""
WIDTH = 88
BOTTLES = load_wine(as_frame=True).frame.sample(frac=1, random_state=0)


def main() -> None:
    """Label, and take both pictures."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        store = f"sqlite:///{folder}/quercus.db"
        with running("serve", "--store", store, "--port", "0") as server, Client(server) as client:
            save("label", terminal(client, browser))
            with running("console", "--server", server, "--port", "0") as console:
                save(
                    "workbench",
                    workbench(client, browser.new_page(viewport={"width": 1280, "height": 720}), console),
                )
        browser.close()


@contextmanager
def running(*command: str) -> Iterator[str]:
    """Run a server or a console; yield its address, the last word of its first line."""
    process = subprocess.Popen(  # noqa: S603 - our own program
        [QUERCUS, *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None  # noqa: S101
    try:
        yield process.stdout.readline().split()[-1].rstrip("/")
    finally:
        process.terminate()
        process.wait(timeout=30)


def save(name: str, taken: bytes) -> None:
    """Write a picture of few colours."""
    Image.open(io.BytesIO(taken)).convert("RGB").quantize(128).save(FOLDER / f"{name}.png", optimize=True)


def fill(client: Client, name: str, measured: list[str]) -> None:
    """Make a model of the bottles."""
    client.create_model(name, Specification([Numeric(each, cuts=32) for each in measured], WINES, budget=40))
    client.push(name, BOTTLES[measured], ids=[f"bottle-{i}" for i in BOTTLES.index])
    client.wait_grown(name)


def truth(bottle: str) -> int:
    """Return the place of a bottle's class."""
    return int(BOTTLES.target[int(bottle.removeprefix("bottle-"))])


def terminal(client: Client, browser: Browser) -> bytes:
    """Answer some queries, and draw the next as ``quercus label`` does; the browser paints the drawing."""
    fill(client, "wine", FEW)
    for count, query in enumerate(client.queries("wine", labeller="ann")):
        if count == AT_TERMINAL:
            break
        client.answer(query, WINES[truth(query.instance)])
        client.wait_grown("wine")
    console = Console(
        record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    for part in query_screen(query, client.get_model("wine"), WIDTH):
        console.print(part)
    console.print(prompt_line(query.classes, WIDTH))
    page = browser.new_page(viewport={"width": 1000, "height": 900}, device_scale_factor=1.5)
    page.set_content(console.export_svg(title="quercus label wine"))
    return page.locator("svg").screenshot(omit_background=True)


def workbench(client: Client, page: Page, console: str) -> bytes:
    """Answer some queries by keys, and take a picture of the next of which the model offers a guess."""
    name = "bottles"
    fill(client, name, [each for each in BOTTLES if each != "target"])
    page.goto(f"{console}/sign-in")
    page.get_by_label("Your name").fill("ann")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Models").wait_for()
    page.goto(f"{console}/m/{name}/label")
    for count in range(2 * IN_CONSOLE):
        if count >= IN_CONSOLE and page.locator("#stage .guessed").count():
            break
        bottle = page.locator("#stage h1").inner_text()
        page.wait_for_timeout(500)  # a press counts once the row could be read
        page.keyboard.press(KEYS[truth(bottle)])
        page.wait_for_timeout(2_000)  # the answer is sent
        client.wait_grown(name)
    page.wait_for_timeout(1_000)  # the next row is that of the newest tree
    return page.screenshot()


if __name__ == "__main__":
    main()
