"""Rows of known class beside the row of a query, and what a model withholds because it may bias."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.published import published_model

from quercus.belief.codec import encode_sets
from quercus.client import (
    Client,
    FailedPrecondition,
    InvalidArgument,
    Nominal,
    Numeric,
    Presentation,
    Query,
)
from quercus.storage import NewValue, Store, file_url

SPECIFICATION = published_model(
    [Nominal("hue", ["red", "blue"]), Numeric("size", edges=[5.0])],
    ["o", "s"],
    alpha=1.0,
    budget=5,
    strategy="committee",
)


def leased(client: Client, model: str) -> Query:
    """Rows of size 0 to 9 are o below 5 and s above; one of size 2 is not known, and asked about."""
    client.create_model(model, SPECIFICATION)
    rows: list[list[Any]] = [["red", float(k)] for k in range(10)]
    report = client.push(model, rows, ["o"] * 5 + ["s"] * 5, [f"k{k}" for k in range(10)])
    report = client.push(model, [["red", 2.0], ["blue", None]], [None, {"o", "s"}], ["asked", "unknown"])
    next(each for each in client.watch(model) if each.tree.as_of >= report.committed_sequence)
    for _ in range(2):
        (query,) = client.lease(model, "ann", wait_s=30.0).queries
        if query.instance == "asked":
            return query
        client.refuse(query)
    raise AssertionError("the row is not asked about")


def test_the_nearest_rows_of_known_class_come_first(live: Any) -> None:
    with Client(live.server.address) as client:
        query = leased(client, "near")
        found = client.neighbours(query)
        assert found[0].instance == "k2"
        assert {each.instance for each in found} == {"k0", "k1", "k2", "k3", "k4"}  # those of its leaf
        assert all(each.same_leaf and each.class_name == "o" for each in found)
        assert [each.distance for each in found] == pytest.approx([0, 1 / 18, 1 / 18, 2 / 18, 2 / 18])
        assert found[0].differing == ()
        assert found[1].differing == ("size",)
        assert found[0].values == {"hue": "red", "size": 2.0}
        every = client.neighbours(query, 20)
        assert [each.same_leaf for each in every] == [True] * 5 + [False] * 5
        assert "unknown" not in {each.instance for each in every}
        with pytest.raises(InvalidArgument, match="limit: is 21"):
            client.neighbours(query, 21)
        client.answer(query, "o")
        with pytest.raises(FailedPrecondition, match="is not yours, or not any more"):
            client.neighbours(query)


def test_values_may_be_further_apart_than_any_number(live: Any) -> None:
    with Client(live.server.address) as client:
        query = leased(client, "far")
        client.push("far", [["red", 1e308], ["red", -1e308]], ["s", "o"], ["high", "low"])
        distances = {each.instance: each.distance for each in client.neighbours(query, 20)}
        assert (distances.pop("high"), distances.pop("low")) == (0.25, 0.25)
        assert len(distances) == 10
        assert max(distances.values()) < 1e-300


def test_what_is_withheld_does_not_reach_a_labeller(live: Any) -> None:
    with Client(live.server.address) as client:
        query = leased(client, "withheld")
        assert query.reason.node_count
        assert query.contour == (1.0, 1.0)
        client.update_model(
            "withheld", presentation=Presentation(withheld=("reason", "belief", "neighbours"))
        )
        with pytest.raises(FailedPrecondition, match="withholds neighbours"):
            client.neighbours(query)
        client.release(query)
        (again,) = client.lease("withheld", "ann", wait_s=30.0).queries
        assert (again.reason.node_count, again.contour) == (0, ())


def test_a_value_that_another_server_has_just_learned(start_live: Callable[..., Any], tmp_path: Path) -> None:
    """This one has read the schema before it, and no tree comes that would let it read again."""
    file = tmp_path / "store.db"
    growing = start_live(file)
    with Client(growing.server.address) as client:
        query = leased(client, "m")
    growing.close()
    alone = start_live(file, grower=False)
    with Client(alone.server.address) as client:
        assert len(client.neighbours(query, 20)) == 10
        with Store.open(file_url(file)) as other:
            green = [NewValue(0, 0, "green")]
            row = np.array([[2.0, 2.0]])
            other.append_instances("m", ["new"], row, encode_sets(np.ones(1, np.uint64)), green)
        found = client.neighbours(query, 20)
        assert len(found) == 11
        assert {"hue": "green", "size": 2.0} in [each.values for each in found]
