"""The service grows, publishes and asks with the test that splits must pass (theory §12)."""

import pytest
from support.published import published_model

from quercus.client import Client, InvalidArgument, Nominal

VALUES = [Nominal("X", "ab"), Nominal("Y", "cd")]


def test_splits_stand_and_fall_with_the_level(client: Client, model: str) -> None:
    """Eight rows told apart by X at p = .00087, of two candidates; two more have no label."""
    given = published_model(VALUES, ["o", "s"], budget=2, split_significance=0.001, strategy="published")
    assert client.create_model(model, given).specification.split_significance == 0.001
    rows = [{"X": "ab"[i // 4], "Y": "cd"[i % 2]} for i in range(8)] + [{"X": "a", "Y": "c"}] * 2
    client.push(model, rows, labels=[*"oooossss", None, None])
    client.wait_grown(model)
    root = client.tree(model).nodes[0]
    assert (root.attribute, root.stop, root.undecided) == (None, "not_significant", True)
    reason = client.lease(model, "ann", wait_s=60.0).queries[0].reason
    assert (tuple(reason.path), [rival.name for rival in reason.rivals]) == ((), ["X"])
    client.update_model(model, split_significance=0.01)
    client.wait_grown(model)
    root = client.tree(model).nodes[0]
    assert (root.attribute, root.undecided) == ("X", False)


def test_a_level_out_of_bounds_is_refused(client: Client, model: str) -> None:
    with pytest.raises(InvalidArgument, match=r"split_significance: is 1001\.0, must lie in \[0, 1000\]"):
        client.create_model(model, published_model(VALUES, ["o", "s"], split_significance=1001.0))
