"""The memory of the grower for a model: its rows and trees, without intermediate results."""

import numpy as np
import pytest
from support.held_bytes import held_bytes
from support.published import published_tree

from quercus.belief.codec import encode_sets
from quercus.belief.frame import Frame
from quercus.server.growth.engines import TreeEngine, tree_engine
from quercus.specification.attributes import Nominal
from quercus.specification.model import Specification
from quercus.storage.records import InstanceColumns
from quercus.trees import ActiveForest
from quercus.trees.likelihood import cell_cache

ATTRIBUTES = tuple(Nominal(f"x{k}", ("a", "b", "c")) for k in range(4))
FRAME = Frame(("o", "s", "x"))
MODELS = {
    "forest": Specification(ATTRIBUTES, FRAME, alpha=0.9, min_instances=20, learner=ActiveForest(trees=12)),
    "tree": published_tree(ATTRIBUTES, FRAME, alpha=0.9, min_instances=20),
}
BATCH_ROWS, WARM_UP, MORE = 5, 300, 700
BYTES_A_ROW = 300
"""Columns with room to grow, and a place in each tree of the forest with a memory so long."""

MOST_BYTES = 4_000_000
"""Most bytes of a thousand rows, with all tables of fixed size: a process may hold hundreds of such models."""


def grow(engine: TreeEngine, first: int, rows: int, chance: np.random.Generator) -> None:
    """Have an engine take so many rows, half of them told, with a look at the trees every five."""
    for begin in range(first, first + rows, BATCH_ROWS):
        codes = chance.integers(0, 3, (BATCH_ROWS, len(ATTRIBUTES)))
        precise = 1 << ((codes[:, 0] + 2 * codes[:, 1] * codes[:, 2]) % 3)
        masks = np.where(chance.random(BATCH_ROWS) < 0.25, precise, chance.choice((3, 7, 7), BATCH_ROWS))
        engine.fold_events(
            [InstanceColumns(1 + begin, codes.astype(float), encode_sets(masks.astype(np.uint64)))]
        )
        engine.grown_trees({})


@pytest.mark.parametrize("kind", ["tree", pytest.param("forest", marks=pytest.mark.slow)])
def test_a_model_takes_what_its_rows_take(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks leave nothing that grows with them: neither solved cells nor the members of earlier looks."""
    monkeypatch.setattr(cell_cache, "SPARED_BYTES", 20_000)  # what the last looks have solved hardly weighs
    engine, chance = tree_engine(MODELS[kind]), np.random.default_rng(1)
    grow(engine, 0, WARM_UP, chance)
    before = held_bytes(engine)
    grow(engine, WARM_UP, MORE, chance)
    assert (held_bytes(engine) - before) / MORE < BYTES_A_ROW
    assert held_bytes(engine) < MOST_BYTES


def test_of_the_rows_that_set_the_bins_alone_the_values_are_held() -> None:
    """Not of all rows that came with them in one part of the log: of a tree the codes are enough."""
    engine, rows = tree_engine(MODELS["tree"]), 20_000
    values = np.random.default_rng(1).integers(0, 3, (rows, len(ATTRIBUTES))).astype(float)
    engine.fold_events([InstanceColumns(1, values, encode_sets(np.full(rows, 7, np.uint64)))])
    del values
    assert held_bytes(engine) < rows * (len(ATTRIBUTES) + 9 + 8) * 5 // 4
