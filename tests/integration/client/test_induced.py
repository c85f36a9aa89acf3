"""The result of `quercus induce` is, byte for byte, what a live server grows of the same rows, labels and answers."""

from contextlib import closing
from typing import Any

import numpy as np
import pytest
from integration.client.serving import Serving
from integration.client.test_every_learner import CLASSES, FRAME, evidence

from quercus.belief.label import class_set, precise
from quercus.cli.offline_model import checked_specification, grow_offline
from quercus.client import Client, Nominal, Numeric, Specification
from quercus.specification.learners import learner_classes
from quercus.specification.parameter import parameters_of
from quercus.storage import Store
from quercus.trees.learners.cells import UncertainValues

FEWER = {"trees": 3, "folds": 2}
"""Parameters of learners that are slow by default."""
COLOURS = ("red", "green", "blue", "grey")
ANSWERS = 4


def answer_about(row: int) -> str | set[str] | None:
    """A class, a set, or a refusal, as the number of the row says."""
    name = CLASSES[row % 3]
    return [name, {name, CLASSES[(row + 1) % 3]}, None, name][row % 4]


@pytest.mark.parametrize("learner", learner_classes())
def test_what_is_induced_is_what_is_served(serving: Serving, client: Client, name: str, learner: str) -> None:
    own = {each.name for each in parameters_of(learner_classes()[learner])}
    given = Specification(
        [Nominal("colour", COLOURS), Numeric("length", cuts=5)],
        CLASSES,
        budget=ANSWERS,
        warmup_rows=30,  # fewer than there are rows
        learner={"name": learner, **{key: value for key, value in FEWER.items() if key in own}},
    )
    rows, labels, known = evidence()
    client.create_model(name, given)
    client.push(name, rows[:20], labels[:20], [str(row) for row in range(20)])
    client.push(name, rows[20:], labels[20:], [str(row) for row in range(20, len(rows))])
    client.wait_grown(name)
    asked = []
    with closing(client.queries(name, "ann", idle_s=0.5)) as queries:
        for query in queries:
            row = int(query.instance)
            asked.append((row, [list(step) for step in query.reason.path]))
            answer = answer_about(row)
            if answer is None:
                client.refuse(query)
            else:
                client.answer(query, answer)
    client.wait_grown(name)

    def oracle(row: int) -> Any:
        said = answer_about(row)
        if said is None:
            return None
        return precise(FRAME, said) if isinstance(said, str) else class_set(FRAME, sorted(said))

    values = [
        [np.nan if x is None else COLOURS.index(x) if k == 0 else x for k, x in enumerate(row)]
        for row in rows
    ]
    cells = UncertainValues(np.array(values, dtype=float))
    induced = grow_offline(checked_specification(given), cells, known, oracle)
    assert [(each["row"], each["path"]) for each in induced.queries] == asked
    assert len(induced.answered) == ANSWERS
    with Store.open(serving.store) as store:
        assert store.snapshot(name).data == induced.grown.encode()
    served = client.classify(name, rows)
    assert list(served.labels) == induced.predicted_classes(cells)
