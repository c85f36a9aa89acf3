"""A tree as an SVG picture: root on the left, a column a level, branch names above the lines.

Lengths are in inches, and one unit of the axes is one inch, so nothing depends on the size of the tree.
"""

import io
import warnings
from dataclasses import dataclass

import igraph
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import FancyBboxPatch, Rectangle
from matplotlib.textpath import text_to_path
from numpy.typing import NDArray

from quercus.belief.errors import InvalidInput
from quercus.trees.drawing import Names, class_colours, node_lines, shortened
from quercus.trees.flat import FlatTree

MAX_NODES = 2_000  # a larger picture takes minutes and nobody can read it
POINTS_AN_INCH = 72
FONT_PT = 9.0
SLACK = 1.03  # renderers round the width of letters
LINE = 0.165  # height of a line of text
PADDING = 0.09
BAR = 0.07  # height of the bar that shows the class probabilities
ROW_GAP = 0.14  # between boxes one above the other
ELBOW = 0.22  # from a box to the bend of its lines
MARGIN = 0.25
GREY = "#555555"


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    """Where everything stands: each box's left edge, width and centre (upwards), all boxes' height."""

    left: NDArray[np.float64]
    width: NDArray[np.float64]
    centre: NDArray[np.float64]
    height: float
    size: tuple[float, float]


def draw(flat: FlatTree, names: Names) -> str:
    """Return the picture of a tree.

    A node shows its split (a leaf its class), class, number of instances, and class probabilities, also
    as a bar; its colour is its class's; an undecided node has a dashed border and says so.

    Raises
    ------
    InvalidInput
        When the tree has more than 2,000 nodes.
    """
    if flat.size > MAX_NODES:
        raise InvalidInput(
            "tree", f"has {flat.size} nodes, a picture shows at most {MAX_NODES}; text and DOT have no limit"
        )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # drawn as a box, the rest is fine
        lines = [node_lines(flat, index, names) for index in range(flat.size)]
        layout = _place(flat, lines, names)
        figure = Figure(figsize=layout.size)
        canvas = FigureCanvasSVG(figure)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_xlim(0, layout.size[0])
        axes.set_ylim(0, layout.size[1])
        axes.set_axis_off()
        _draw_legend(axes, names, layout)
        for index in range(flat.size):
            _draw_branch(axes, flat, index, names, layout)
            _draw_node(axes, flat, index, lines[index], layout)
        buffer = io.BytesIO()
        canvas.print_svg(buffer, metadata={"Date": None})  # type: ignore[no-untyped-call]
    return buffer.getvalue().decode()


def _text_width(text: str, *, bold: bool = False) -> float:
    font = FontProperties(size=FONT_PT, weight="bold" if bold else "normal")
    width, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return SLACK * float(width) / POINTS_AN_INCH


def _place(flat: FlatTree, lines: list[list[str]], names: Names) -> _Layout:
    edges = [(int(flat.parent[i]), i) for i in range(1, flat.size)]
    graph = igraph.Graph(n=flat.size, edges=edges, directed=True)
    spots = np.array(graph.layout_reingold_tilford(mode="out", root=[0]).coords)
    depth = spots[:, 1].astype(int)
    own = [max(_text_width(line, bold=row == 0) for row, line in enumerate(text)) for text in lines]
    width = np.array(own) + 2 * PADDING
    label = np.zeros(flat.size)
    for _, child in edges:
        label[child] = _text_width(_branch_name(flat, child, names))
    left = np.empty(flat.size)
    edge = MARGIN
    for level in range(depth.max() + 1):
        here = depth == level
        left[here] = edge + (label[here].max() + 3 * ELBOW if level else 0.0)
        edge = float((left[here] + width[here]).max())
        width[here] = width[here].max()  # boxes of a column line up
    height = max(len(text) for text in lines) * LINE + BAR + 2 * PADDING + 0.04
    rows = spots[:, 0] - spots[:, 0].min()
    total = rows.max() * (height + ROW_GAP) + height + 2 * MARGIN + 2 * LINE
    centre = total - MARGIN - 2 * LINE - height / 2 - rows * (height + ROW_GAP)
    legend = sum(_text_width(shortened(name)) + 0.35 for name in names.classes) + 2 * MARGIN
    return _Layout(left, width, centre, height, (max(edge + MARGIN, min(legend, 40.0)), float(total)))


def _branch_name(flat: FlatTree, child: int, names: Names) -> str:
    attribute = int(flat.attribute[int(flat.parent[child])])
    return shortened(names.branch(attribute, int(flat.branch[child])))


def _draw_legend(axes: Axes, names: Names, layout: _Layout) -> None:
    x, y = MARGIN, layout.size[1] - MARGIN - LINE / 2
    for name, colour in zip(names.classes, class_colours(len(names.classes)), strict=True):
        axes.add_patch(Rectangle((x, y - 0.05), 0.1, 0.1, facecolor=colour, edgecolor="none"))
        axes.text(x + 0.15, y, shortened(name), fontsize=FONT_PT, va="center", parse_math=False)
        x += _text_width(shortened(name)) + 0.35


def _draw_branch(axes: Axes, flat: FlatTree, index: int, names: Names, layout: _Layout) -> None:
    parent = int(flat.parent[index])
    if parent < 0:
        return
    start = layout.left[parent] + layout.width[parent]
    bend, end = start + ELBOW, layout.left[index]
    up, down = layout.centre[parent], layout.centre[index]
    axes.plot([start, bend, bend, end], [up, up, down, down], color=GREY, linewidth=0.9, zorder=1)
    label = _branch_name(flat, index, names)
    axes.text(end - 0.08, down + 0.03, label, fontsize=FONT_PT, ha="right", va="bottom", parse_math=False)


def _draw_node(axes: Axes, flat: FlatTree, index: int, lines: list[str], layout: _Layout) -> None:
    colours = class_colours(flat.theta.shape[1])
    colour = colours[int(flat.klass[index])]
    left, width = layout.left[index], layout.width[index]
    bottom = layout.centre[index] - layout.height / 2
    rounded = f"round,pad=0,rounding_size={PADDING}"
    shape = FancyBboxPatch((left, bottom), width, layout.height, boxstyle=rounded)
    shape.set(edgecolor=colour, facecolor=colour + "22")
    if flat.undecided[index]:
        shape.set(linestyle="--", linewidth=1.8)
    axes.add_patch(shape)
    top = bottom + layout.height - PADDING
    for row, line in enumerate(lines):
        weight = "bold" if row == 0 else "normal"
        middle = top - (row + 0.5) * LINE
        axes.text(
            left + PADDING,
            middle,
            line,
            fontsize=FONT_PT,
            va="center",
            weight=weight,
            parse_math=False,
        )
    shares = np.concatenate([[0.0], np.cumsum(flat.theta[index])]) * (width - 2 * PADDING)
    for share, following, tint in zip(shares, shares[1:], colours, strict=False):
        if following > share:
            bar = (left + PADDING + share, bottom + PADDING * 0.8)
            axes.add_patch(Rectangle(bar, following - share, BAR, facecolor=tint, edgecolor="none"))
