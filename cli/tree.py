"""``quercus tree``: a tree as text, Graphviz, SVG or JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from quercus.cli.common import DEFAULT_SERVER, JsonOption, ModelArgument, ServerOption, connect
from quercus.cli.tree_output import DepthOption, DotOption, MemberOption, RulesOption, SvgOption, TreeOutput
from quercus.client.client import Client
from quercus.client.results import Tree
from quercus.client.treeview import RenderFormat


def tree(
    *,
    model: ModelArgument,
    version: Annotated[
        int | None, typer.Option("--version", min=1, help="Version of the tree (default: the newest).")
    ] = None,
    dot: DotOption = None,
    svg: SvgOption = None,
    member: MemberOption = None,
    depth: DepthOption = None,
    rules: RulesOption = False,
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
        TreeOutput(dot, svg, member, depth, rules, as_json).write(_ServedTrees(client, model, version))


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
