import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from quercus.belief.errors import InvalidInput
from quercus.trees.tree import svg_drawing, text_drawing
from quercus.trees.tree.flat import FlatTree
from quercus.trees.tree.node import Node, Stop
from quercus.trees.tree.svg_drawing import to_svg
from quercus.trees.tree.text_drawing import TreeNames, class_colours, to_dot, to_text

NAMES = TreeNames(
    ("yes", "no"), ("wind", "sky"), (("weak", "strong", "?"), ("sunny", "overcast", "rain", "?"))
)


def node(attribute: int | None, yes: float, count: int, **more: object) -> Node:
    theta = (yes, 1 - yes)
    return Node(
        attribute=attribute,
        klass=int(yes < 0.5),
        theta=theta,
        count=count,
        belief=theta,
        plausibility=theta,
        **more,
    )


def small() -> Node:
    sky = node(1, 0.25, 4, children={0: node(None, 0.0, 3, stop=Stop.PURE), 2: node(None, 1.0, 1)})
    return node(0, 0.75, 9, undecided=True, children={0: sky, 2: node(None, 1.0, 5, stop=Stop.PURE)})


def bushy(leaves: int, seed: int) -> tuple[Node, TreeNames]:
    """Random shape, long and short names."""
    rng = np.random.default_rng(seed)

    def grow(count: int, depth: int) -> Node:
        if count == 1:
            return node(None, float(rng.random()), int(rng.integers(1, 10**6)))
        width = int(min(count, rng.integers(2, 5)))
        cuts = np.sort(rng.choice(np.arange(1, count), width - 1, replace=False))
        parts = np.diff([0, *cuts, count])
        children = {code: grow(int(part), depth + 1) for code, part in enumerate(parts)}
        return node(depth, float(rng.random()), count, undecided=bool(rng.random() < 0.3), children=children)

    def name(kind: str) -> str:
        return kind * int(rng.integers(1, 12))

    branches = tuple(tuple(name("branch ") + str(code) for code in range(5)) for _ in range(leaves))
    return grow(leaves, 0), TreeNames(
        (name("yes"), name("no")), tuple(name("at ") for _ in branches), branches
    )


def test_text() -> None:
    assert to_text(small(), NAMES).splitlines() == [
        "yes  n=9  (yes 0.75  no 0.25)  by wind  UNDECIDED",
        "├─ weak: no  n=4  (yes 0.25  no 0.75)  by sky",
        "│  ├─ sunny: no  n=3  (yes 0.00  no 1.00)",
        "│  └─ rain: yes  n=1  (yes 1.00  no 0.00)",
        "└─ ?: yes  n=5  (yes 1.00  no 0.00)",
    ]
    assert to_text(FlatTree.of(small()), NAMES) == to_text(small(), NAMES)


def test_a_large_frame_shows_the_likeliest_classes() -> None:
    text = text_drawing.estimate_text((0.1, 0.5, 0.0, 0.3, 0.1), ("a", "b", "c", "d", "e"))
    assert text == "a 0.10  b 0.50  d 0.30  …"


def test_a_branch_without_a_name_shows_its_code() -> None:
    assert NAMES.branch(0, 7) == "#7"


def test_dot() -> None:
    names = TreeNames(('say "yes"', "no\\nothing"), ("wind\nforce", "sky"), NAMES.branches)
    text = to_dot(small(), names)
    assert text.startswith("digraph tree {")
    assert text.endswith("}")
    assert text.count(" -> ") == 4
    assert 'n0 -> n1 [label="weak"];' in text
    assert r"say \"yes\", n = 9, undecided" in text
    assert r"no\\nothing" in text
    assert "wind force" in text
    assert text.count("dashed") == 1
    assert all(line.count('"') % 2 == line.count('\\"') % 2 for line in text.splitlines())


def test_colours_are_distinct() -> None:
    for size in (2, 7, 8, 64):
        colours = class_colours(size)
        assert len(set(colours)) == size
        assert all(re.fullmatch("#[0-9a-fA-F]{6}", colour) for colour in colours)


SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("tree", [small(), node(None, 1.0, 0)])
def test_svg_shows_every_node(tree: Node) -> None:
    root = ET.fromstring(to_svg(tree, NAMES))  # noqa: S314 - our own text
    groups = root.findall(f"{SVG}g")
    nodes = [each for each, _, _ in tree.preorder()]
    assert len(groups) == len(nodes)
    colours = class_colours(2)
    for group, each in zip(groups, nodes, strict=True):
        box, *bars = group.findall(f"{SVG}rect")
        assert box.get("fill") == colours[each.klass]
        assert ("stroke-dasharray" in box.attrib) == each.undecided
        text = [line.text for line in group.findall(f"{SVG}text")]
        assert any(f"n = {each.count}" in line for line in text)
        assert text[-1] == f"yes {each.theta[0]:.2f}  no {each.theta[1]:.2f}"
        assert [bar.get("fill") for bar in bars] == [c for c, p in zip(colours, each.theta, strict=True) if p]
    assert len(root.findall(f"{SVG}polyline")) == len(nodes) - 1


def test_svg_names_the_branches() -> None:
    root = ET.fromstring(to_svg(small(), NAMES))  # noqa: S314 - our own text
    ends = [text.text for text in root.findall(f"{SVG}text") if text.get("text-anchor") == "end"]
    assert ends == ["weak", "sunny", "rain", "?"]
    assert to_svg(small(), NAMES) == to_svg(FlatTree.of(small()), NAMES)


@pytest.mark.parametrize("bold", [False, True])
def test_text_is_never_wider_than_its_place(bold: bool) -> None:
    """Measured in the widest of the fonts that viewers use."""
    font = FontProperties(
        family="DejaVu Sans", size=svg_drawing.FONT_SIZE, weight="bold" if bold else "normal"
    )
    ascii_letters = [chr(c) * 20 for c in range(32, 127)]
    for text in [*ascii_letters, "flavanoids", "[0.34, 1.53)", "≥ 12", "class_0 0.34  class_1 0.66", "Über…"]:
        width, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
        assert width <= svg_drawing.text_width(text, bold=bold) * 1.001


def test_svg_takes_any_name() -> None:
    names = TreeNames(
        ("<&>", "$x^2$"), ("質問", "a\x07b -- c"), (("\N{GRINNING FACE}", "$", "]]>"), NAMES.branches[1])
    )
    root = ET.fromstring(to_svg(small(), names))  # noqa: S314 - our own text
    text = "".join(root.itertext())
    for shown in ("<&>", "質問", "\N{GRINNING FACE}", "]]>"):
        assert shown in text


@pytest.mark.parametrize(("leaves", "seed"), [(2, 0), (5, 1), (30, 2), (30, 3), (80, 4)])
def test_nothing_in_a_picture_overlaps(leaves: int, seed: int) -> None:
    tree, names = bushy(leaves, seed)
    root = ET.fromstring(to_svg(tree, names))  # noqa: S314 - our own text

    def numbers(element: ET.Element, *keys: str) -> list[float]:
        return [float(element.get(key, "nan")) for key in keys]

    def extent(text: ET.Element) -> tuple[float, float, float, float]:
        x, y = numbers(text, "x", "y")
        width = svg_drawing.text_width(text.text or "", bold=text.get("font-weight") == "bold")
        x -= width if text.get("text-anchor") == "end" else 0
        return x, x + width, y - svg_drawing.ASCENT, y + 3

    things, bends = [], []
    for group in root.findall(f"{SVG}g"):
        x, y, width, height = numbers(group.find(f"{SVG}rect"), "x", "y", "width", "height")
        things.append((x, x + width, y, y + height))
        for inside in map(extent, group.findall(f"{SVG}text")):
            assert x < inside[0]
            assert inside[1] < x + width
            assert y < inside[2]
            assert inside[3] < y + height
    things += [extent(text) for text in root.findall(f"{SVG}text")]
    for line in root.findall(f"{SVG}polyline"):
        corners = [[float(part) for part in point.split(",")] for point in (line.get("points") or "").split()]
        (bend, one), (_, other) = corners[1:3]
        bends.append((bend, bend, min(one, other), max(one, other)))
    boxes = np.array(things)
    for i, one in enumerate([*things, *bends]):
        rest = boxes[i + 1 :] if i < len(things) else boxes  # bends may touch bends
        apart = (
            (one[1] <= rest[:, 0]) | (rest[:, 1] <= one[0]) | (one[3] <= rest[:, 2]) | (rest[:, 3] <= one[2])
        )
        assert apart.all()
    assert boxes[:, [0, 2]].min() >= 0
    assert (boxes[:, [1, 3]].max(axis=0) <= numbers(root, "width", "height")).all()


def test_a_picture_has_a_bound() -> None:
    tree, names = bushy(4000, 5)
    with pytest.raises(InvalidInput, match="a picture shows at most 5000"):
        to_svg(tree, names)
