from xml.etree import ElementTree as ET

import numpy as np
import pytest

from quercus.belief.errors import InvalidInput
from quercus.trees import drawing, picture
from quercus.trees.drawing import Names, class_colours, to_dot, to_svg, to_text
from quercus.trees.flat import FlatTree
from quercus.trees.tree import Node, Stop

NAMES = Names(("yes", "no"), ("wind", "sky"), (("weak", "strong", "?"), ("sunny", "overcast", "rain", "?")))


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


def bushy(leaves: int, seed: int) -> tuple[Node, Names]:
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
    return grow(leaves, 0), Names((name("yes"), name("no")), tuple(name("at ") for _ in branches), branches)


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
    text = drawing.estimate_text((0.1, 0.5, 0.0, 0.3, 0.1), ("a", "b", "c", "d", "e"))
    assert text == "a 0.10  b 0.50  d 0.30  …"


def test_a_branch_without_a_name_shows_its_code() -> None:
    assert NAMES.branch(0, 7) == "#7"


def test_dot() -> None:
    names = Names(('say "yes"', "no\\nothing"), ("wind\nforce", "sky"), NAMES.branches)
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
        assert all(len(colour) == 7 and int(colour[1:], 16) >= 0 for colour in colours)


@pytest.mark.parametrize("tree", [small(), node(None, 1.0, 0)])
def test_svg_is_a_picture(tree: Node) -> None:
    root = ET.fromstring(to_svg(tree, NAMES))  # noqa: S314 - our own text
    assert root.tag.endswith("svg")
    boxes = [path for path in root.iter() if path.tag.endswith("path") and "Q" in path.get("d", "")]
    dashed = [path for path in root.iter() if "stroke-dasharray" in path.get("style", "")]
    assert len(root.findall(".//*")) > 10
    assert len(dashed) == sum(each.undecided for each, _, _ in tree.preorder())
    assert len(boxes) >= FlatTree.of(tree).size


def test_svg_takes_any_name() -> None:
    names = Names(
        ("<&>", "$x^2$"), ("質問", "a\x07b -- c"), (("\N{GRINNING FACE}", "$", "]]>"), NAMES.branches[1])
    )
    ET.fromstring(to_svg(small(), names))  # noqa: S314 - our own text


@pytest.mark.parametrize(("leaves", "seed"), [(2, 0), (5, 1), (30, 2), (30, 3), (80, 4)])
def test_nothing_in_a_picture_overlaps(leaves: int, seed: int) -> None:
    tree, names = bushy(leaves, seed)
    flat = FlatTree.of(tree)
    lines = [drawing.node_lines(flat, index, names) for index in range(flat.size)]
    layout = picture._place(flat, lines, names)
    low, high = layout.centre - layout.height / 2, layout.centre + layout.height / 2
    right = layout.left + layout.width
    boxes = np.column_stack([layout.left, right, low, high])
    labels = []
    for child in range(1, flat.size):
        end = layout.left[child] - 0.08
        width = picture._text_width(picture._branch_name(flat, child, names))
        labels.append(
            (end - width, end, layout.centre[child] + 0.03, layout.centre[child] + 0.03 + picture.LINE)
        )
        assert end - width > right[flat.parent[child]] + picture.ELBOW  # right of the bend
    things = np.vstack([boxes, labels])
    for i, one in enumerate(things):
        rest = things[i + 1 :]
        apart = (
            (one[1] <= rest[:, 0]) | (rest[:, 1] <= one[0]) | (one[3] <= rest[:, 2]) | (rest[:, 3] <= one[2])
        )
        assert apart.all()
    for index, text in enumerate(lines):
        widest = max(picture._text_width(line, bold=row == 0) for row, line in enumerate(text))
        assert widest <= layout.width[index] - 2 * picture.PADDING + 1e-9
    assert right.max() <= layout.size[0]
    assert low.min() > 0
    assert high.max() < layout.size[1] - 2 * picture.LINE  # below the legend


def test_a_picture_has_a_bound() -> None:
    tree, names = bushy(1500, 5)
    with pytest.raises(InvalidInput, match="a picture shows at most 2000"):
        to_svg(tree, names)
