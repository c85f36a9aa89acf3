"""A model that learns by the forest of many memories, on a live server: it asks, learns, classifies, and survives."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quercus.client import Client, CoverageBasis, InvalidArgument, Numeric, Specification
from quercus.specification.reasons import SIMILAR_ROWS, Shares
from quercus.trees import Doubt, UncertainValues
from quercus.trees.memory_forest.forest import MemoryForest

CLASSES = ("low", "high")
LEARNER = {"name": "active-forest", "trees": 12, "seed": 2}


@pytest.mark.slow
def test_it_asks_and_learns_through_the_death_of_its_grower(
    start_live: Any, tools: Any, tmp_path: Path
) -> None:
    """The served forest equals, in the end, the forest grown from scratch from the same rows and answers."""
    live = start_live(tmp_path / "store.db")
    rng = np.random.default_rng(8)
    rows = rng.normal(size=(60, 2))
    truth = (rows.sum(axis=1) > 0).astype(int)
    labelled: list[int] = []
    with Client(live.server.address) as client:
        specification = Specification([Numeric("x"), Numeric("y")], CLASSES, budget=30, learner=LEARNER)
        held = client.create_model("m", specification).specification
        assert held.learner == LEARNER
        client.push("m", rows[:40].tolist(), ids=[str(i) for i in range(40)])
        for step in range(8):
            if step == 4:
                pid = live.server.supervisor.pid
                client.push("m", rows[40:].tolist(), ids=[str(i) for i in range(40, 60)])
                tools.kill(pid, tools.signals.SIGKILL)
            client.wait_grown("m")
            (query,) = client.lease("m", "ann", wait_s=30.0).queries
            assert query.reason.strategy == "margin"
            estimate, similar = query.reason.fact("estimate"), query.reason.fact(SIMILAR_ROWS)
            assert isinstance(estimate, Shares)
            assert sum(estimate.theta) > 0.999
            assert isinstance(similar, int)
            assert similar >= 0
            assert (query.reason.fact("entropy of the leaf, in bits") is None) == bool(query.reason.rivals)
            row = int(query.instance)
            client.answer(query, CLASSES[truth[row]])
            labelled.append(row)
        client.wait_grown("m")
        found = client.classify("m", rows.tolist())
        tree = client.tree("m")
    assert len(set(labelled)) == 8
    assert (tree.learner, len(tree.members)) == ("active-forest", 1)
    expected = MemoryForest(np.array([False, False]), 2, trees=12, seed=2, level=0.75)
    expected.observe(rows[:40], np.ones((40, 2)))
    for row in labelled[:4]:
        expected.replace_contour(row, np.eye(2)[truth[row]])
    expected.observe(rows[40:], np.ones((20, 2)))
    for row in labelled[4:]:
        expected.replace_contour(row, np.eye(2)[truth[row]])
    said = expected.predict(rows)
    np.testing.assert_allclose(found.theta, said.theta, atol=1e-12)
    np.testing.assert_allclose(found.belief, said.belief, atol=1e-12)
    np.testing.assert_allclose(found.plausibility, said.plausibility, atol=1e-12)


def test_prediction_sets_of_stated_coverage(live: Any) -> None:
    """They are those of the forest of the same log: by rows that came labelled, and by rows that were asked about."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(160, 2))
    truth = (rows.sum(axis=1) + rng.normal(size=160) > 0).astype(int)
    expected = MemoryForest(np.array([False, False]), 2, trees=12, seed=2, level=0.75)
    with Client(live.server.address) as client:
        specification = Specification([Numeric("x"), Numeric("y")], CLASSES, budget=60, learner=LEARNER)
        client.create_model("sets", specification)
        client.push("sets", rows[:40].tolist(), ids=[str(i) for i in range(40)])
        expected.observe(rows[:40], np.ones((40, 2)))
        client.wait_grown("sets")
        none = client.classify("sets", rows[:3].tolist(), coverage=0.9)
        assert none.prediction_sets is not None
        assert (none.prediction_sets.scores, none.prediction_sets.basis) == (0, CoverageBasis.NONE)
        assert none[0].prediction_set == CLASSES
        for _ in range(10):
            (query,) = client.lease("sets", "ann", wait_s=30.0).queries
            row = int(query.instance)
            client.answer(query, CLASSES[truth[row]])
            expected.replace_contour(row, np.eye(2)[truth[row]], asked=True)
            client.wait_grown("sets")
        asked = client.classify("sets", rows.tolist(), coverage=0.8)
        assert asked.prediction_sets is not None
        assert (asked.prediction_sets.scores, asked.prediction_sets.basis) == (10, CoverageBasis.WEIGHTED)
        sets = expected.calibration().sets(asked.theta, 0.8)
        assert asked.prediction_sets.class_sets.tolist() == (sets @ [1, 2]).tolist()
        client.push("sets", rows[40:].tolist(), [CLASSES[k] for k in truth[40:]])
        expected.observe(rows[40:], np.eye(2)[truth[40:]])
        client.wait_grown("sets")
        found = client.classify("sets", rows.tolist(), coverage=0.9, want_doubt=True)
        plain = client.classify("sets", rows[:1].tolist())[0]
        assert (plain.prediction_set, plain.overlap, plain.ignorance) == (None, None, None)
        with pytest.raises(InvalidArgument, match=r"coverage: is 1, must lie in \(0, 1\)"):
            client.classify("sets", rows[:1].tolist(), coverage=1.0)
    assert found.overlap is not None
    assert found.ignorance is not None
    doubt = Doubt.of(found.theta, expected.overlaps(UncertainValues(rows)))
    np.testing.assert_allclose(found.overlap, doubt.overlap, atol=1e-12)
    np.testing.assert_allclose(found.ignorance, doubt.ignorance, atol=1e-12)
    assert (found[5].overlap, found[5].ignorance) == (found.overlap[5], found.ignorance[5])
    assert (found.overlap > 0.01).any()
    assert (found.ignorance > 0.01).any()
    assert found.prediction_sets is not None
    assert (found.prediction_sets.coverage, found.prediction_sets.basis) == (0.9, CoverageBasis.LABELLED)
    scored = expected.calibration()
    assert found.prediction_sets.scores == len(scored.scores) == 120
    sets = scored.sets(found.theta, 0.9)
    assert found.prediction_sets.class_sets.tolist() == (sets @ [1, 2]).tolist()
    assert [found[0].prediction_set] == [tuple(np.array(CLASSES)[sets[0]])]
