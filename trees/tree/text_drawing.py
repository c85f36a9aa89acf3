"""Trees for people: as text and as DOT; `quercus.trees.tree.svg_drawing` draws them as SVG."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from quercus.specification.attributes import MISSING_NAME, plain_number
from quercus.specification.class_marks import CLASS_MARKS, PATTERNS, ClassMark
from quercus.specification.shares import decimal_text
from quercus.trees.tree.encoding import THRESHOLD_SIDES
from quercus.trees.tree.flat import FlatTree
from quercus.trees.tree.folding import fold_tree
from quercus.trees.tree.node import Node

MAX_LABEL_CHARS = 28
SHOWN_CLASSES = 4  # of a node's estimate; the likeliest ones when the frame is larger


@dataclass(frozen=True, slots=True)
class TreeNames:
    """Names for the numbers in a tree.

    Parameters
    ----------
    classes
        The frame.
    attributes
        Names, in declared order.
    branches
        Name of every branch code of every attribute.
    marks
        Mark of each class; empty: those of a frame, in order.
    """

    classes: tuple[str, ...]
    attributes: tuple[str, ...]
    branches: tuple[tuple[str, ...], ...]
    marks: tuple[ClassMark, ...] = ()

    def mark_of(self, klass: int) -> ClassMark:
        """Return the mark of a class."""
        return (self.marks or CLASS_MARKS)[klass]

    def branch(self, attribute: int, code: int) -> str:
        """Return the name of a branch, or its code if it has no name."""
        known = self.branches[attribute]
        return known[code] if code < len(known) else f"#{code}"

    def step(self, flat: FlatTree, node: int) -> str:
        """Return the name of the branch that leads to a node from its parent."""
        parent, code = int(flat.parent[node]), int(flat.branch[node])
        threshold = float(flat.threshold[parent])
        if not math.isnan(threshold):
            sides = (f"{side} {plain_number(threshold)}" for side in THRESHOLD_SIDES)
            return (*sides, MISSING_NAME)[code]
        return self.branch(int(flat.attribute[parent]), code)


def one_line(text: str) -> str:
    """Return `text` on one line, without characters that would steer a terminal or break an XML file."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in " ".join(text.split()))


def shortened_text(text: str, limit: int = MAX_LABEL_CHARS) -> str:
    """Return `text` on one line and with at most `limit` characters."""
    line = one_line(text)
    return line if len(line) <= limit else line[: limit - 1] + "…"


def estimate_text(theta: Sequence[float], classes: Sequence[str]) -> str:
    """Return the class probabilities in words: all of a small frame, the likeliest of a large one.

    Examples
    --------
    >>> estimate_text((0.25, 0.75), ("yes", "no"))
    'yes 0.25  no 0.75'
    """
    shown = range(len(classes))
    if len(classes) > SHOWN_CLASSES:
        likeliest = sorted(shown, key=lambda c: (-theta[c], c))[: SHOWN_CLASSES - 1]
        return "  ".join(_probability_text(theta[c], classes[c]) for c in sorted(likeliest)) + "  …"
    return "  ".join(_probability_text(theta[c], classes[c]) for c in shown)


def mass_text(flat: FlatTree, index: int, classes: Sequence[str]) -> str:
    """Return the mass function of a node in words, the largest masses first; empty if it has none.

    The set of all classes is "any". If the labels conflict, the mass function is a mean, and the text says so.
    """
    here = slice(int(flat.mass_start[index]), int(flat.mass_start[index + 1]))
    pairs = zip(flat.mass_set[here].tolist(), flat.mass_value[here].tolist(), strict=True)
    ranked = sorted(pairs, key=lambda pair: (-pair[1], pair[0]))
    if not ranked:
        return ""
    shown = [f"{_set_text(mask, classes)} {decimal_text(value)}" for mask, value in ranked[:SHOWN_CLASSES]]
    more = ["…"] if len(ranked) > SHOWN_CLASSES else []
    return (
        "m: " + "  ".join([*shown, *more]) + (", a mean: the labels conflict" if flat.conflict[index] else "")
    )


def _set_text(mask: int, classes: Sequence[str]) -> str:
    names = [shortened_text(name, 12) for c, name in enumerate(classes) if mask >> c & 1]
    if len(names) == len(classes):
        return "any"
    return names[0] if len(names) == 1 else "{" + shortened_text(", ".join(names)) + "}"


def _probability_text(value: float, name: str) -> str:
    return f"{shortened_text(name, 12)} {decimal_text(value)}"


