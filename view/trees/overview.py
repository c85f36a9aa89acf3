"""An overview of several trees: their sizes, their first tests, and the number of tests of each attribute."""

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

import numpy as np

from quercus.trees import FlatTree
from quercus.view.trees import svg
from quercus.view.trees.dot import quoted_text
from quercus.view.trees.words import one_line, shortened_text

LISTED = 100  # maximum number of trees with a line of their own in the text
BAR_CHARS = 24
BAR_PIXELS = 240.0


@dataclass(frozen=True, slots=True)
class TreeSummary:
    """A tree: its nodes, leaves and depth, the attribute of its root, and the classes that it distinguishes."""

    nodes: int
    leaves: int
    depth: int
    first: str
    classes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Overview:
    """An overview of several trees.

    Parameters
    ----------
    trees
        A summary of each tree.
    tests
        For each tested attribute, the mean number of its tests along a row's path, over all trees and rows; largest
        first.
    """

    trees: tuple[TreeSummary, ...]
    tests: tuple[tuple[str, float], ...]

    @classmethod
    def of(
        cls, flats: Sequence[FlatTree], attributes: Sequence[str], classes: Sequence[tuple[str, ...]]
    ) -> "Overview":
        """Return the overview of trees, given the names of attributes and the classes that each tree distinguishes."""
        use = np.zeros(len(attributes))
        lines = []
        for flat, told in zip(flats, classes, strict=True):
            inner = flat.attribute >= 0
            share = flat.weight[inner] / max(float(flat.weight[0]), 1.0)
            use += np.bincount(flat.attribute[inner], share, len(attributes))
            root = int(flat.attribute[0])
            first = "" if root < 0 else attributes[root]
            lines.append(TreeSummary(flat.size, flat.leaf_count, flat.depth, first, told))
        order = [k for k in np.argsort(-use, kind="stable").tolist() if use[k] > 0]
        return cls(tuple(lines), tuple((attributes[k], float(use[k]) / len(flats)) for k in order))

    @property
    def summary(self) -> str:
        """Return the sizes in a line."""
        nodes, depth = ([getattr(tree, name) for tree in self.trees] for name in ("nodes", "depth"))
        return f"{len(self.trees)} trees, {_span_text(nodes)} nodes, depth {_span_text(depth)}"

    def text(self) -> str:
        """Return the overview as lines."""
        lines = [self.summary]
        if self.tests:
            width = max(len(one_line(name)) for name, _ in self.tests)
            most = self.tests[0][1]
            lines += ["", "tests per row"]
            lines += [
                f"  {one_line(name):<{width}}  {value:.2f}  {'█' * max(1, round(BAR_CHARS * value / most))}"
                for name, value in self.tests
            ]
        lines += ["", "tree  nodes  leaves  depth  first test"]
        is_one_against_rest = len({tree.classes for tree in self.trees}) > 1
        for at, tree in enumerate(self.trees[:LISTED]):
            told = f"  ({one_line(tree.classes[0])} or not)" if is_one_against_rest else ""
            lines.append(
                f"{at:>4}  {tree.nodes:>5}  {tree.leaves:>6}  {tree.depth:>5}  {one_line(tree.first) or '-'}{told}"
            )
        if len(self.trees) > LISTED:
            lines.append(f"and {len(self.trees) - LISTED} more")
        return "\n".join(lines)

    def dot(self) -> str:
        """Return the overview in Graphviz's language: attributes, with the number of trees that test each one first."""
        lines = [
            "digraph forest {",
            '  node [shape=box, style="rounded", fontname="Helvetica", fontsize=10];',
            '  edge [fontname="Helvetica", fontsize=9];',
            f'  forest [label="{quoted_text(self.summary)}", style="rounded,bold"];',
        ]
        for at, (name, value) in enumerate(self.tests):
            count = sum(tree.first == name for tree in self.trees)
            lines.append(
                f'  a{at} [label="{quoted_text(shortened_text(name))}\\n{value:.2f} tests per row"];'
            )
            style = f'label="first in {count}", penwidth={1 + 4 * count / len(self.trees):.1f}'
            lines.append(f"  forest -> a{at} [{style if count else 'style=dotted'}];")
        return "\n".join([*lines, "}"])

    def svg(self) -> str:
        """Return the overview as a picture: a bar with the number of tests of each attribute."""
        margin, line, gap = svg.MARGIN, svg.LINE, svg.LABEL_GAP
        names = [shortened_text(name) for name, _ in self.tests]
        width = max([svg.text_width(name) for name in names], default=0.0)
        left = margin + width + 2 * gap
        notes = [
            f"{value:.2f} tests per row, first in {sum(tree.first == name for tree in self.trees)} trees"
            for name, value in self.tests
        ]
        right = max([svg.text_width(note) for note in notes], default=0.0)
        across = max(left + BAR_PIXELS + 2 * gap + right, margin + 1.3 * svg.text_width(self.summary))
        root = svg.empty_picture(
            (across + margin, 2 * margin + (len(names) + 2) * (line + gap)),
            f"Overview of {len(self.trees):,} trees",
        )
        svg.write_text(root, margin, margin, self.summary, **{"font-weight": "bold"})
        for at, (name, note) in enumerate(zip(names, notes, strict=True)):
            top = margin + (at + 1.5) * (line + gap)
            length = BAR_PIXELS * self.tests[at][1] / self.tests[0][1]
            svg.write_text(root, left - gap, top, name, **{"text-anchor": "end"})
            svg.draw_rectangle(root, (left, top + 2.0, length, line - 4.0), fill="#0072B2")
            svg.write_text(root, left + length + gap, top, note, fill=svg.GREY)
        return ET.tostring(root, encoding="unicode")


def _span_text(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return f"{low}" if low == high else f"{low} to {high}"
