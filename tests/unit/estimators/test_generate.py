"""The estimators of learners are written from what the learners declare, those of other packages too."""

import ast
import inspect
import subprocess
import sys
from dataclasses import fields
from importlib import import_module
from pathlib import Path

import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from quercus import estimators
from quercus.belief.errors import InvalidInput
from quercus.estimators.base import TableClassifier
from quercus.estimators.generate import (
    GENERATED,
    OUR_DOC,
    OUR_HEADER,
    OURS,
    RENAMED,
    Estimator,
    generated_module,
    main,
)
from quercus.specification.learners import learner_classes
from quercus.trees import C45, Learner
from quercus.trees.ask.strategies.committee import Committee

NEAREST = '''
"""A learner of another package."""

from typing import ClassVar

from quercus.specification.parameter import parameter, parametric
from quercus.trees import E2m, Learner


@parametric
class Nearest(Learner):
    """Classes of the nearest rows.

    Rows are near if {their} values are.
    """

    name: ClassVar[str] = "nearest"
    rows: int = parameter(3, "Number of rows", 1, 100)
    trees: int = parameter(4, "Number of trees", 1, 9)
    norm: str = parameter("city", "Distance", choices=("city", "euclid"))
    reach: float | None = parameter(None, "Greatest distance", 0, meaning_of_none="any distance")
    scaled: bool = parameter(True, "Divide by the range")
    seed: int = parameter(0, "Seed", 0, 2**31)

    def fit(self, table, *, executor=None):
        return E2m(self.rows).fit(table)
'''


def test_the_estimators_are_current() -> None:
    assert GENERATED.read_text() == generated_module(OURS, OUR_DOC, OUR_HEADER), "run `make estimators`"


def test_every_learner_has_an_estimator() -> None:
    made = {type(getattr(estimators, each.name)()._make_learner()) for each in OURS}
    assert made == set(learner_classes().values())
    assert {each.name for each in OURS} == set(estimators.__all__)


def test_a_strategy_is_named_or_given_and_survives_a_clone() -> None:
    asking = Committee(cover=0.2)
    tree = clone(estimators.ActiveBeliefTreeClassifier(strategy=asking, classes=["a", "b"]))
    assert tree.get_params()["strategy"] == asking
    X, y = [[float(k), float(k % 3)] for k in range(9)], ["a", "b", *[None] * 7]
    by_cover = tree.query(X, y, batch_size=3).tolist()
    by_doubt = tree.set_params(strategy="committee").query(X, y, batch_size=3).tolist()
    assert by_cover != by_doubt
    assert by_doubt == tree.set_params(strategy=Committee()).query(X, y, batch_size=3).tolist()
    with pytest.raises(InvalidInput, match="strategy: is 'margin', must be one of covering-committee, "):
        tree.set_params(strategy="margin").query(X, y)
    with pytest.raises(InvalidInput, match="strategy: is 7, must be a strategy or its name"):
        tree.set_params(strategy=7).query(X, y)


def test_the_base_of_a_forest_is_an_estimator_of_a_tree() -> None:
    forest = clone(estimators.EvidentialForestClassifier(estimators.C45Classifier(min_branch=3)))
    assert forest.set_params(base__min_branch=4)._make_learner().base == C45(min_branch=4)
    for base in (forest, estimators.ActiveBeliefTreeClassifier(), "c45"):
        with pytest.raises(InvalidInput, match=r"base: is .*, must be an estimator of a tree"):
            estimators.EvidentialForestClassifier(base)._make_learner()


