"""A tree as an SVG file, to download or print: root on the left, a column per level, branch names above the lines.

The console's page of a tree has another picture, the icicle (`quercus.view.svg.icicle`).

Text stays text, in the viewer's font, so the picture is small, searchable and fast to draw (plotting libraries, which
draw letters as shapes, took 60 ms per node). Lengths are in pixels.
"""

from typing import Any
from unicodedata import east_asian_width
from xml.etree import ElementTree as ET

import numpy as np
from numpy.typing import NDArray

from quercus.belief.errors import InvalidInput
from quercus.specification.class_marks import ClassMark, ink_on, pattern_path
from quercus.trees import FlatTree, FoldedTree, Node, TreeNames, fold_tree
from quercus.view.trees.words import NodeWords, shortened_text
from quercus.view.words import counted

MAX_NODES = 5_000  # larger pictures are not readable
FONT = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif"
FONT_SIZE = 11.0
LINE = 15.0  # height of a line of text
ASCENT = 11.0  # of a line, above its baseline
PADDING = 8.0
BAR = 5.0  # height of the bar that shows the class probabilities
BAR_GAP = 4.0  # between the bar and the text above it
ROW_GAP = 12.0  # vertical distance between boxes
ELBOW = 20.0  # from a box to the bend of its lines
LABEL_GAP = 6.0  # around the name of a branch
SWATCH = 10.0
MARGIN = 24.0
LEGEND_WIDTH = 1_200.0  # longer legends are wrapped
TILE = 5.0  # side of the square tile of a pattern
GREY = "#555555"

Rows = NDArray[np.float64]

# Upper bounds of the advance of DejaVu Sans, the widest of the fonts above, in thousandths of the font size
_NARROW = dict.fromkeys(" ',./:;IJ\\fijl|", 345) | dict.fromkeys('!()-[]rt"', 480)
_WIDE = dict.fromkeys("#%+<=>@MW^mw~…≥", 1000)
_WIDTHS = _NARROW | _WIDE


def to_svg(tree: FlatTree | Node, names: TreeNames, depth: int | None = None) -> str:
    """Return the picture of a tree, without a background.

    A node shows its split (a leaf its class), class, number of instances, and class probabilities, also as a
    bar; it has the mark of its class; an undecided node has a dashed border and says so. The group of a node has its
    number in the whole tree as ``data-node``, and a title with its words in full.

    Parameters
    ----------
    tree, names : the tree to draw, with its names.
    depth : levels below the root; the lowest nodes show how many nodes they hide. None: all.

    Raises
    ------
    InvalidInput
        When more than 5,000 nodes would be drawn.
    """
    folded = fold_tree(tree, depth)
    flat = folded.flat
    if flat.size > MAX_NODES:
        raise InvalidInput(
            "tree",
            f"has {flat.size} nodes, a picture shows at most {MAX_NODES}: give a depth; text and DOT have no limit",
        )
    words = [NodeWords.of(folded, index, names) for index in range(flat.size)]
    lines = [each.picture_lines for each in words]
    branches = [shortened_text(each.branch) for each in words]

    legend = []  # start of each class's entry, and its name
    x, y, right = MARGIN, MARGIN, 0.0
    for name in map(shortened_text, names.classes):
        width = SWATCH + text_width(name) + 4 * LABEL_GAP
        if x > MARGIN and x + width > LEGEND_WIDTH:
            x, y = MARGIN, y + LINE
        legend.append((x, y, name))
        right = max(right, x + SWATCH + LABEL_GAP + text_width(name))
        x += width

    level, rows = tidy_layout(flat.parent)
    labels = np.array([text_width(branch) for branch in branches])
    longest = (max(text_width(line, bold=row == 0) for row, line in enumerate(text)) for text in lines)
    widths = np.fromiter(longest, np.float64, len(lines)) + 2 * PADDING
    left = np.empty(flat.size)
    edge = MARGIN
    for column in range(level.max() + 1):
        here = level == column
        left[here] = edge + (ELBOW + labels[here].max() + 2 * LABEL_GAP if column else 0.0)
        widths[here] = widths[here].max()  # boxes of a column have the same width
        edge = float((left[here] + widths[here]).max())
    height = max(len(text) for text in lines) * LINE + BAR + 2 * PADDING + BAR_GAP
    top = y + 2 * LINE + rows * (height + ROW_GAP)

    size = max(edge, right) + MARGIN, float(top.max()) + height + MARGIN
    root = empty_picture(size, f"Decision tree of {counted(flat.size + int(folded.hidden.sum()), 'node')}")
    marks = [names.mark_of(klass) for klass in range(len(names.classes))]
    _define_patterns(root, [mark for mark in marks if mark.pattern])
    for mark, (x, y, name) in zip(marks, legend, strict=True):
        draw_rectangle(root, (x, y + ASCENT - SWATCH, SWATCH, SWATCH), fill=_fill_of(mark))
        write_text(root, x + SWATCH + LABEL_GAP, y, name)
    for index in range(flat.size):
        if index:
            parent = int(flat.parent[index])
            start, end = left[parent] + widths[parent], left[index]
            up, down = top[parent] + height / 2, top[index] + height / 2
            corners = [(start, up), (start + ELBOW, up), (start + ELBOW, down), (end, down)]
            points = " ".join(f"{length_text(x)},{length_text(y)}" for x, y in corners)
            line = {"class": "branch", "points": points, "fill": "none", "stroke": GREY}
            ET.SubElement(root, "polyline", line)
            above = down - LABEL_GAP - ASCENT
            write_text(root, end - LABEL_GAP, above, branches[index], **{"text-anchor": "end"})
        box = left[index], top[index], widths[index], height
        _draw_node(root, folded, index, lines[index], box, marks)
    return ET.tostring(root, encoding="unicode")


