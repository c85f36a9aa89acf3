"""Classification goes on during growth, and each answer is that of the version it names."""

import threading

import numpy as np
from support.published import published_model

from quercus.client import Classifications, Client, Numeric, Tree

CLASSES = ("low", "middle", "high")
EDGES = (0.25, 0.5, 0.75)
ROWS, BATCH, STAGES = 600, 20, 5


def routed(tree: Tree, row: np.ndarray) -> int:
    """The node in which a row ends, found by names alone."""
    node = tree.root
    while node.attribute is not None:
        k = int(node.attribute)
        (branches,) = [each.branches for each in tree.attributes if each.attribute == node.attribute]
        name = branches[int(np.searchsorted(EDGES, row[k], side="right"))]
        below = [child for child in node.children if tree.nodes[child].branch == name]
        if not below:
            break
        node = tree.nodes[below[0]]
    return node.index


def assert_as_named(answer: Classifications, tree: Tree, rows: np.ndarray) -> None:
    assert (answer.version, answer.as_of) == (tree.version, tree.as_of)
    ends = [routed(tree, row) for row in rows]
    assert answer.nodes.tolist() == ends
    assert answer.labels == [tree.nodes[end].class_name for end in ends]
    assert answer.theta.tolist() == [list(tree.nodes[end].theta) for end in ends]


class Pushing(threading.Thread):
    """Pushes row after row, and from time to time waits until an answer came from a tree of all that."""

    def __init__(self, address: str, model: str, rows: np.ndarray, labels: list[str]) -> None:
        super().__init__()
        self._address, self._model, self._rows, self._labels = address, model, rows, labels
        self._seen, self._as_of = threading.Condition(), 0
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            with Client(self._address) as client:
                for first in range(0, ROWS, BATCH):
                    part = slice(first, first + BATCH)
                    ids = [f"row-{i}" for i in range(first, first + BATCH)]
                    report = client.push(self._model, self._rows[part], self._labels[part], ids)
                    if (first + BATCH) % (ROWS // STAGES) == 0:
                        self._await(report.committed_sequence)
        except BaseException as error:
            self.failure = error

    def _await(self, sequence: int) -> None:
        with self._seen:
            assert self._seen.wait_for(lambda: self._as_of >= sequence, 60)

    def saw(self, as_of: int) -> None:
        with self._seen:
            self._as_of = as_of
            self._seen.notify()


def test_each_answer_is_that_of_the_version_it_names(service: str, client: Client, model: str) -> None:
    rng = np.random.default_rng(3)
    rows, tests = rng.random((ROWS, 3)), rng.random((40, 3))
    labels = [CLASSES[min(int(2 * (row[0] + row[1])), 2)] for row in rows]
    attributes = [Numeric(str(k), edges=EDGES) for k in range(3)]
    client.create_model(model, published_model(attributes, CLASSES, budget=0))
    client.wait_grown(model, 0)
    answers = [client.classify(model, tests)]
    pushing = Pushing(service, model, rows, labels)
    pushing.start()
    while pushing.is_alive():
        answers.append(client.classify(model, tests))
        pushing.saw(answers[-1].as_of)
    pushing.join()
    assert pushing.failure is None
    versions = [answer.version for answer in answers]
    assert versions == sorted(versions)
    assert answers[-1].as_of == ROWS
    newest = {answer.version: answer for answer in answers}
    assert len(newest) > STAGES
    for version, answer in newest.items():
        assert_as_named(answer, client.tree(model, version), tests)
