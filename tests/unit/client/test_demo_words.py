"""The texts of the demo: on its comparison, in every case, and while it runs, on any screen."""

import io
import re

import numpy as np
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from rich.console import Console

from quercus.cli.demo.parts import ClassifierState
from quercus.cli.demo.report import Curves, caution_text, saving_text, verdict_text
from quercus.cli.demo.screen import DemoState, Screen
from quercus.client import Model, Numeric, Specification, Tree, TreeNode
from quercus.client.reading import to_datetime

RANDOM = np.array([[0.3, 0.5], [0.3, 0.6], [0.3, 0.7]])


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (0.8, "better than every random order"),
        (0.4, "worse than every random order"),
        (0.61, "about the same as random"),
        (0.69, "better than random on average, and within its range"),
        (0.51, "worse than random on average, and within its range"),
    ],
)
def test_the_verdict_in_every_case(asked: float, words: str) -> None:
    said = verdict_text(Curves((0, 1), (0.3, asked), RANDOM, 0.4))
    assert f"After 1 answer the queries gave {asked:.3f}; 1 label at random gives 0.600 on average" in said
    assert f": {words}." in said
    assert f"was {(asked - 0.6) / 2:+.3f} on average" in said


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (0.3, "random labels need 0 answers for the same accuracy on this split."),
        (
            0.5,
            "random labels need 4 answers for the same accuracy on this split.",
        ),  # 2 reach it, 3 lose it again
        (0.7, "random labels need more than all 4 rows for the same accuracy on this split."),
    ],
)
def test_what_asking_saved(asked: float, words: str) -> None:
    random = np.array([[0.3, 0.4, 0.4, 0.4, 0.5], [0.3, 0.4, 0.7, 0.5, 0.7]])
    assert saving_text(Curves((0, 1), (0.3, asked), random, 0.4)) == (
        f"1 answer to queries gave {asked:.3f}; {words}"
    )


def test_the_other_splits_are_counted() -> None:
    said = caution_text([(0.9, 0.8), (0.7, 0.8), (0.6, 0.8), (0.8, 0.8)], 0.02)
    assert (
        "On 4 other splits the queries gave 0.750 on average (0.600 to 0.900), labels at random 0.800" in said
    )
    assert "better on 1, worse on 2, about the same on 1" in said


def scene() -> DemoState:
    now = to_datetime(Timestamp())
    model = Model("wine", Specification([Numeric("ash")], "ab", budget=31), now, 9, 7, 3, 100, 4, 0, 0, 5, 0)
    node = TreeNode(0, None, 0, None, None, "a", 9, (1.0, 0.0), (1.0, 0.0), (1.0, 0.0), {}, False, None, ())
    reading = ClassifierState(3, 7, 4, 100, 0.75, 50, 6.0, 60.0)
    return DemoState(
        seconds=1.0,
        model=model,
        tree=Tree("wine", 3, 7, ("a", "b"), (), (node,), now),
        rows=124,
        thinking={"ann": None, "bob": None},
        answered={"ann": 4},
        gone_home=["bob"],
        readings=[reading],
    )


@pytest.mark.parametrize("width", [40, 60, 80, 160])
def test_a_narrow_screen_keeps_the_names_and_breaks_no_line(width: int) -> None:
    console = Console(file=io.StringIO(), width=width, height=30, force_terminal=True, color_system=None)
    with Screen(console) as screen:
        screen.show(scene(), last=True)
    drawn = re.sub(r"\x1b\[[?0-9;]*[a-zA-Z]", "", console.file.getvalue()).splitlines()  # type: ignore[attr-defined]
    for name in ("sensor", "tree", "budget", "  ann", "  bob", "classifier"):
        assert any(line.startswith(f"{name} ") for line in drawn), drawn
    assert any("100 of 124" in line for line in drawn)
    assert any("█" in line and "4 of 31" in line for line in drawn) == (width >= 80)


def test_steps_break_between_words_at_a_terminal_and_nowhere_in_a_file() -> None:
    for is_terminal in (True, False):
        console = Console(
            file=io.StringIO(), width=30, height=30, force_terminal=is_terminal, color_system=None
        )
        Screen(console).print_line("twelve words of a step that is longer than the line is wide")
        text = console.file.getvalue()  # type: ignore[attr-defined]
        assert text.count("\n") == (3 if is_terminal else 1)
        assert "twelve words of a step that is longer than the line is wide" in " ".join(text.split())
