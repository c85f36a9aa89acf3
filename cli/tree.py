"""``quercus tree``: a tree as text, Graphviz, SVG or JSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from quercus.cli.common import (
    DEFAULT_SERVER,
    DepthOption,
    JsonOption,
    ModelArgument,
    ServerOption,
    StandardOutput,
    SvgOption,
    connect,
    print_json,
)
from quercus.cli.whole_files import write_picture
from quercus.client.conditions import path_text
from quercus.client.treeview import Tree


def tree(
    *,
    model: ModelArgument,
    version: Annotated[
        int | None, typer.Option("--version", min=1, help="Version of the tree (default: the newest).")
    ] = None,
    dot: Annotated[
        Path | None,
        typer.Option(
            "--dot", metavar="FILE", help="Write the tree to this file for Graphviz.", dir_okay=False
        ),
    ] = None,
    svg: SvgOption = None,
    member: Annotated[
        int | None,
        typer.Option(
            "--member", min=0, help="Number of the tree, if there are several (default: an overview of all)."
        ),
    ] = None,
    depth: DepthOption = None,
    rules: Annotated[
        bool,
        typer.Option(
            "--rules", help="Print one line per leaf: the conditions that lead to it, and its class."
        ),
    ] = False,
    server: ServerOption = DEFAULT_SERVER,
    as_json: JsonOption = False,
) -> None:
    """Print a tree, or write it as Graphviz or SVG.

    For a model of active-forest, this is the tree beside the forest, which learns from the same labels.

    Each node shows its class, its number of rows n and its estimated probabilities. An undecided node also shows the
    rivals for its split, between which more labels can decide.

    A forest, and a learner with one tree per class, have several trees: --member shows one.

    Try:

        quercus tree wine
        quercus tree wine --rules
        quercus tree wine --depth 3 --svg wine.svg
        quercus tree wine --dot wine.dot
        quercus tree wine --version 3 --json
    """
    with connect(server) as client:
        if as_json:
            shown_tree = client.tree(model, version, member or 0)
            head = {
                "model": model,
                "version": shown_tree.version,
                "as_of": shown_tree.as_of,
                "classes": list(shown_tree.classes),
                "algorithm": shown_tree.algorithm,
                "members": len(shown_tree.members),
                "member": shown_tree.member,
            }
            print_json(head | {"tree": shown_tree.to_dict()})
        for path, content in ((dot, "dot"), (svg, "svg")):
            if path is not None:
                form = "dot" if content == "dot" else "svg"
                write_picture(path, client.render(model, form, version, member, depth))  # type: ignore[arg-type]
        if rules and not as_json:
            shown_tree = client.tree(model, version, member or 0)
            StandardOutput().write("".join(f"{line}\n" for line in rule_lines(shown_tree)))
        elif not as_json and dot is None and svg is None:
            text = client.render(model, "text", version, member, depth)
            StandardOutput().write(text if text.endswith("\n") else text + "\n")


def rule_lines(tree: Tree) -> Iterator[str]:
    """Yield a line for each leaf: at most one condition for each attribute, then the class and the rows."""
    nominal = {each.attribute for each in tree.attributes if not each.numeric}
    for leaf in tree.leaves:
        where = path_text(tree.path(leaf), nominal) or "always"
        rows = f"{leaf.count:,} row{'' if leaf.count == 1 else 's'}"
        known = max(leaf.belief) > 0 or min(leaf.plausibility) < 1
        yield f"{where}: {leaf.class_name if known else 'nothing is known'} ({rows})"
