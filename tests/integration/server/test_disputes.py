"""Disputes on a live server: listed, decided by who may, taken back, counted; and what a labeller may not see."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from quercus.client import (
    Client,
    FailedPrecondition,
    InvalidArgument,
    Nominal,
    NotFound,
    PermissionDenied,
    Specification,
    Statement,
)
from quercus.server.gate import access
from quercus.v1 import query_pb2, query_pb2_grpc, values_pb2

ROLES = ("operator", "reader", "labeller", "corrector", "sensor")
ROWS = 43
DISPUTED = 10


@pytest.fixture
def callers(start_live: Callable[..., Any], tmp_path: Path) -> Iterator[dict[str, Client]]:
    """A client for each role; two labellers differ about 10 of 43 rows that both have labelled."""
    live = start_live(tmp_path / "store.db", access="tokens", grower=False)
    tokens = live.server.core.store.access
    clients = {
        role: Client(live.server.address, token=access.issue_token(tokens, f"the-{role}", [role])[0])
        for role in ROLES
    }
    operator = clients["operator"]
    operator.create_model("m", Specification([Nominal("X", ["a", "b"])], ["oak", "ash", "elm"], budget=9))
    operator.push("m", [["a"]] * (ROWS + 2), ids=[f"r{k}" for k in range(ROWS + 2)])
    said = [Statement(f"r{k}", ("oak", "ash", "elm")[k % 3], "ann") for k in range(ROWS + 1)]
    said += [Statement(f"r{k}", ("oak", "ash", "elm")[(k + (k < DISPUTED)) % 3], "bob") for k in range(ROWS)]
    operator.state("m", said)
    yield clients
    for each in clients.values():
        each.close()


def test_a_dispute_is_listed_decided_and_taken_back(callers: dict[str, Client]) -> None:
    reader, corrector = callers["reader"], callers["corrector"]
    listed = list(reader.disputes("m"))
    assert [each.instance for each in listed] == [f"r{k}" for k in range(DISPUTED)]
    assert [(each.labeller, each.text) for each in listed[1].labels] == [("ann", "ash"), ("bob", "elm")]
    assert not listed[0].values
    assert [each.instance for each in reader.disputes("m", ["elm"])] == [
        f"r{k}" for k in range(DISPUTED) if k % 3
    ]
    assert not list(reader.disputes("m", labellers=["cid"]))
    assert len(list(reader.disputes("m", labellers=["bob", "cid"]))) == DISPUTED

    one = reader.get_dispute("m", "r1")
    assert (one.disputed, dict(one.values)) == (True, {"X": "a"})
    corrector.adjudicate("m", "r1", "oak", comment="a lobed leaf")
    decided = reader.get_dispute("m", "r1")
    assert not decided.disputed
    assert decided.known == {"oak": 1.0, "ash": 0.0, "elm": 0.0}
    assert [(each.labeller, each.kind, each.state, each.text) for each in decided.labels] == [
        ("ann", "stated", "replaced", "ash"),
        ("bob", "stated", "replaced", "elm"),
        ("the-corrector", "adjudicated", "counts", "oak"),
    ]
    assert [each.instance for each in reader.disputes("m")] == ["r0", *(f"r{k}" for k in range(2, DISPUTED))]
    (newest,) = reader.answers("m", limit=1, newest_first=True)
    assert (newest.labeller, newest.kind, newest.text, newest.comment) == (
        "the-corrector", "adjudicated", "oak", "a lobed leaf",
    )  # fmt: skip
    corrector.undo_adjudication("m", "r1")
    assert reader.get_dispute("m", "r1") == one


def test_agreement_says_what_the_list_says(callers: dict[str, Client]) -> None:
    reader = callers["reader"]
    found = reader.agreement("m")
    assert (found.shared, found.disputed, found.adjudicated, found.is_partial) == (ROWS, DISPUTED, 0, False)
    (pair,) = found.pairs
    assert (pair.first, pair.second, pair.rows, pair.same) == ("ann", "bob", ROWS, ROWS - DISPUTED)
    for each in reader.labellers("m"):  # one figure on every page
        assert each.agreement == pytest.approx(pair.same / pair.rows)
        assert 0 < each.agreement_deviation < 0.1
    assert (found.alpha_rows, found.alpha_labels) == (ROWS, 2 * ROWS)
    assert found.alpha == pytest.approx(pair.kappa, abs=0.01)
    assert found.alpha == pytest.approx(0.65, abs=0.01)
    callers["corrector"].adjudicate("m", "r0", "oak")
    after = reader.agreement("m")
    assert (after.disputed, after.adjudicated) == (DISPUTED - 1, 1)
    assert (after.alpha, after.pairs) == (found.alpha, found.pairs)  # labellers agree no more than before
    by_name = {
        each.labeller: [(cell.said, cell.holds, cell.rows) for cell in each.cells]
        for each in after.confusions
    }
    assert by_name["ann"] == [(0, 0, 12), (1, 1, 11), (2, 2, 11)]
    assert by_name["bob"] == [(0, 0, 11), (1, 0, 1), (1, 1, 11), (2, 2, 11)]


def test_a_decision_may_have_the_plausibilities_of_a_smaller_frame(callers: dict[str, Client]) -> None:
    """As other labels may: whoever decides has not heard that the model was extended."""
    corrector = callers["corrector"]
    graded = values_pb2.Label(contour=values_pb2.Contour(plausibilities=[0.5, 1, 0]))
    callers["operator"].extend_model("m", classes=["fir"])
    stub = query_pb2_grpc.QueryServiceStub(corrector._channel)
    stub.Adjudicate(query_pb2.AdjudicateRequest(name="models/m/instances/r1", label=graded))
    assert corrector.get_dispute("m", "r1").known == {"oak": 0.5, "ash": 1.0, "elm": 0.0, "fir": 0.0}


def test_who_may_see_and_decide(callers: dict[str, Client]) -> None:
    labeller, operator = callers["labeller"], callers["operator"]
    for call in (
        lambda: list(labeller.disputes("m")),
        lambda: labeller.get_dispute("m", "r0"),
        lambda: labeller.agreement("m"),
        lambda: list(callers["sensor"].disputes("m")),
        lambda: callers["reader"].adjudicate("m", "r0", "oak"),
    ):
        with pytest.raises(PermissionDenied):
            call()
    with pytest.raises(
        FailedPrecondition, match="the-labeller may not decide between labellers: that needs the role"
    ):
        labeller.adjudicate("m", "r0", "oak")
    with pytest.raises(PermissionDenied, match="the token speaks for 'the-corrector'"):
        callers["corrector"].adjudicate("m", "r0", "oak", labeller="ann")
    operator.adjudicate("m", "r0", "oak", labeller="lead")
    policy = operator.labelling_policy("m")
    operator.set_labelling_policy(
        "m", type(policy)(**{**vars(policy), "corrections": "anyone"}), ["corrections"]
    )
    assert len(list(labeller.disputes("m"))) == DISPUTED - 1
    labeller.adjudicate("m", "r1", {"oak", "ash"})
    assert labeller.get_dispute("m", "r1").labels[-1].text == "oak|ash"
    operator.set_labelling_policy(
        "m", type(policy)(**{**vars(policy), "corrections": "nobody"}), ["corrections"]
    )
    with pytest.raises(FailedPrecondition, match="may not decide"):
        operator.adjudicate("m", "r2", "oak", labeller="lead")
    callers["corrector"].adjudicate("m", "r2", "oak")


def test_what_is_wrong_is_named(callers: dict[str, Client]) -> None:
    corrector = callers["corrector"]
    with pytest.raises(
        InvalidArgument, match=r"classes\[0\]: is 'beech', which is not a class; the classes are"
    ):
        list(corrector.disputes("m", ["beech"]))
    with pytest.raises(NotFound, match="instance m/r99"):
        corrector.adjudicate("m", "r99", "oak")
    with pytest.raises(FailedPrecondition, match="nobody has labelled it yet"):
        corrector.adjudicate("m", f"r{ROWS + 1}", "oak")
    with pytest.raises(FailedPrecondition, match="nobody has adjudicated it"):
        corrector.undo_adjudication("m", "r0")
