"""Names beyond the bound of an attribute, from the push to the tree: rows are kept, and the log alone says which."""

import logging
import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quercus.client import Client, InvalidArgument, Nominal, Numeric, Specification
from quercus.server.growth.regrowing import regrow_model
from quercus.server.transfer.stored_contents import StoredModel
from quercus.storage import Store

CLASSES = ["o", "s"]
Start = Callable[..., Any]


def test_a_stream_with_more_names_than_an_attribute_keeps_loses_nothing(
    start_live: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tickets = np.random.default_rng(0).integers(0, 5_000, 50_000).tolist()
    kept = list(dict.fromkeys(tickets))[:1_000]
    live = start_live(tmp_path / "store.db", grower=False)
    with Client(live.server.address) as client, caplog.at_level(logging.WARNING):
        client.create_model("m", Specification([Nominal("ticket"), Numeric("x")], CLASSES))
        rejected: list[Any] = []
        rows = ([f"t{ticket}", i] for i, ticket in enumerate(tickets))
        report = client.push("m", rows, on_rejected=rejected.append)
        assert (report.stored, rejected) == (50_000, [])
        (said,) = report.unseen
        beyond = sum(ticket not in set(kept) for ticket in tickets)
        assert (said.rows, said.names, said.rows_beyond) == (50_000, len(set(tickets)), beyond)
        (attribute, _) = client.get_model("m").specification.attributes
        assert isinstance(attribute, Nominal)
        assert attribute.values == tuple(f"t{ticket}" for ticket in kept)
        assert attribute.bound_text == "1,000 names, the most it may have; others count as (other names)"
        shown = [each.values["ticket"] for each, _ in zip(client.instances("m"), range(5_000), strict=False)]
        names = set(kept)
        assert shown == [f"t{t}" if t in names else "(other names)" for t in tickets[:5_000]]
    assert [text for text in caplog.messages if "ticket" in text] == [
        "attribute 'ticket' of model m has 1000 values, the most it may: further names share one bucket"
    ]


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_batches_restarts_servers_and_imports_do_not_matter(
    kind: str, start_live: Start, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The same rows in one message, in many over restarts (PostgreSQL: to two servers in turn), and imported."""
    url = request.getfixturevalue("postgres_url") if kind == "postgresql" else str(tmp_path / "store.db")
    rng = np.random.default_rng(5)
    names = ["(other names)", *(f"n{i}" for i in range(9))]
    attributes = [
        Nominal("A", ["n0"], max_values=4),
        Nominal("B", [], "reject", max_values=2),
        Numeric("x", edges=[0.5]),
    ]
    rows = [[names[i], names[j], k] for i, j, k in rng.integers(0, [10, 10, 2], (300, 3)).tolist()]
    labels = [CLASSES[len(row[0] + row[1]) % 2] for row in rows]
    ids = [f"r{i}" for i in range(300)]
    live = start_live(url, grower=False)
    with Client(live.server.address) as client:
        for model in ("one", "many"):
            client.create_model(model, Specification(attributes, CLASSES, learner="abc45"))
        client.push("one", rows, labels, ids)
    cuts = [0, *sorted(rng.choice(np.arange(1, 300), 20, replace=False).tolist()), 300]
    second = start_live(url, grower=False) if kind == "postgresql" else live
    for turn, (start, end) in enumerate(pairwise(cuts)):
        if kind == "sqlite" and turn % 7 == 6:
            live.close()
            live = second = start_live(url, grower=False)
        with Client((live, second)[turn % 2].server.address) as client:
            again = max(0, start - 3)  # some rows come twice
            client.push("many", rows[again:end], labels[again:end], ids[again:end], batch_rows=5)
    with Client(live.server.address) as client:
        kept = [list(dict.fromkeys(["n0"] + [row[0] for row in rows]))[:4]]
        kept.append(list(dict.fromkeys(row[1] for row in rows))[:2])
        other = ["((other names))" if "(other names)" in each else "(other names)" for each in kept]
        assert len(set(other)) == 2  # one attribute has a value of this name, the other has not
        wanted = [
            {
                "A": row[0] if row[0] in kept[0] else other[0],
                "B": row[1] if row[1] in kept[1] else other[1],
                "x": row[2],
            }
            for row in rows
        ]
        assert [dict(each.values) for each in client.instances("many")] == wanted
    live.close()
    if second is not live:
        second.close()
    with Store.open(url if kind == "postgresql" else f"sqlite:///{url}") as store:
        store.load(iter(list(store.dump("many"))), "imported", StoredModel())
        models = ("one", "many", "imported")
        logs = [store.read_log(model, 0, rows=1_000, size_bytes=1 << 20).parts for model in models]
        values = [np.concatenate([part.values for part in parts]).tolist() for parts in logs]
        vocabularies = [store.vocabulary(model) for model in models]
        trees = [regrow_model(store, model, 300) for model in models]
    assert values == [values[0]] * 3
    assert vocabularies == [vocabularies[0]] * 3
    assert trees == [trees[0]] * 3


def test_a_tree_splits_at_the_bucket_and_a_name_never_seen_takes_its_branch(live: Any) -> None:
    with Client(live.server.address) as client:
        attributes = [Nominal("A", ["(other names)"], max_values=2)]
        client.create_model("beyond", Specification(attributes, CLASSES, learner="abc45"))
        rows = [["(other names)"], ["b"]] * 9
        client.push("beyond", [*rows, ["c"]], ["o"] * 18 + ["o"])
        client.wait_grown("beyond")
        client.push("beyond", [[f"n{i}"] for i in range(20)], ["s"] * 20)
        client.wait_grown("beyond")
        found = client.classify(
            "beyond", [["(other names)"], ["b"], ["c"], ["never"], [None]], want_paths=True
        )
        assert found.labels[:4] == ["o", "o", "s", "s"]
        assert found.paths is not None
        assert [path[0][1] for path in found.paths[:4]] == ["(other names)", "b", *["((other names))"] * 2]
        (said,) = found.unseen
        assert said.text == (
            "2 of 5 rows: `A` has 2 names beyond those that the model keeps, as c; they count as (other names)"
        )
        assert "((other names))" in str(client.tree("beyond"))
        assert client.push("beyond", [["c"]]).unseen[0].rows_beyond == 1


def test_unknown_names_take_no_branch_while_there_is_room(live: Any) -> None:
    with Client(live.server.address) as client:
        client.create_model("room", Specification([Nominal("A", max_values=9)], CLASSES, learner="abc45"))
        report = client.push("room", [["a"], ["b"]] * 10, ["o", "s"] * 10)
        assert report.unseen == ()  # first names of the attribute
        client.wait_grown("room")
        found = client.classify("room", [["a"], ["never"], [{"never", "a"}], ["b"]], want_paths=True)
        assert found.paths is not None
        assert [len(path) for path in found.paths] == [1, 0, 1, 1]
        (said,) = found.unseen
        assert said.text == "2 of 4 rows: `A` has 1 name never seen, as never"
        assert client.classify("room", [["a"]]).unseen == ()  # answered from the same kept response
        assert client.classify("room", [["b"]]).unseen == ()
        (said,) = client.push("room", [["a"], ["c"], ["c"]]).unseen
        assert said.text == "2 of 3 rows: `A` has 1 name never seen, as c"


def test_rows_that_are_refused_teach_no_names(live: Any) -> None:
    """Neither a wrong value nor an id with other content: the names that are kept are those of the log."""
    with Client(live.server.address) as client:
        attributes = [Nominal("A", max_values=3), Numeric("x")]
        client.create_model("teaching", Specification(attributes, CLASSES))
        client.push("teaching", [["a", 1.0]], ids=["known"])
        rejected: list[Any] = []
        rows = [["b", 1.0], ["c", math.inf], ["d", 1.0], ["e", 1.0], ["f", 1.0], ["d", 1.0]]
        ids = ["1", "2", "known", "3", "4", "5"]
        report = client.push("teaching", rows, ids=ids, on_rejected=rejected.append)
        assert sorted(row.position for each in rejected for row in each.rows) == [1, 2]
        assert [each.values["A"] for each in client.instances("teaching")] == [
            *"abe",
            "(other names)",
            "(other names)",
        ]
        (said,) = report.unseen
        assert (said.rows, said.of_rows, said.names, said.rows_beyond) == (4, 4, 4, 2)


def test_the_bound_of_the_server_is_that_of_its_new_models(start_live: Start, tmp_path: Path) -> None:
    """It is written into the model: a later start with another bound changes nothing for it."""
    live = start_live(tmp_path / "store.db", grower=False, max_values=2)
    with Client(live.server.address) as client:
        client.create_model("m", Specification([Nominal("A")], CLASSES))
        with pytest.raises(InvalidArgument, match=r"max_values: is 3, at most 2 are allowed \(max_values\)"):
            client.create_model("n", Specification([Nominal("A", max_values=3)], CLASSES))
    live.close()
    live = start_live(tmp_path / "store.db", grower=False)
    with Client(live.server.address) as client:
        client.push("m", [["a"], ["b"], ["c"]])
        assert [each.values["A"] for each in client.instances("m")] == ["a", "b", "(other names)"]
