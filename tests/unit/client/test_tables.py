"""Tables fit a terminal: nothing of a number is cut off, and no line is wider than the screen."""

import io
import re

import pytest
from rich.console import Console

from quercus.client.results import Labeller
from quercus.view.terminal.models import labellers_table

FOUND = [
    Labeller("ann", 1234, 21, 3, 1, 0, 2, 0, 10, 0.83, 0.912, 4.23),
    Labeller("somebody.with.a.long.name@example.org", 12, 0, 0, 0, 0, 0, 0, 0, None, None, None),
    Labeller("bob", 7, 1, 0, 0, 2, 0, 0, 0, 0.5, 0.61, 118.0),
]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_labellers(width: int) -> None:
    paper = io.StringIO()
    Console(file=paper, width=width, highlight=False).print(labellers_table(FOUND))
    shown = paper.getvalue()
    assert max(map(len, shown.splitlines())) <= width
    assert "…" not in shown
    assert re.search(r"^ann +1,234 +21 +10 +\.83±\.00 +\.91±\.00 +4\.2 s$", shown, re.MULTILINE)
    assert "ann: also 3 skipped, 1 postponed, 2 corrected" in shown
    assert "bob: also 2 expired" in shown
    folded = "".join(line.split("  ")[0].strip() for line in shown.splitlines())
    assert "somebody.with.a.long.name@example.org" in folded
