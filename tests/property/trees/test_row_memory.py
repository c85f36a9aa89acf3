"""A tree with a memory is the tree from scratch of the last labelled rows and the unlabelled ones, for any history."""

from dataclasses import replace

import numpy as np
import pytest
from support.published import published_tree

from quercus.belief.contour import is_vacuous
from quercus.belief.errors import InvalidInput
from quercus.belief.frame import Frame
from quercus.specification.attributes import Nominal, Numeric
from quercus.specification.model import Specification
from quercus.trees.ask.query import QueryPosition
from quercus.trees.growth.stream import (
    Answered,
    Corrected,
    Event,
    GrowthState,
    Observed,
    Refused,
    Respecified,
    grow,
)
from quercus.trees.tree.node import Node

SEEDS = range(12)
FRAME = Frame(("x", "y", "z"))
ATTRIBUTES = (
    Nominal("a", ("p", "q")),
    Numeric("b", edges=(0.3, 0.6)),
    Numeric("c", edges=(0.2, 0.5, 0.8), cuts=3),
)
ASKED = QueryPosition((), None, None, ())


class Log:
    """Events of a random log, and by the plainest means what is known of each row and when it was first labelled."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.values = np.empty((0, 3))
        self.known: list[np.ndarray] = []
        self.pushed: list[np.ndarray] = []
        self.labelled: list[int] = []
        self.closed: set[int] = set()

    def event(self) -> Event:
        if not self.known or self.rng.random() < 0.3:
            return self._push()
        row = int(self.rng.integers(len(self.known)))
        what = self.rng.random()
        if what < 0.1:
            self.closed.add(row)
            return Refused(row, ASKED)
        if what < 0.3:
            self.closed.discard(row)
            self._learn(row, self.pushed[row])
            return Corrected(row, None)
        label = np.eye(3)[self.rng.integers(3)]
        self.closed.add(row)
        self._learn(row, label)
        return Answered(row, label, 1.0, ASKED)

    def _push(self) -> Observed:
        count = int(self.rng.integers(1, 12))
        values = np.column_stack([self.rng.integers(0, 3, count), self.rng.random((count, 2))])
        values[self.rng.random(count) < 0.1, 1] = np.nan
        labels = np.eye(3)[(values[:, 2] * 3).astype(int)]
        labels[self.rng.random(count) < 0.3] = 1.0
        labels[self.rng.random(count) < 0.2, 1] = 1.0
        self.values = np.concatenate([self.values, values])
        for label in labels:
            self.pushed.append(label)
            self.known.append(np.ones(3))
            self._learn(len(self.known) - 1, label)
        return Observed(values, labels)

    def _learn(self, row: int, label: np.ndarray) -> None:
        self.known[row] = label
        if is_vacuous(label):
            self.labelled = [each for each in self.labelled if each != row]
        elif row not in self.labelled:
            self.labelled.append(row)

    def from_scratch(self, spec: Specification, memory: int) -> tuple[GrowthState, list[int]]:
        """A tree without a memory of what one with it remembers."""
        forgotten = set(self.labelled[:-memory])
        rows = [row for row in range(len(self.known)) if row not in forgotten]
        state = grow(
            GrowthState.initial(replace(spec, memory_rows=None)),
            [Observed(self.values[rows], np.array([self.known[row] for row in rows]))],
        )
        return grow(state, [Refused(k, ASKED) for k, row in enumerate(rows) if row in self.closed]), rows


def assert_same(found: Node, expected: Node) -> None:
    """The same decisions, and the same numbers but for what is left of rounding."""
    nodes, others = ([node for node, _, _ in each.preorder()] for each in (found, expected))
    for one, other in zip(nodes, others, strict=True):
        for name in ("attribute", "count", "klass", "stop", "undecided"):
            assert getattr(one, name) == getattr(other, name)
        for name in ("theta", "belief", "plausibility"):
            assert getattr(one, name) == pytest.approx(getattr(other, name), abs=1e-9)
        assert list(one.children) == list(other.children)
        assert one.intervals.keys() == other.intervals.keys()
        for k, ends in one.intervals.items():
            assert ends == pytest.approx(other.intervals[k], abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_it_is_the_tree_of_what_it_remembers(seed: int) -> None:
    rng, log = np.random.default_rng([seed, 1]), Log(seed)
    memory = int(rng.choice([1, 3, 10, 40]))
    spec = published_tree(
        ATTRIBUTES,
        FRAME,
        budget=10_000,
        alpha=float(rng.choice([0.5, 0.8, 1.0])),
        split_significance=float(rng.choice([0.0, 10.0])),
        strategy=str(rng.choice(["published", "leaf-width", "covering-committee"])),
        memory_rows=memory,
    )
    looked_at, waiting = GrowthState.initial(spec), list[Event]()
    for _ in range(60):
        waiting.append(log.event())
        if rng.random() < 0.3:
            looked_at, waiting = grow(looked_at, waiting), []
            expected, rows = log.from_scratch(spec, memory)
            assert_same(looked_at.tree, expected.tree)
            found = [query.instance for query in looked_at.agenda(5)]
            if spec.strategy.name != "published":  # whose rounds go on from the last answer
                assert found == [rows[query.instance] for query in expected.agenda(5)]
            assert not {row for row in found if row in log.closed}
    assert len(log.labelled) > memory or memory == 40  # something was forgotten
    assert looked_at.instance_count <= len(log.known)


def test_the_memory_of_a_model_cannot_change() -> None:
    spec = published_tree(ATTRIBUTES, FRAME, memory_rows=5)
    with pytest.raises(InvalidInput, match="memory_rows: cannot change once the model exists"):
        grow(GrowthState.initial(spec), [Respecified(replace(spec, memory_rows=6))])
