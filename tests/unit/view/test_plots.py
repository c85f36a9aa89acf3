"""Pictures show the numbers that they are given, compared with numbers worked out otherwise; in given axes, too."""

import math
import subprocess
import sys
from collections.abc import Callable, Iterator

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from quercus.belief.errors import InvalidInput
from quercus.belief.frame import Frame
from quercus.belief.mass import MassFunction
from quercus.estimators import ActiveBeliefTreeClassifier, C45Classifier
from quercus.view import plots
from quercus.view.plots import cuts, style

mpl.use("Agg")


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    before = dict(mpl.rcParams)
    yield
    plt.close("all")
    assert dict(mpl.rcParams) == before  # the style stays within


INTERVALS = {"ash": (0.02, 0.17), "proline": (0.31, 0.52), "alcohol": (0.1, 0.31), "hue": (0.0, 0.3)}
DRAWN: dict[str, Callable[[Axes | None], Axes]] = {
    "intervals": lambda ax: plots.gain_ratio_intervals(INTERVALS, ax=ax),
    "cut": lambda ax: plots.alpha_cut([[1, 0, 0], [0, 1, 1]], ax=ax),
    "mass": lambda ax: plots.mass_function({("a",): 0.6, ("a", "b"): 0.4}, ("a", "b"), ax=ax),
    "beliefs": lambda ax: plots.belief_intervals(("a", "b"), (0.6, 0.0), (1.0, 0.4), ax=ax),
    "curve": lambda ax: plots.learning_curve([0, 1, 2], [[0.1, 0.2, 0.4], [0.3, 0.4, 0.8]], ax=ax),
    "time": lambda ax: plots.accuracy_over_time([True, False, True], ax=ax),
}


@pytest.mark.parametrize("name", DRAWN)
def test_each_returns_the_axes_that_it_drew_into(name: str) -> None:
    _, given = plt.subplots()
    assert DRAWN[name](given) is given
    made = DRAWN[name](None)
    assert made.figure is not given.figure
    made.figure.canvas.draw()


def test_rivals_and_dominated_attributes() -> None:
    ax = plots.gain_ratio_intervals(INTERVALS, chosen="proline")
    assert [label.get_text() for label in ax.get_yticklabels()] == ["ash", "hue", "alcohol", "proline"]
    lines = [line for line in ax.get_lines() if line.get_linewidth() == 7]
    drawn = {line.get_ydata()[0]: (tuple(line.get_xdata()), to_hex(line.get_color())) for line in lines}
    assert drawn[3] == ((0.31, 0.52), style.cycle_colour(0).lower())
    assert drawn[2] == ((0.1, 0.31), style.cycle_colour(0).lower())  # it touches the best lower end
    assert drawn[1][1] == drawn[0][1] == style.MUTED
    assert ax.get_title(loc="left") == "2 attributes compete"
    weights = [label.get_fontweight() for label in ax.get_yticklabels()]
    assert weights == ["normal", "normal", "normal", "bold"]


def test_many_attributes_are_distinguished_from_those_not_shown() -> None:
    many = {f"a{k}": (k / 100, k / 100 + 0.005) for k in range(30)}
    ax = plots.gain_ratio_intervals(many)
    assert len(ax.get_yticklabels()) == 20
    assert ax.get_title(loc="left") == "settled; 10 more are not shown"


def test_the_cut_is_where_the_labels_are_plausible() -> None:
    labels = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
    theta = np.array([[0.5, 0.25, 0.25], [0.8, 0.1, 0.1], [0.5, 0.5, 0.0]])
    by_hand = [1.0, 0.8 * 0.2 / 0.25, 1.0]  # of θ₁ (1 - θ₁), which is largest at one half
    assert cuts.relative_likelihood(theta, labels, np.ones(2)) == pytest.approx(by_hand)
    counted = cuts.relative_likelihood(theta, labels, np.array([3.0, 3.0]))
    assert counted == pytest.approx([1.0, 0.64**3, 1.0])


def test_vacuous_labels_leave_the_whole_triangle() -> None:
    ax = plots.alpha_cut([[1, 1, 1]], alpha=0.9)
    (shaded,) = [each for each in ax.collections if getattr(each, "filled", False)]
    area = sum(
        abs(
            np.dot(x := path.vertices[:-1, 0], np.roll(y := path.vertices[:-1, 1], 1))
            - np.dot(y, np.roll(x, 1))
        )
        / 2
        for path in shaded.get_paths()
    )
    assert area == pytest.approx(math.sqrt(3) / 4, rel=0.02)


def test_masses_are_bars_and_sets_have_names() -> None:
    frame = Frame(("a", "b", "c"))
    mass = MassFunction.of(3, {frame.mask("a"): 0.5, frame.mask(("b", "c")): 0.3, frame.full: 0.2})
    ax = plots.mass_function(mass, frame.classes)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["any", "{b, c}", "{a}"]
    assert [bar.get_width() for bar in ax.patches] == [0.2, 0.3, 0.5]


def test_belief_is_filled_and_plausibility_hollow() -> None:
    ax = plots.belief_intervals(("a", "b"), (0.6, 0.0), (1.0, 0.4))
    hollow, filled = ax.patches[:2], ax.patches[2:]
    assert [bar.get_width() for bar in hollow] == [1.0, 0.4]
    assert [bar.get_width() for bar in filled] == [0.6, 0.0]
    assert hollow[0].get_facecolor()[3] == 0


