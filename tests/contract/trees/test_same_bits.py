"""The same numbers: on one machine to the last bit, on other processors of its kind the same decisions and 1e-9.

A process that is told to use fewer extensions of its processor stands for an older machine.
"""

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import every_number
from support.checkout import ROOT, copy_checkout
from support.every_number import (
    ATTRIBUTES,
    FORESTS,
    LEARNERS,
    MANY,
    POLYTOPES,
    labels,
    rows,
    uncertain,
    written,
)
from support.published import published_tree

from quercus.belief.frame import Frame
from quercus.specification.learners import learner_classes
from quercus.trees import ActiveForest
from quercus.trees.growth.stream import GrowthState, Observed, grow
from quercus.trees.learners.learner import fit
from quercus.trees.learners.predicting import TreeModel
from quercus.trees.learners.predictions import Predictions
from quercus.trees.learners.table import Table
from quercus.trees.memory_forest.learner import forest_of
from quercus.trees.memory_forest.publishing import served_forest

Results = dict[str, dict[str, Any]]
NEAR = 1e-9


@pytest.fixture(scope="module")
def here() -> Results:
    return {name: written(said) for name, said in every_number.results().items()}


def elsewhere(**environment: str) -> Results:
    """The results of a process with some more variables."""
    done = subprocess.run(
        [sys.executable, every_number.__file__],
        env=os.environ | environment, capture_output=True, text=True, check=True, timeout=110,
    )  # fmt: skip
    return {result.pop("name"): result for result in map(json.loads, done.stdout.splitlines())}


def numbers(result: dict[str, Any]) -> np.ndarray:
    return np.array([float.fromhex(number) for number in result["numbers"]])


def assert_near(found: Results, here: Results) -> None:
    assert found.keys() == here.keys()
    for name, result in here.items():
        assert found[name]["decided"] == result["decided"], name
        np.testing.assert_allclose(numbers(found[name]), numbers(result), rtol=0, atol=NEAR, err_msg=name)


def test_every_learner_is_compared() -> None:
    names = {learner.name for learner in (LEARNERS | FORESTS).values()}
    assert names | {ActiveForest.name} == learner_classes().keys()


def test_another_blas_and_fewer_threads_change_no_bit(here: Results) -> None:
    found = elsewhere(OPENBLAS_CORETYPE="Nehalem", OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
    assert_near({POLYTOPES: found.pop(POLYTOPES)}, {POLYTOPES: here[POLYTOPES]})
    assert [name for name in found if found[name] != here[name]] == []
    assert found.keys() | {POLYTOPES} == here.keys()


def test_a_processor_without_vector_extensions_decides_the_same(here: Results) -> None:
    extensions = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    if not extensions:
        pytest.skip("NumPy uses no extension of this processor that it could do without")
    found = elsewhere(
        NPY_DISABLE_CPU_FEATURES=" ".join(extensions),
        GLIBC_TUNABLES="glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX512F",
    )
    assert_near(found, here)


@pytest.mark.release
@pytest.mark.timeout(900)  # the build takes over a minute of CPU time
def test_the_compiler_from_pypi_changes_no_bit(here: Results, tmp_path: Path) -> None:
    """A machine without a C++ compiler builds the kernels with the package ziglang: 90 MB to fetch, 400 MB unpacked."""
    checkout, packages = copy_checkout(tmp_path / "checkout"), tmp_path / "packages"
    for built in (checkout / "kernels").glob("compiled*"):
        built.unlink()
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--target", str(packages), "ziglang>=0.15"], check=True)
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=checkout,
        env={"PATH": "/nowhere", "PYTHONPATH": str(packages), "HOME": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "zig-c++\nQuercus: compiled " in done.stdout
    assert "warning" not in done.stderr
    code = "from quercus.kernels import compiled; print(compiled.__file__)"
    found = {"PYTHONPATH": str(checkout / "src")}
    used = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | found, capture_output=True, text=True, check=True
    )
    assert (checkout / "src") in Path(used.stdout).parents
    assert elsewhere(**found) == here


# one row alone, some rows, all rows

BATCHED = 60


def models(size: int) -> Iterator[tuple[str, Any]]:
    values, classes = rows(every_number.LABELLED, size, seed=4)
    contours = labels(classes, size)
    table = Table.of_contours(values, ATTRIBUTES, contours)
    for name, learner in (LEARNERS | FORESTS).items():
        yield name, fit(learner, table)
    frame = Frame(tuple(f"c{c}" for c in range(size)))
    state = grow(GrowthState.initial(published_tree(ATTRIBUTES, frame)), [Observed(values, contours)])
    forest = forest_of(ActiveForest(9), ATTRIBUTES, size)
    forest.observe(values, contours)
    yield "active forest", forest
    yield "served forest", served_forest(forest, TreeModel.of(state.tree, ATTRIBUTES))


def bits(said: Predictions) -> list[tuple[object, ...]]:
    """All predictions of each row, digit for digit."""
    masses = said.masses or [None] * len(said)
    columns = (said.theta, said.belief, said.plausibility, said.classes, said.klass)
    return [(*(column[row].tobytes() for column in columns), masses[row]) for row in range(len(said))]


@pytest.mark.parametrize("size", [2, 3, MANY])
def test_a_row_has_the_same_bits_in_every_batch(size: int) -> None:
    asked, _ = rows(BATCHED, seed=9)
    cuts = [0, *range(1, 25), 31, 38, BATCHED]
    for name, model in models(size):
        whole = bits(model.predict(asked))
        parts = [bits(model.predict(asked[a:b])) for a, b in pairwise(cuts)]
        assert [row for part in parts for row in part] == whole, name
        if name != "active forest":  # it takes known values
            alone = [bits(model.predict_rows([row]))[0] for row in uncertain()]
            assert alone == bits(model.predict_rows(uncertain())), name


# BLAS and LAPACK add up in an order of their own

LINEAR = {"dot", "vdot", "inner", "matmul", "tensordot", "linalg"}
EXPECTED = {"trees/likelihood/maximiser.py", "trees/likelihood/solver/maximisers.py"}
"""Ranks, and the polytope of maximisers (theory §2.11)."""


def test_no_learner_leaves_its_sums_to_blas() -> None:
    found = set()
    for folder in ("belief", "labelling", "specification", "trees"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.MatMult) or (
                    isinstance(node, ast.Attribute)
                    and isinstance(node.value, ast.Name)
                    and (node.value.id, node.attr) in {("np", name) for name in LINEAR}
                ):
                    found.add(str(path.relative_to(ROOT)))
    assert found == EXPECTED
