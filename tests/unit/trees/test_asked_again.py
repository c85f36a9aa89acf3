"""A deeper answer may make an ancestor undecided: then it is asked at again, unlike in the paper's recursion."""

import numpy as np

from quercus.trees.growth.abc45 import induce
from quercus.trees.tree.node import Node

CODES = [[0, 1, 1], [1, 1, 0], [1, 1, 1], [1, 1, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [0, 1, 0], [0, 0, 1]]
TRUTH = [0, 1, 0, 1, 1, 1, 0, 1, 1]
TOLD = {1, 2, 6, 8}  # rows whose class is known at the start
SAID = np.array([np.eye(2)[klass] if row in TOLD else np.ones(2) for row, klass in enumerate(TRUTH)])
C, BELOW = 2, ((2, 1),)  # the third attribute, and the root's branch where it is 1


def after(answers: int) -> tuple[Node, list[tuple]]:
    found = induce(
        CODES, [2, 2, 2], SAID, alpha=0.9, budget=answers, oracle=lambda row: np.eye(2)[TRUTH[row]]
    )
    return found.tree, [(query.instance, query.path) for query in found.queries]


def test_a_deeper_answer_reopens_the_root() -> None:
    before, asked = after(0)
    assert asked == []
    assert (before.attribute, before.undecided) == (C, False)
    assert before.children[1].undecided
    reopened, asked = after(1)
    assert asked == [(0, BELOW)]
    assert reopened.undecided
    _, asked = after(2)
    assert asked[1][1] == ()


def test_it_follows_from_the_evidence_alone() -> None:
    """A tree that starts with the answer's label finds the same undecided root and asks the same query there."""
    _, asked = after(2)
    known = SAID.copy()
    known[0] = np.eye(2)[TRUTH[0]]
    found = induce(CODES, [2, 2, 2], known, alpha=0.9, budget=1, oracle=lambda row: np.eye(2)[TRUTH[row]])
    assert [(query.instance, query.path) for query in found.queries] == [asked[1]]
