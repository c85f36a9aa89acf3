"""The live picture of ``quercus watch``: the history of each number, and the top of the tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Column
from rich.table import Table as RichTable
from rich.text import Text

from quercus.client.results import Model, TreeUpdate
from quercus.view.bars import bar, sparkline
from quercus.view.models import accuracy_line, answers_text, lag_text
from quercus.view.terminal.models import pairs_table
from quercus.view.terminal.trees import DrawnTree
from quercus.view.trees.served import served_words
from quercus.view.words import counted

MAX_MOMENTS: Final = 40
"""Maximum number of trees in a curve; older ones are dropped."""
DRAWN_LEVELS: Final = 2
"""Number of levels drawn below the root."""
DRAWN_BRANCHES: Final = 4
"""Maximum number of branches drawn of a node; the others are only counted."""
DRAWN_CLASSES: Final = 2
"""Maximum number of classes whose probabilities are drawn; of more, only the likeliest."""


@dataclass(frozen=True)
class WatchedMoment:
    """A tree, and the state of its model at that time.

    Attributes
    ----------
    seconds : seconds since the watch began.
    update : the tree.
    model : numbers of the model.
    """

    seconds: float
    update: TreeUpdate
    model: Model


def watch_picture(moments: Sequence[WatchedMoment]) -> RenderableType:
    """Return the picture of the newest moment and those before it."""
    first, now = moments[0], moments[-1]
    model, tree = now.model, now.update.tree
    spent = f" {bar(model.queries_answered / model.budget)}" if model.budget else ""
    refused = f", {model.queries_refused:,} refused" if model.queries_refused else ""
    head = {
        "model": model.name,
        "answers": f"{answers_text(model)}{spent}{refused}",
        "queries": f"{model.queries_open:,} open, {model.queries_leased:,} leased",
        "accuracy": accuracy_line(model.accuracy),
        "tree": f"version {tree.version:,}, {lag_text(model)}",
    }
    series = {
        "rows": [each.model.instance_count for each in moments],
        "answers": [each.model.queries_answered for each in moments],
        "leaves": [len(each.update.tree.leaves) for each in moments],
        "depth": [each.update.tree.depth for each in moments],
        "undecided": [len(each.update.tree.undecided) for each in moments],
    }
    table = RichTable("", Column(justify="right"), "", box=None, show_header=False, pad_edge=False)
    for name, values in series.items():
        table.add_row(name, f"{values[-1]:,}", Text(sparkline(values), style="cyan"))
    trees = f"{counted(len(moments), 'tree')} in {now.seconds - first.seconds:.1f} s"
    table.add_row("", "", Text(trees, style="dim"))
    drawn = DrawnTree(served_words(tree, DRAWN_LEVELS, DRAWN_BRANCHES, DRAWN_CLASSES), cut=True)
    return Group(pairs_table(head.items()), Text(), table, Text(), drawn)
