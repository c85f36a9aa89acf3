"""Faults that axe finds on a page, whether the page is wider than the screen, and letters too small to read."""

from collections.abc import Sequence
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

COLOURS: tuple[dict[str, Any], ...] = (
    {"color_scheme": "light", "forced_colors": "none"},
    {"color_scheme": "dark", "forced_colors": "none"},
    {"color_scheme": "light", "forced_colors": "active"},
)
LEAST_LETTERS = 10
"""Pixels of the smallest letters of a picture."""
LETTERS = """[...document.querySelectorAll("svg text")].filter((each) => each.checkVisibility()).map((each) => {
  const to = each.getScreenCTM();
  const scale = Math.min(Math.hypot(to.a, to.b), Math.hypot(to.c, to.d));
  return [each.textContent, parseFloat(getComputedStyle(each).fontSize) * scale];
})"""
OF_COLOURS = {
    "resultTypes": ["violations"],
    "runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]},
}
"""Axe's rules whose outcome colours may change; the others are asked once a page."""


def faults_of(page: Page, where: str = "", colours: Sequence[dict[str, Any]] = COLOURS[:2]) -> list[str]:
    """Return axe's findings in each colour scheme: all rules in the first, those about colours in the others."""
    axe, found = Axe(), list[str]()
    for number, shown in enumerate(colours):
        page.emulate_media(**shown, reduced_motion="reduce")  # no colour is on its way to another
        result = axe.run(page, options=OF_COLOURS) if number else axe.run(page)
        for each in result.response["violations"]:
            found.append(f"{where}, {shown}: {each['id']}: {each['nodes'][0]['html'][:200]}")
    page.emulate_media(**colours[0], reduced_motion="reduce")
    across = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    found += [
        f"{where}: the letters {text!r} of a picture have {size:.1f} px"
        for text, size in page.evaluate(LETTERS)
        if size < LEAST_LETTERS
    ]
    return [*found, *([f"{where}: {across} px wider than the screen"] if across > 0 else [])]