@pytest.mark.parametrize("name", [each.name for each in OURS])
def test_every_parameter_reaches_the_learner(name: str) -> None:
    """Each is set alone, to a value that is not its default, and is found in the learner."""
    kind = getattr(estimators, name)
    default = kind()._make_learner()
    for field in fields(default):
        declared = field.metadata.get("parameter")
        if declared is None or field.name == "seed":
            continue
        allowed = [*declared.choices, not declared.default, 0.25, 0.5, 1, 2, 3]
        for value in allowed:
            try:
                other = declared.check(value) != declared.default
            except InvalidInput:
                continue
            if other:
                break
        name = RENAMED.get(field.name, field.name)
        chosen = clone(kind(**{name: value}))
        assert getattr(chosen._make_learner(), field.name) == value != getattr(default, field.name)
        assert chosen.get_params()[name] == value


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "far_package.py").write_text(NEAREST)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_the_learner_of_another_package_gets_one(package: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "quercus.estimators.generate",
        "far_package:Nearest",
        "NearestClassifier",
    ]
    done = subprocess.run(command, cwd=package, capture_output=True, text=True, check=True, timeout=120)
    ruff = [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length", "110", "-"]
    tidy = subprocess.run(ruff, input=done.stdout, capture_output=True, text=True, check=True)
    assert tidy.stdout == done.stdout
    (package / "far_estimators.py").write_text(done.stdout)
    kind = import_module("far_estimators").NearestClassifier
    assert issubclass(kind, TableClassifier)
    own = {each: value.default for each, value in inspect.signature(kind).parameters.items()}
    assert own == {
        "rows": 3, "n_estimators": 4, "norm": "city", "reach": None, "scaled": True, "random_state": None,
        "classes": None, "categorical_features": "from_dtype",
    }  # fmt: skip
    learner = clone(kind(n_estimators=7, reach=0.5, random_state=1))._make_learner()
    assert isinstance(learner, Learner)
    assert (learner.trees, learner.reach, learner.rows) == (7, 0.5, 3)  # type: ignore[attr-defined]
    assert learner.seed == clone(kind(random_state=1))._make_learner().seed
    said = inspect.cleandoc(kind.__doc__)
    assert said.startswith(
        "Classes of the nearest rows.\n\nRows are near if {their} values are.\n\nParameters\n"
    )
    assert "n_estimators\n    Number of trees; must be a whole number in [1, 9]. Default: 4.\n" in said
    assert "reach\n    Greatest distance; must lie in [0, inf]. None: any distance. Default: None.\n" in said
    X, y = [["sun", 1], ["rain", 1], ["rain", 5]] * 3, ["no", "no", "yes"] * 3
    search = GridSearchCV(kind(), {"rows": [1, 9]}, cv=2).fit(X, y)  # which clones by get_params
    assert search.best_params_ == {"rows": 1}
    assert search.predict([["rain", 4], ["rain", 1]]).tolist() == ["yes", "no"]


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("far_package:Furthest", "the module far_package has no 'Furthest'"),
        ("no_such_package:Nearest", "cannot be imported, must be module:class: No module named"),
        ("Nearest", "must be module:class"),
        ("far_package:E2m", ""),
        ("far_taken:Made", "the field 'made' of Made must be declared by `parameter(...)`, and is not"),
        ("quercus.trees:Forest", ""),
        ("quercus.trees:Table", "is not a subclass of quercus.trees.Learner"),
        ("far_taken:Scoring", "has a parameter 'score', which is reserved in estimators: rename it"),
        ("far_taken:Bare", "is not `parametric`"),
        ("far_taken:Open", "the parameter 'rows' of Open must have a default, and has none"),
    ],
)
def test_what_cannot_have_an_estimator_is_told(
    package: Path, capsys: pytest.CaptureFixture[str], place: str, says: str
) -> None:
    taken = NEAREST.replace("Nearest", "Scoring").replace("scaled", "score")
    bare = NEAREST[NEAREST.index("@parametric") :].replace("Nearest", "Bare").replace("@parametric", "")
    open_ = NEAREST[NEAREST.index("@parametric") :].replace("Nearest", "Open").replace("(3,", "(MISSING,")
    made = (
        open_.replace("Open", "Made")
        .replace("(MISSING,", "(3,")
        .replace("rows: int", "made: int = 7\n    rows: int")
    )
    (package / "far_taken.py").write_text(
        f"{taken}\n{bare}\nfrom dataclasses import MISSING\n{open_}\n{made}"
    )
    sys.modules.pop("far_taken", None)
    said = main([place, "SomeClassifier"])
    if not says:
        assert said is None
        ast.parse(capsys.readouterr().out)
        return
    assert says in (said or "")
    assert capsys.readouterr().out == ""


def test_words_of_a_declaration_cannot_end_the_source(package: Path) -> None:
    """A default is a literal, and a description no end of the docstring."""
    text = NEAREST.replace('"Distance"', 'r\'Distance """ \\alpha\'').replace("{their}", r"\\sum")
    (package / "far_words.py").write_text(text)
    source = generated_module([Estimator("Words", "far_words:Nearest")], "Words.", "# header")
    doc = ast.get_docstring(next(each for each in ast.parse(source).body if isinstance(each, ast.ClassDef)))
    assert doc is not None
    assert "near if \\sum values" in doc
    assert 'Distance """ \\alpha; must be' in doc
