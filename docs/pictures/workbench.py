"""Take workbench.png, the labelling page of a console, whose address is given. Needs a server: QUERCUS_SERVER."""

import shutil
import sys

from playwright.sync_api import Page, sync_playwright
from sklearn.datasets import load_wine

from quercus.client import Client, Numeric, Specification

NAME, ANSWERED = "wine", 12
WINES = ["Barolo", "Grignolino", "Barbera"]


def main(console: str) -> None:
    """Answer some queries by keys, and take a picture of the next."""
    bottles = load_wine(as_frame=True).frame.sample(frac=1, random_state=0)
    measured = [name for name in bottles if name != "target"]
    with Client() as client:
        attributes = [Numeric(name, cuts=32) for name in measured]
        client.create_model(NAME, Specification(attributes, WINES, budget=40))
        client.push(NAME, bottles[measured], ids=[f"bottle-{i}" for i in bottles.index])
        client.wait_grown(NAME)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox"]
            )
            page = browser.new_page(viewport={"width": 1280, "height": 720})
            page.goto(f"{console}/sign-in")
            page.get_by_label("Your name").fill("ann")
            page.get_by_role("button", name="Sign in").click()
            page.goto(f"{console}/m/{NAME}/label")
            for _ in range(ANSWERED):
                answer(page, client, bottles.target)
            page.wait_for_timeout(500)
            page.screenshot(path="workbench.png")
            browser.close()


def answer(page: Page, client: Client, truth: dict[int, int]) -> None:
    """Press the key of the right class, and wait for the tree and the next query."""
    bottle = page.locator("#stage h1").inner_text()
    page.wait_for_timeout(500)
    page.keyboard.press("bga"[truth[int(bottle.removeprefix("bottle-"))]])
    page.wait_for_timeout(2_000)
    client.wait_grown(NAME)


if __name__ == "__main__":
    main(sys.argv[1])