def empty_picture(size: tuple[float, float], title: str) -> ET.Element:
    """Return an empty picture of this width and height, without a background; screen readers read its title."""
    width, height = (length_text(length) for length in size)
    root = ET.Element(
        "svg",
        {"xmlns": "http://www.w3.org/2000/svg", "width": width, "height": height}
        | {"viewBox": f"0 0 {width} {height}", "font-family": FONT, "font-size": length_text(FONT_SIZE)}
        | {"xml:space": "preserve", "role": "img"},
    )
    ET.SubElement(root, "title").text = title
    return root


def text_width(text: str, *, bold: bool = False) -> float:
    """Return an upper bound of the width of `text`, in pixels."""
    ems = sum(
        _WIDTHS.get(c, 1000 if east_asian_width(c) in "WF" else 800 if c.isupper() or c == "&" else 645)
        for c in text
    )
    return ems / 1000 * FONT_SIZE * (1.2 if bold else 1.0)


def _define_patterns(root: ET.Element, patterned: list[ClassMark]) -> None:
    """Define the fill of each class that has a pattern."""
    side = length_text(TILE)
    definitions = ET.SubElement(root, "defs") if patterned else root
    for mark in patterned:
        size = {"width": side, "height": side}
        tile = ET.SubElement(
            definitions, "pattern", {"id": mark.pattern_id, "patternUnits": "userSpaceOnUse"} | size
        )
        ET.SubElement(tile, "rect", size | {"fill": mark.light})
        strokes = {"d": pattern_path(mark.pattern, TILE), "stroke": ink_on(mark.light)}
        ET.SubElement(tile, "path", strokes)


def _fill_of(mark: ClassMark) -> str:
    return f"url(#{mark.pattern_id})" if mark.pattern else mark.light