def test_the_band_of_several_runs() -> None:
    scores = [[0.1, 0.4], [0.3, 0.8]]
    for band, low, high in (("range", [0.1, 0.4], [0.3, 0.8]), ("error", [0.0, 0.2], [0.4, 1.0])):
        ax = plots.learning_curve([0, 5], scores, band=band, label="asked")
        assert ax.get_lines()[0].get_ydata() == pytest.approx([0.2, 0.6])
        ends = ax.collections[0].get_paths()[0].vertices
        for x, lowest, highest in zip((0, 5), low, high, strict=True):
            at = ends[ends[:, 0] == x, 1]
            assert (at.min(), at.max()) == (pytest.approx(lowest), pytest.approx(highest))
    assert not plots.learning_curve([0, 5], [0.1, 0.4]).collections


def test_a_memory_forgets() -> None:
    right = np.concatenate([np.ones(300), np.zeros(300)])
    ax = plots.accuracy_over_time(right, memories=(10, 1000))
    short, long = (line.get_ydata()[-1] for line in ax.get_lines())
    assert short < 1e-6
    assert 0.3 < long < 0.5
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "memory of 10 rows",
        "memory of 1,000 rows",
    ]


WRONG: dict[str, tuple[Callable[[], Axes], str]] = {
    "no interval": (lambda: plots.gain_ratio_intervals({}), "node: has no intervals"),
    "four classes": (lambda: plots.alpha_cut([[1, 1, 1, 1]]), r"contours: have the shape \(1, 4\)"),
    "no class": (lambda: plots.alpha_cut([[1, 1, 1], [0, 0, 0]]), r"contours\[1\]: is \[0.0, 0.0, 0.0\]"),
    "level": (lambda: plots.alpha_cut([[1, 1, 1]], alpha=0), r"alpha: is 0, must lie in \(0, 1\]"),
    "counts": (lambda: plots.alpha_cut([[1, 1, 1]], [-1]), "counts: must be 1 numbers"),
    "names": (lambda: plots.alpha_cut([[1, 1, 1]], classes=("a", "b")), "classes: has 2 names"),
    "frame": (lambda: plots.mass_function(MassFunction.vacuous(3), ("a", "b")), "classes: has 2 names"),
    "beliefs": (
        lambda: plots.belief_intervals(("a", "b"), (0.6,), (1.0, 0.4)),
        "belief: and plausibility must have 2",
    ),
    "above": (lambda: plots.belief_intervals(("a", "b"), (0.6, 0.5), (1.0, 0.4)), "belief: must lie in"),
    "lengths": (lambda: plots.learning_curve([0, 1], [[0.1]]), r"scores: have the shape \(1, 1\)"),
    "band": (lambda: plots.learning_curve([0], [0.1], band="wide"), "band: is 'wide'"),  # type: ignore[arg-type]
    "right": (lambda: plots.accuracy_over_time([2]), "right: must be at least one number"),
    "memory": (lambda: plots.accuracy_over_time([1], memories=(0,)), r"memories: are \[0\]"),
    "picture": (lambda: plots.tree("<p>no tree</p>"), "picture: is not a picture of a tree"),
}


@pytest.mark.parametrize("name", WRONG)
def test_mistakes_are_reported_with_their_field(name: str) -> None:
    call, words = WRONG[name]
    with pytest.raises(InvalidInput, match=words):
        call()


def test_a_tree_down_to_a_depth() -> None:
    rng = np.random.default_rng(0)
    values = rng.integers(0, 3, (200, 6)).astype(float)
    tree = ActiveBeliefTreeClassifier(max_cuts=4).fit(values, rng.integers(0, 3, 200))
    whole, top = plots.tree(tree), plots.tree(tree, depth=1)
    assert len(top.patches) < len(whole.patches)
    assert any("nodes below" in text.get_text() for text in top.texts)
    assert not any("below" in text.get_text() for text in whole.texts)
    assert plots.tree(tree.export_svg(depth=1)).get_xlim() == top.get_xlim()


def test_a_tree_of_many_classes_has_the_patterns_of_its_picture() -> None:
    values = np.arange(26.0)[:, None].repeat(4, axis=0)
    tree = C45Classifier(confidence=None, min_branch=1).fit(values, [f"k{int(v):02d}" for v in values[:, 0]])
    ax = plots.tree(tree)
    swatches = [each for each in ax.patches if isinstance(each, Rectangle)][:26]
    looks = [(each.get_facecolor(), each.get_hatch()) for each in swatches]
    assert len(set(looks)) == 26
    assert [bool(hatch) for _, hatch in looks] == [place >= 20 for place in range(26)]
    ax.figure.canvas.draw()


def test_matplotlib_is_imported_when_something_is_drawn() -> None:
    code = (
        "import sys\nfrom quercus.view import plots\nassert 'matplotlib' not in sys.modules\n"
        "sys.modules['matplotlib'] = None\nplots.alpha_cut([[1, 0, 0]])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    last = run.stderr.splitlines()[-1]
    assert last == "ModuleNotFoundError: pictures need matplotlib: pip install 'quercus[plots]'"
