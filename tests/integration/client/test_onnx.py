"""A tree as a model of ONNX predicts what it predicts itself, to the last bit, in another runtime."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from support.command_line import quercus

from quercus.belief.errors import InvalidInput
from quercus.belief.given import LabelReader
from quercus.cli.offline_model import OfflineModel, checked_specification, grow_offline
from quercus.client import Nominal, Numeric, Specification
from quercus.trees import UncertainValues
from quercus.view.trees.onnx import to_onnx

pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

ROWS = 10_000
COLOURS = ("red", "blue", "green", "grey")
SIDES = ("left", "right")


def drawn(rng: np.random.Generator, rows: int, missing: float) -> np.ndarray:
    """Rows of two numbers, a name of which the last is rare, and a name that is never missing."""
    values = np.column_stack(
        [
            rng.normal(size=rows).round(2),
            rng.integers(-3, 4, rows),
            rng.choice(4, rows, p=[0.5, 0.3, 0.199, 0.001]),
            rng.integers(2, size=rows),
        ]
    ).astype(float)
    values[:, :3][rng.random((rows, 3)) < missing] = math.nan
    return values


PLAIN: Final = ("x", "y", "colour", "side")
"""Names of the attributes."""


def grown(
    learner: str,
    *,
    cuts: int | None,
    missing: float,
    rows: int = 600,
    names: Sequence[str] = PLAIN,
    **more: Any,
) -> OfflineModel:
    rng = np.random.default_rng(7)
    values = drawn(rng, rows, missing)
    score = (
        np.nan_to_num(values[:, 0]) + (values[:, 2] == 1) - 0.4 * np.nan_to_num(values[:, 1]) * values[:, 3]
    )
    classes = ["low", "mid", "high"]
    labels: list[Any] = [classes[int(np.digitize(s, [-0.5, 0.8]))] for s in score + rng.normal(0, 0.3, rows)]
    labels[::7] = [{label, "mid"} for label in labels[::7]]
    numbers: dict[str, Any] = {"bins": 5} if cuts is None else {"cuts": cuts}
    attributes: list[Nominal | Numeric] = [
        *(Numeric(name, **numbers) for name in names[:2]), Nominal(names[2], COLOURS), Nominal(names[3], SIDES),
    ]  # fmt: skip
    specification = Specification(attributes, classes, learner={"name": learner, **more}, warmup_rows=rows)
    reader = LabelReader(tuple(classes))
    said = [reader.read_label(label, "label") for label in labels]
    return grow_offline(checked_specification(specification), UncertainValues(values, {}), said, None)


def in_onnx(model: OfflineModel, values: np.ndarray, names: Sequence[str] = PLAIN) -> dict[str, np.ndarray]:
    session = runtime.InferenceSession(to_onnx(model.tree(0)))
    colours = np.array([*COLOURS, "never seen", ""], dtype=object)
    columns = (
        values[:, :1],
        values[:, 1:2],
        colours[np.nan_to_num(values[:, 2:3], nan=5).astype(int)],
        np.array(SIDES, dtype=object)[values[:, 3:].astype(int)],
    )
    given = dict(zip(names, columns, strict=True))
    wanted = {each.name: given[each.name] for each in session.get_inputs()}
    return dict(zip([each.name for each in session.get_outputs()], session.run(None, wanted), strict=True))


@pytest.mark.parametrize("missing", [0.0, 0.1], ids=["whole", "missing"])
@pytest.mark.parametrize("cuts", [None, 16], ids=["bins", "cuts"])
@pytest.mark.parametrize("learner", ["abc45", "e2m", "id3", "c45", "averaging"])
def test_every_number_of_ten_thousand_rows_is_the_same(
    learner: str, cuts: int | None, missing: float
) -> None:
    """Names that training never saw and edges of bins among them; NaN where a row goes down several branches."""
    model = grown(learner, cuts=cuts, missing=missing)
    rng = np.random.default_rng(8)
    values = drawn(rng, ROWS, 0.05)
    values[::50, 2] = 4  # never seen
    tree = model.tree(0)
    edges = [node.threshold for node in tree.nodes if node.threshold is not None]
    edges += [edge for each in tree.attributes[:2] for edge in each.edges]
    values[: len(edges), 0] = edges  # a number at an edge is above it
    expected, found = model.grown.model.predict(values), in_onnx(model, values)
    split = np.isnan(found["probabilities"]).any(axis=1)
    np.testing.assert_array_equal(np.flatnonzero(split), expected.several)
    assert split.mean() < 0.2
    assert (found["label"][split] == "").all()
    whole = ~split
    np.testing.assert_array_equal(found["label"][whole], np.array(tree.classes)[expected.klass[whole]])
    np.testing.assert_array_equal(found["probabilities"][whole], expected.theta[whole])
    np.testing.assert_array_equal(found["belief"][whole], expected.belief[whole])
    np.testing.assert_array_equal(found["plausibility"][whole], expected.plausibility[whole])
    assert len(tree.nodes) > 8


@pytest.mark.parametrize(
    ("names", "inputs"),
    [
        (("row", "end", "number 0", "node"), ("row", "end", "number 0", "node")),
        (("ends", "last", "labels", "tree"), ("ends", "last", "labels", "tree")),
        (("label", "(label)", "belief", "größe/☃"), ("((label))", "(label)", "(belief)", "größe/☃")),
    ],
)
def test_an_attribute_may_have_any_name(names: Sequence[str], inputs: Sequence[str]) -> None:
    """Those of parts of the model, and those of its outputs, which stand in parentheses."""
    values = drawn(np.random.default_rng(8), 50, 0.0)
    values[:10, 0], values[10:20, 1] = math.inf, -math.inf
    model = grown("e2m", cuts=None, missing=0.1, names=names)
    assert {each.attribute for each in model.tree(0).nodes if each.children} == set(names)
    found = in_onnx(model, values, inputs)
    np.testing.assert_array_equal(found["probabilities"], model.grown.model.predict(values).theta)


def test_a_tree_of_one_node_has_a_model_too() -> None:
    model = grown("c45", cuts=8, missing=0.0, rows=2)
    assert len(model.tree(0).nodes) == 1
    found = in_onnx(model, drawn(np.random.default_rng(1), 3, 0.0))
    np.testing.assert_array_equal(found["belief"], np.tile(model.tree(0).root.belief, (3, 1)))


@pytest.mark.parametrize(
    ("learner", "words"),
    [
        ("forest", "is one of 10, whose predictions forest combines"),
        ("belief-entropy", "class densities"),
    ],
)
def test_what_onnx_cannot_evaluate_is_refused(learner: str, words: str) -> None:
    more: dict[str, Any] = {"trees": 10} if learner == "forest" else {}
    with pytest.raises(InvalidInput, match=words):
        to_onnx(grown(learner, cuts=None, missing=0.0, rows=60, **more).tree(0))


def test_the_command_writes_it(tmp_path: Path) -> None:
    rows = tmp_path / "t.csv"
    rows.write_text("x,class\n" + "".join(f"{k},{'ab'[k > 5]}\n" for k in range(12)))
    quercus("induce", str(rows), "--onnx", str(tmp_path / "t.onnx"))
    session = runtime.InferenceSession(tmp_path / "t.onnx")
    label, *_ = session.run(None, {"x": np.array([[5.0], [6.0]])})
    assert label.tolist() == ["a", "b"]
    done = quercus("induce", str(rows), "--learner", "forest", "--onnx", str(tmp_path / "f.onnx"))
    assert done.returncode == 1
    assert "whose predictions forest combines, which ONNX cannot" in " ".join(done.stderr.split())
    assert not (tmp_path / "f.onnx").exists()
