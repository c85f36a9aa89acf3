"""A tree drawn into Matplotlib axes: the boxes, lines and words of its SVG picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from quercus.belief.errors import InvalidInput
from quercus.specification.class_marks import CLASS_MARKS, ink_on
from quercus.view.plots.style import pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import Patch

PIXELS = 96.0  # per inch, as in SVG
POINTS = 72.0
DENSITY = 6  # of the strokes of a pattern
_PATTERNED = {f"url(#{mark.pattern_id})": mark for mark in CLASS_MARKS if mark.pattern}


def tree(picture: Any, ax: Axes | None = None, *, depth: int | None = None, member: int = 0) -> Axes:
    """Draw a tree; y grows downwards, as in the picture.

    Parameters
    ----------
    picture
        A fitted classifier of `quercus.estimators`, or the text of a picture: ``client.render("wine", "svg")``.
    ax
        Axes to draw on. None: axes that fill a new figure of the picture's size. In axes of another size, text scales
        with the width.
    depth
        For a classifier: levels below the root. The lowest nodes show how many nodes they hide. None: all.
    member
        For a classifier with several trees: index of the tree.

    Raises
    ------
    InvalidInput
        When the text is not a picture of a tree.
    ValueError
        When more than 5,000 nodes would be drawn.
    """
    svg = picture if isinstance(picture, str) else picture.export_svg(member, depth=depth)
    try:
        root = ET.fromstring(svg)  # noqa: S314 - our own picture; external entities are not read
        width, height = float(root.attrib["width"]), float(root.attrib["height"])
    except (ET.ParseError, KeyError, ValueError) as error:
        raise InvalidInput("picture", f"is not a picture of a tree ({error})") from None
    plt = pyplot()
    from matplotlib.lines import Line2D  # noqa: PLC0415

    if ax is None:
        figure = plt.figure(figsize=(width / PIXELS, height / PIXELS))
        ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    ax.set_xlim(0.0, width)
    ax.set_ylim(height, 0.0)
    ax.set_aspect("equal")
    ax.set_axis_off()
    scale = POINTS * ax.get_window_extent().width / ax.figure.dpi / width
    size = float(root.attrib["font-size"]) * scale
    for element in root.iter():
        kind = element.tag.rpartition("}")[2]
        if kind == "rect" and "x" in element.attrib:
            ax.add_patch(_box_patch(element, scale))
        elif kind == "polyline":
            points = [point.split(",") for point in element.attrib["points"].split()]
            xs, ys = zip(*((float(x), float(y)) for x, y in points), strict=True)
            ax.add_line(Line2D(xs, ys, color=element.attrib["stroke"], linewidth=scale))
        elif kind == "text":
            at = float(element.attrib["x"]), float(element.attrib["y"])
            weight = element.get("font-weight", "normal")
            side = "right" if element.get("text-anchor") == "end" else "left"
            words = ax.text(
                *at, "", fontsize=size, fontweight=weight, ha=side, va="baseline", parse_math=False
            )
            words.set_text(element.text or "")
    return ax


def _box_patch(element: ET.Element, scale: float) -> Patch:
    from matplotlib.patches import FancyBboxPatch, Rectangle  # noqa: PLC0415

    x, y, width, height = (float(element.attrib[name]) for name in ("x", "y", "width", "height"))
    fill, stroke = element.attrib["fill"], element.get("stroke")
    mark = _PATTERNED.get(fill)
    fill = fill if mark is None else mark.light
    strokes = "" if mark is None else DENSITY * mark.pattern
    if stroke is None:
        return Rectangle(
            (x, y), width, height, facecolor=fill, hatch=strokes, hatchcolor=ink_on(fill), linewidth=0
        )
    style = f"round,pad=0,rounding_size={element.get('rx', '0')}"
    dashed = "--" if "stroke-dasharray" in element.attrib else "-"
    line = float(element.get("stroke-width", "1")) * scale
    alpha = float(element.get("fill-opacity", "1"))
    box = FancyBboxPatch(
        (x, y), width, height, boxstyle=style, edgecolor=stroke, linewidth=line, linestyle=dashed
    )
    box.set_hatch(strokes)
    box.set_facecolor((fill, alpha))
    box.set_hatchcolor((fill, 2 * alpha))
    return box