def to_text(tree: FlatTree | Node, names: TreeNames, depth: int | None = None) -> str:
    """Return the tree as indented lines, a node a line.

    Each tells the branch, the class, the number of instances, the class probabilities, and the split
    below it; an undecided node is marked. With a `depth`, nodes further below the root are counted, not shown.

    Examples
    --------
    >>> leaf = dict(attribute=None, theta=(1.0, 0.0), belief=(1.0, 0.0), plausibility=(1.0, 0.0))
    >>> below = {0: Node(klass=0, count=2, **leaf), 1: Node(klass=0, count=1, **leaf)}
    >>> root = Node(klass=0, count=3, children=below, **{**leaf, "attribute": 0})
    >>> print(to_text(root, TreeNames(("yes", "no"), ("wind",), (("weak", "strong"),))))
    yes  n=3  (yes 1.00  no 0.00)  by wind
    ├─ weak: yes  n=2  (yes 1.00  no 0.00)
    └─ strong: yes  n=1  (yes 1.00  no 0.00)
    """
    folded = fold_tree(tree, depth)
    flat = folded.flat
    last_child = {int(parent): index for index, parent in enumerate(flat.parent)}
    indent = [""] * flat.size
    lines = []
    for index in range(flat.size):
        parent = int(flat.parent[index])
        lead = ""
        if parent >= 0:
            is_last = last_child[parent] == index
            branch = names.step(flat, index)
            lead = indent[parent] + ("└─ " if is_last else "├─ ") + one_line(branch) + ": "
            indent[index] = indent[parent] + ("   " if is_last else "│  ")
        lines.append(lead + _node_line(flat, index, names, int(folded.hidden[index])))
    return "\n".join(lines)


def _node_line(flat: FlatTree, index: int, names: TreeNames, hidden: int) -> str:
    attribute = int(flat.attribute[index])
    parts = [
        one_line(names.classes[int(flat.klass[index])]),
        f"n={int(flat.count[index])}",
        f"({_estimate_text(flat, index, names)})",
    ]
    if attribute >= 0:
        parts.append(f"by {one_line(names.attributes[attribute])}")
    elif flat.has_masses:
        parts.append(mass_text(flat, index, names.classes))
    if flat.undecided[index]:
        parts.append("UNDECIDED")
    if hidden:
        parts.append(hidden_text(hidden))
    return "  ".join(parts)


def hidden_text(count: int) -> str:
    """Return how many nodes are not shown."""
    return f"… {count:,} node{'' if count == 1 else 's'} below"


def to_dot(tree: FlatTree | Node, names: TreeNames, depth: int | None = None) -> str:
    """Return the tree in Graphviz's language, down to a depth, if given.

    A node has the colour of its class. Graphviz has no patterns, so the number of its border lines, one to four, tells
    the pattern of its class. Undecided nodes are dashed.
    """
    folded = fold_tree(tree, depth)
    flat = folded.flat
    lines = [
        "digraph tree {",
        '  node [shape=box, style="rounded,filled", fontname="Helvetica", fontsize=10];',
        '  edge [fontname="Helvetica", fontsize=9];',
    ]
    for index in range(flat.size):
        mark = names.mark_of(int(flat.klass[index]))
        style = "rounded,filled,dashed" if flat.undecided[index] else "rounded,filled"
        label = "\\n".join(
            quoted_text(line) for line in node_lines(flat, index, names, int(folded.hidden[index]))
        )
        lines.append(
            f'  n{index} [label="{label}", color="{mark.light}", fillcolor="{mark.light}22", style="{style}"'
            f"{_border_lines(mark)}];"
        )
    for index in range(1, flat.size):
        parent = int(flat.parent[index])
        branch = names.step(flat, index)
        lines.append(f'  n{parent} -> n{index} [label="{quoted_text(shortened_text(branch))}"];')
    return "\n".join([*lines, "}"])


def _border_lines(mark: ClassMark) -> str:
    """Return the attribute of a node's border: as many lines as its pattern's place among the patterns."""
    lines = 1 + PATTERNS.index(mark.pattern)
    return f", peripheries={lines}" if lines > 1 else ""


def node_lines(flat: FlatTree, index: int, names: TreeNames, hidden: int = 0) -> list[str]:
    """Return the text of a drawn node: the split or the class, class and count, the class probabilities."""
    attribute = int(flat.attribute[index])
    klass = shortened_text(names.classes[int(flat.klass[index])])
    count = f"n = {int(flat.count[index])}" + (", undecided" if flat.undecided[index] else "")
    head = (
        [klass, count]
        if attribute < 0
        else [shortened_text(names.attributes[attribute]), f"{klass}, {count}"]
    )
    estimate = _estimate_text(flat, index, names)
    mass = mass_text(flat, index, names.classes) if attribute < 0 else ""
    return [*head, estimate, *([mass] if mass else []), *([hidden_text(hidden)] if hidden else [])]


def _estimate_text(flat: FlatTree, index: int, names: TreeNames) -> str:
    estimate = estimate_text(flat.theta[index].tolist(), names.classes)
    return f"{estimate}, as its parent" if flat.as_parent[index] else estimate


def quoted_text(text: str) -> str:
    """Return `text` as it stands between the quotes of a DOT label."""
    return text.replace("\\", "\\\\").replace('"', '\\"')
