"""Trees as text, DOT, SVG, and in matplotlib's axes."""

from xml.etree import ElementTree as ET

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

from quercus.estimators import (
    ActiveBeliefTreeClassifier,
    BeliefEntropyTreeClassifier,
    C45Classifier,
    EvidentialForestClassifier,
    TotalUncertaintyTreeClassifier,
)

mpl.use("Agg")

FRAME = pd.DataFrame({"sky": ["sun", "sun", "rain", "rain"] * 3, "wind": [1.0, 2.0, 1.0, 9.0] * 3})
KIND = ["no", "no", "no", "yes"] * 3
X, Y = load_iris(return_X_y=True)


def test_text() -> None:
    text = C45Classifier(confidence=None, min_branch=1).fit(FRAME, KIND).export_text()
    assert text.splitlines() == [
        "no  n=12  (no 0.75  yes 0.25)  by wind",
        "├── < 5.5: no  n=9  (no 1.00  yes 0.00)",
        "└── ≥ 5.5: yes  n=3  (no 0.00  yes 1.00)",
    ]


def test_bins_and_values_have_their_names() -> None:
    frame = FRAME.assign(wind=[1.0, 2.0, 1.0, 2.0] * 3)
    text = ActiveBeliefTreeClassifier(bins=2, alpha=1.0).fit(frame, KIND).export_text()
    assert "by sky" in text
    assert "├── rain: " in text
    assert "< 1.5: no" in text
    assert "≥ 1.5: yes" in text


def test_trees_of_one_class_against_the_rest() -> None:
    found = TotalUncertaintyTreeClassifier(lam=0.5, classes=["a", "b", "c"]).fit(
        X, np.array(["a", "b", "c"])[Y]
    )
    for number, name in enumerate("abc"):
        assert f"not {name} " in found.export_text(number)
    with pytest.raises(ValueError, match=r"tree is 3, must lie in \[0, 3\)"):
        found.export_text(3)


def test_branches_of_belief_entropy_trees() -> None:
    text = BeliefEntropyTreeClassifier().fit(X, np.array(["a", "b", "c"])[Y]).export_text()
    assert "├── most like a: " in text


def test_each_tree_of_a_forest() -> None:
    forest = EvidentialForestClassifier(C45Classifier(), n_estimators=3, random_state=0).fit(X, Y)
    assert len({forest.export_text(number) for number in range(3)}) > 1


def test_dot_and_svg() -> None:
    found = C45Classifier(confidence=None, min_branch=1).fit(FRAME, KIND)
    assert found.export_dot().startswith("digraph tree {")
    root = ET.fromstring(found.export_svg())  # noqa: S314 - our own
    assert (
        sum("node" in element.get("class", "").split() for element in root.iter())
        == found.model_.flat_trees[0].size
    )


def test_axes_show_what_the_picture_shows() -> None:
    found = ActiveBeliefTreeClassifier(max_depth=2).fit(X, [None, *Y[1:].tolist()])
    root = ET.fromstring(found.export_svg())  # noqa: S314 - our own
    ax = found.plot_tree()
    words = [element.text for element in root.iter() if element.tag.endswith("text")]
    assert [text.get_text() for text in ax.texts] == words
    assert sum(isinstance(patch, FancyBboxPatch) for patch in ax.patches) == found.model_.flat_trees[0].size
    assert sum(isinstance(line, Line2D) for line in ax.lines) == found.model_.flat_trees[0].size - 1
    width, height = ax.figure.get_size_inches() * 96
    assert (width, height) == pytest.approx((float(root.attrib["width"]), float(root.attrib["height"])))
    mpl.pyplot.close(ax.figure)


def test_axes_that_are_given_are_used() -> None:
    figure, (left, right) = mpl.pyplot.subplots(1, 2)
    found = C45Classifier().fit(X, Y)
    assert found.plot_tree(right) is right
    assert right.texts
    assert not left.texts
    mpl.pyplot.close(figure)


def test_words_are_no_formulas() -> None:
    found = C45Classifier(confidence=None, min_branch=1).fit(
        FRAME.rename(columns={"wind": "$w_1$ 100%"}), KIND
    )
    ax = found.plot_tree()
    ax.figure.canvas.draw()
    assert "$w_1$ 100%" in [text.get_text() for text in ax.texts]
    mpl.pyplot.close(ax.figure)


def test_what_is_not_fitted_has_no_picture() -> None:
    with pytest.raises(NotFittedError):
        C45Classifier().export_svg()
