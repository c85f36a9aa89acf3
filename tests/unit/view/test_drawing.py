import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from quercus.belief.errors import InvalidInput
from quercus.specification.class_marks import CLASS_MARKS, OTHER_CLASSES
from quercus.trees.tree.flat import FlatTree
from quercus.trees.tree.names import TreeNames
from quercus.trees.tree.node import Node, Stop
from quercus.view.trees import svg as svg_drawing
from quercus.view.trees import words
from quercus.view.trees.dot import to_dot
from quercus.view.trees.svg import to_svg
from quercus.view.trees.text import to_text

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
        "├── weak: no  n=4  (yes 0.25  no 0.75)  by sky",
        "│   ├── sunny: no  n=3  (yes 0.00  no 1.00)",
        "│   └── rain: yes  n=1  (yes 1.00  no 0.00)",
        "└── ?: yes  n=5  (yes 1.00  no 0.00)",
    ]
    assert to_text(FlatTree.of(small()), NAMES) == to_text(small(), NAMES)


def test_a_large_frame_shows_the_likeliest_classes() -> None:
    text = words.estimate_text((0.1, 0.5, 0.0, 0.3, 0.1), ("a", "b", "c", "d", "e"))
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


def of_classes(size: int) -> tuple[Node, TreeNames]:
    """A root of all classes, and a leaf of each."""
    leaves = {
        c: Node(None, c, count=1, **{each: tuple(float(k == c) for k in range(size)) for each in SHARES})
        for c in range(size)
    }
    root = Node(0, 0, count=size, children=leaves, **dict.fromkeys(SHARES, (1 / size,) * size))
    names = tuple(f"class {c}" for c in range(size))
    return root, TreeNames(names, ("kind",), (tuple(f"is {c}" for c in range(size)),))


SHARES = ("theta", "belief", "plausibility")


@pytest.mark.parametrize("size", [2, 8, 12, 20, 26, 64])
def test_the_legend_shows_every_class_with_a_mark_of_its_own(size: int) -> None:
    """The bars of the root, and each leaf, have the fills that the legend gives their classes."""
    root = ET.fromstring(to_svg(*of_classes(size)))  # noqa: S314 - our own text
    legend = [each.get("fill") for each in root.findall(f"{SVG}rect")]
    assert len(legend) == len(set(legend)) == size
    words = [text.text for text in root.findall(f"{SVG}text") if text.get("text-anchor") != "end"]
    assert words == [f"class {c}" for c in range(size)]
    top, *leaves = root.findall(f"{SVG}g")
    assert [bar.get("fill") for bar in top.findall(f"{SVG}rect")[1:]] == legend
    assert [tuple(part.get("fill") for part in leaf.findall(f"{SVG}rect")) for leaf in leaves] == [
        (fill, fill) for fill in legend
    ]
    drawn = {  # what a viewer sees of a fill: its colour, and the strokes across it
        f"url(#{each.get('id')})": (each.find(f"{SVG}rect").get("fill"), each.find(f"{SVG}path").get("d"))
        for each in root.iter(f"{SVG}pattern")
    }
    seen = [drawn.get(fill, (fill, "")) for fill in legend]
    assert len(set(seen)) == size
    assert [colour for colour, _ in seen] == [mark.light for mark in CLASS_MARKS[:size]]
    assert [bool(strokes) for _, strokes in seen] == [place >= 20 for place in range(size)]


@pytest.mark.parametrize("size", [12, 26, 64])
def test_nodes_in_graphviz_differ_by_colour_or_lines(size: int) -> None:
    text = to_dot(*of_classes(size))
    looks = re.findall(r'n[1-9]\d* \[.*?color="(#\w+)".*?\w"(?:, peripheries=(\d))?\];', text)
    assert len(looks) == len(set(looks)) == size


def test_all_other_classes_have_a_mark_of_no_class() -> None:
    names = TreeNames(("b", "not b"), NAMES.attributes, NAMES.branches, (CLASS_MARKS[1], OTHER_CLASSES))
    root = ET.fromstring(to_svg(small(), names))  # noqa: S314 - our own text
    assert [each.get("fill") for each in root.findall(f"{SVG}rect")] == [
        CLASS_MARKS[1].light,
        OTHER_CLASSES.light,
    ]
    assert CLASS_MARKS[0].light not in to_dot(small(), names)


SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("tree", [small(), node(None, 1.0, 0)])
def test_svg_shows_every_node(tree: Node) -> None:
    root = ET.fromstring(to_svg(tree, NAMES))  # noqa: S314 - our own text
    groups = root.findall(f"{SVG}g")
    nodes = [each for each, _, _ in tree.preorder()]
    assert len(groups) == len(nodes)
    colours = [mark.light for mark in CLASS_MARKS[:2]]
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
