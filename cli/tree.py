"""``quercus tree``: a tree as text, rules, Graphviz, SVG or JSON; ``quercus induce`` prints its trees likewise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Protocol

import typer

from quercus.cli.common import (
    DEFAULT_SERVER,
    JsonOption,
    ModelArgument,
    ServerOption,
    StandardOutput,
    needs_extra,
    out,
    print_json,
)
from quercus.cli.options import with_options
from quercus.cli.output_files import refuse_other_ending, write_drawn
from quercus.client.client import Client
from quercus.client.results import Tree
from quercus.client.treeview import RenderFormat
from quercus.specification.conditions import path_text
from quercus.view.terminal.trees import DrawnTree
from quercus.view.trees.onnx import to_onnx
from quercus.view.trees.served import served_words
from quercus.view.words import counted

MOST_DRAWN: Final = 5_000
"""Maximum number of nodes drawn for a terminal, which takes a second; a larger tree is printed as plain text."""


def _file_option(option: str, help_text: str, *endings: str) -> Any:
    """Return an option for a file of one format, whose name must have one of the endings."""

    def checked(file: Path | None) -> Path | None:
        refuse_other_ending(option, file, endings)
        return file

    return typer.Option(option, metavar="FILE", help=help_text, dir_okay=False, callback=checked)


TREE_OPTIONS = {
    "dot": Annotated[
        Path | None, _file_option("--dot", "Write the tree to this file for Graphviz.", ".dot", ".gv")
    ],
    "svg": Annotated[Path | None, _file_option("--svg", "Write the tree to this file as SVG.", ".svg")],
    "onnx": Annotated[
        Path | None,
        _file_option(
            "--onnx",
            "Write a single tree to this file as an ONNX model, which predicts the same numbers elsewhere.",
            ".onnx",
        ),
    ],
    "member": Annotated[
        int | None,
        typer.Option(
            "--member", min=0, help="Number of the tree, if there are several (default: an overview of all)."
        ),
    ],
    "depth": Annotated[
        int | None,
        typer.Option("--depth", min=0, help="Number of levels to show below the root (default: all)."),
    ],
    "rules": Annotated[
        bool,
        typer.Option(
            "--rules", help="Print one line per leaf: the conditions that lead to it, and its class."
        ),
    ],
}
"""Options for the tree to print, its form, and files to write: the arguments of `write_trees`."""


@with_options(TREE_OPTIONS, {"rules": False})
def tree(
    *,
    model: ModelArgument,
    version: Annotated[
        int | None, typer.Option("--version", min=1, help="Version of the tree (default: the newest).")
    ] = None,
    options: dict[str, Any],
    server: ServerOption = DEFAULT_SERVER,
    as_json: JsonOption = False,
) -> None:
    """Print a tree, or write it as Graphviz, SVG or ONNX.

    For a model of active-forest, this is the tree beside the forest, which learns from the same labels. The forest
    itself cannot be written as ONNX.

    Each node shows its class, its number of rows n and its estimated probabilities. An undecided node also shows the
    rivals for its split, between which more labels can decide.

    A forest, and a learner with one tree per class, have several trees: --member shows one.

    Try:

        quercus tree wine
        quercus tree wine --rules
        quercus tree wine --depth 3 --svg wine.svg
        quercus tree wine --dot wine.dot
        quercus tree wine --onnx wine.onnx
        quercus tree wine --version 3 --json
    """
    with Client(server) as client:
        write_trees(_ServedTrees(client, model, version), as_json, **options)


@dataclass(frozen=True)
class _ServedTrees:
    """The trees of a model on a server."""

    client: Client
    model: str
    version: int | None

    def tree(self, member: int) -> Tree:
        return self.client.tree(self.model, self.version, member)

    def draw(self, form: RenderFormat, member: int | None, depth: int | None) -> str:
        return self.client.render(self.model, form, self.version, member, depth)


class TreeSource(Protocol):
    """The trees of one version of a model, wherever they grew."""

    def tree(self, member: int) -> Tree:
        """Return a tree by its number."""

    def draw(self, form: RenderFormat, member: int | None, depth: int | None) -> str:
        """Draw a tree; if there are several and no `member` is given, an overview."""


def write_trees(
    source: TreeSource,
    as_json: bool,
    *,
    dot: Path | None,
    svg: Path | None,
    onnx: Path | None,
    member: int | None,
    depth: int | None,
    rules: bool,
    **more: object,
) -> None:
    """Write trees to files and print them: as JSON, as rules, or, if no file is written, as a drawing.

    Parameters
    ----------
    source
        The trees.
    as_json, rules
        The form of what is printed: JSON, or a line for each leaf.
    dot, svg, onnx
        Files to write.
    member, depth
        Number of the tree, and the levels to show.
    more
        Further keys of the JSON.
    """
    if as_json:
        tree = source.tree(member or 0)
        served = {"model": tree.model, "version": tree.version, "as_of": tree.as_of} if tree.version else {}
        shown = {
            "classes": list(tree.classes),
            "learner": tree.learner,
            "members": len(tree.members),
            "member": tree.member,
            "tree": tree.to_dict(),
        }
        print_json(served | shown | more)
    files: tuple[tuple[Path | None, RenderFormat], ...] = ((dot, "dot"), (svg, "svg"))
    for path, form in files:
        if path is not None:
            write_drawn(path, source.draw(form, member, depth))
    if onnx is not None:
        with needs_extra("tree --onnx", "onnx"):
            content = to_onnx(source.tree(member or 0))
        write_drawn(onnx, content)
    if as_json:
        return
    if rules:
        lines = rule_lines(source.tree(member or 0))
        StandardOutput().write("".join(f"{line}\n" for line in lines))
        return
    if any(file is not None for file in (dot, svg, onnx)):
        return
    if out.is_terminal:  # in colours, and wrapped
        tree = source.tree(member or 0)
        nodes = list(served_words(tree, depth))
        if len(nodes) <= MOST_DRAWN and (member is not None or len(tree.members) <= 1):
            out.print(DrawnTree(nodes), crop=False)
            return
    StandardOutput().write(source.draw("text", member, depth).rstrip("\n") + "\n")


def rule_lines(tree: Tree) -> Iterator[str]:
    """Yield a line for each leaf: at most one condition for each attribute, then the class and the rows."""
    nominal = {each.attribute for each in tree.attributes if not each.numeric}
    for leaf in tree.leaves:
        where = path_text(tree.path(leaf), nominal) or "always"
        rows = counted(leaf.count, "row")
        known = max(leaf.belief) > 0 or min(leaf.plausibility) < 1
        yield f"{where}: {leaf.class_name if known else 'nothing is known'} ({rows})"
