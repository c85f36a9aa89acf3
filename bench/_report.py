"""How the measurements of this folder print: what was measured, the figure, and the ratio that outlives the machine."""

import os
import platform
from collections.abc import Sequence
from importlib.metadata import version

from rich.console import Console
from rich.table import Table


def report(
    title: str, packages: Sequence[str], columns: Sequence[str], rows: Sequence[Sequence[str]]
) -> None:
    """Print a table under a line that says where it was measured."""
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"
    table = Table(title=title, caption=f"Python {platform.python_version()}, {versions}; {load}")
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right")
    for row in rows:
        table.add_row(*row)
    Console(width=110).print(table)
