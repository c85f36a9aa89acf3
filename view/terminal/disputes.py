"""Tables of disputes and of the agreement of labellers."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from quercus.client.results import Agreement, Dispute
from quercus.view.answers import moment_text
from quercus.view.confusion import confusion_table
from quercus.view.disputes import agreement_rows, pair_rows, said_text, sureness_text
from quercus.view.terminal.models import confusion_grid, pairs_table
from quercus.view.words import counted


def disputes_table(disputes: Sequence[Dispute]) -> Table:
    """Return a line for each label of each row in dispute."""
    table = Table(box=None, pad_edge=False)
    for title in ("row", "labeller", "label"):
        table.add_column(title, overflow="fold")
    table.add_column("how sure")
    table.add_column("when (UTC)", no_wrap=True)
    table.add_column("")
    for dispute in disputes:
        for place, each in enumerate(dispute.labels):
            row = "" if place else dispute.instance
            table.add_row(
                row, each.labeller, said_text(each), sureness_text(each), moment_text(each.at), each.comment
            )
    return table


def agreement_page(agreement: Agreement, classes: Sequence[str]) -> RenderableType:
    """Return the figures over all, the pairs, and the confusion matrix of each labeller."""
    parts: list[RenderableType] = [pairs_table(agreement_rows(agreement))]
    if agreement.pairs:
        pairs = Table("pair", box=None, pad_edge=False)
        for title in ("rows", "same", "", "Cohen's kappa"):
            pairs.add_column(title, justify="right")
        for first, second, rows, same, share, kappa in pair_rows(agreement):
            pairs.add_row(f"{first} and {second}", f"{rows:,}", f"{same:,}", share, kappa)
        parts += [Text(), pairs]
    for each in agreement.confusions:
        found = confusion_table(each.cells, classes)
        head = f"{each.labeller} against the accepted label: {found.right:,} of {counted(found.count, 'row')} the same"
        parts += [Text(), Text(head), confusion_grid(found, "said")]
    return Group(*parts)