def tidy_layout(parent: NDArray[np.integer[Any]]) -> tuple[NDArray[np.int64], Rows]:
    """Return the level and the row of each node: siblings in order, each parent centred on its children, no overlaps.

    Each subtree is laid out separately, and moved as close to the siblings above it as its outline allows.

    Parameters
    ----------
    parent : (n,) parent of each node in pre-order; -1 for the root

    Returns
    -------
    level : (n,) 0 at the root
    rows : (n,) at least 0; nodes of one level differ by 1 or more

    Notes
    -----
    Reingold and Tilford 1981. The outline of a subtree is two lists: the first and the last row of each level.
    """
    size = len(parent)
    children: list[list[int]] = [[] for _ in range(size)]
    for node in range(1, size):
        children[parent[node]].append(node)
    level, rows, shift = np.zeros(size, np.int64), np.zeros(size), np.zeros(size)
    outlines: dict[int, tuple[Rows, Rows]] = {}  # relative to the subtree's root
    for node in range(size - 1, -1, -1):
        first = last = np.empty(0)
        for child in children[node]:
            upper, lower = outlines.pop(child)
            both = min(len(last), len(upper))
            shift[child] = (last[:both] + 1 - upper[:both]).max() if both else 0.0
            first = np.concatenate([first, upper[len(first) :] + shift[child]])
            last = np.concatenate([lower + shift[child], last[len(lower) :]])
        middle = (first[0] + last[0]) / 2 if children[node] else 0.0
        shift[children[node]] -= middle
        outlines[node] = np.append(0.0, first - middle), np.append(0.0, last - middle)
    for node in range(1, size):
        level[node] = level[parent[node]] + 1
        rows[node] = rows[parent[node]] + shift[node]
    return level, rows - rows.min()


def _draw_node(
    root: ET.Element,
    folded: FoldedTree,
    index: int,
    lines: list[str],
    box: tuple[float, float, float, float],
    marks: list[ClassMark],
) -> None:
    """Draw the box of a node (left edge, top, width, height) with its lines and the bar of its class probabilities."""
    flat, number = folded.flat, str(folded.number[index])
    left, top, width, height = box
    mark = marks[flat.klass[index]]
    kinds = {"node": True, "leaf": flat.attribute[index] < 0, "undecided": flat.undecided[index]}
    named = " ".join(kind for kind, holds in kinds.items() if holds)
    group = ET.SubElement(root, "g", {"class": named, "data-node": number})
    ET.SubElement(group, "title").text = f"node {number}: {'; '.join(lines)}"
    style = {"fill": _fill_of(mark), "fill-opacity": "0.13", "stroke": mark.light, "rx": length_text(PADDING)}
    if flat.undecided[index]:
        style |= {"stroke-dasharray": "6 3", "stroke-width": "2"}
    draw_rectangle(group, box, **style)
    for row, line in enumerate(lines):
        weight = {"font-weight": "bold"} if row == 0 else {}
        write_text(group, left + PADDING, top + PADDING + row * LINE, line, **weight)
    ends = np.concatenate([[0.0], np.cumsum(flat.theta[index])]) * (width - 2 * PADDING)
    for klass in np.flatnonzero(np.diff(ends) > 0.05):
        bar = (left + PADDING + ends[klass], top + height - PADDING - BAR, ends[klass + 1] - ends[klass], BAR)
        draw_rectangle(group, bar, fill=_fill_of(marks[klass]))


def draw_rectangle(parent: ET.Element, box: tuple[float, float, float, float], **style: str) -> None:
    """Draw a rectangle: left edge, top, width and height."""
    where = dict(zip(("x", "y", "width", "height"), map(length_text, box), strict=True))
    ET.SubElement(parent, "rect", where | style)


def write_text(parent: ET.Element, x: float, top: float, text: str, **style: str) -> None:
    """Write a line of text that begins at x."""
    where = {"x": length_text(x), "y": length_text(top + ASCENT)}
    ET.SubElement(parent, "text", where | style).text = text


def length_text(value: float) -> str:
    """Return a length in SVG's notation."""
    return f"{value:.1f}".removesuffix(".0")
