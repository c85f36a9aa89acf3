"""Names that a model had never seen, counted over messages."""

from typing import Any

import numpy as np

from quercus.client import Nominal, Numeric, Specification, pushing
from quercus.client.comparing import differences
from quercus.client.pushing import Batcher, PushState
from quercus.client.rows import row_chunks
from quercus.client.unseen import MAX_NAMES, PushedNames, UnseenNames, UnseenTally
from quercus.v1 import instance_pb2, values_pb2

OLD = Specification([Nominal("machine", ["101", "102"]), Nominal("new"), Numeric("x")], ["o", "s"])


def message(
    names: list[str], count: int | None = None, rows: int = 1, beyond: int = 0
) -> values_pb2.UnseenNames:
    return values_pb2.UnseenNames(
        attribute="machine", rows=rows, names=count or len(names), examples=names, rows_beyond=beyond
    )


def test_names_of_several_messages_are_counted_once() -> None:
    tally = UnseenTally()
    tally.add_names([message(["a", "b"], rows=300)])
    tally.add_names([message(["b", "c"], rows=99)])
    (said,) = tally.results(400)
    assert (said.rows, said.of_rows, said.names, said.is_exact) == (399, 400, 3, True)
    assert said.text == "399 of 400 rows: `machine` has 3 names never seen, as a"


def test_a_number_is_a_lower_bound_only_if_lists_of_several_messages_are_cut() -> None:
    tally = UnseenTally()
    tally.add_names([message(["a", "b"], count=700)])
    assert [(each.names, each.is_exact) for each in tally.results(1)] == [(700, True)]
    tally.add_names([message(["a", "c"], count=800)])
    assert [(each.names, each.is_exact) for each in tally.results(2)] == [(800, False)]
    assert "has at least 800 names" in tally.results(2)[0].text


def test_what_is_kept_of_a_push_is_bounded() -> None:
    tally = UnseenTally()
    for start in range(0, 3 * MAX_NAMES, 1000):
        tally.add_counts({"machine": {f"m{i}": 1 for i in range(start, start + 1000)}})
    (said,) = tally.results(3 * MAX_NAMES)
    assert (said.rows, said.names, said.is_exact) == (3 * MAX_NAMES, MAX_NAMES, False)


def pushed(*rows: list[Any]) -> pushing.Batch:
    return Batcher("m", OLD, None, None).encode_chunk(next(row_chunks(list(rows), len(rows))))


def acknowledge(ledger: PushState, batch: pushing.Batch, **fields: Any) -> tuple[UnseenNames, ...]:
    ledger.record_sent(batch)
    stored = {"rows_stored": batch.rows} | fields
    ledger.record_response(instance_pb2.PushBatchResponse(batch_id=batch.request.batch_id, **stored))
    return ledger.report.unseen


def test_a_push_counts_rows_of_new_names_also_after_the_model_has_learned_them() -> None:
    """The batches name the same rows before and after the server has learned the names."""
    rows = [["101", "p", 1.0], ["101.5", "q", 2.0], ["7", None, 3.0], [None, "p", 4.0]]
    new = PushedNames(OLD)
    batcher = Batcher("m", OLD, None, None, batch_rows=4)
    wanted = {"machine": {"101.5": 1, "7": 1}, "new": {"p": 2, "q": 1}}
    request = batcher.encode_chunk(next(row_chunks(rows, 4))).request
    assert request.rows.WhichOneof("kind") == "named"
    assert new.new_names(request.rows, OLD) == wanted
    learned = [
        Nominal("machine", ["101", "102", "101.5", "7"], max_values=4),
        Nominal("new", ["p", "q"]),
        Numeric("x"),
    ]
    now = Specification(learned, ["o", "s"])
    assert new.new_names(request.rows, now) == wanted
    batcher.use_specification(now)
    request = batcher.encode_chunk(next(row_chunks(rows, 4))).request
    assert request.rows.WhichOneof("kind") == "packed"
    assert new.new_names(request.rows, now) == wanted
    refused = {"machine": {"101.5": 1}, "new": {"p": 1, "q": 1}}
    assert new.new_names(request.rows, now, refused=[0, 2]) == refused
    full = np.array([[4.0, 0.0, 1.0]])  # the bucket
    request = batcher.encode_chunk(next(row_chunks(full, 1))).request
    assert new.new_names(request.rows, now) == {"new": {"p": 1}}


def test_a_repeated_message_counts_even_if_the_server_knows_its_names_by_then() -> None:
    """The acknowledgement of the first was lost; the response to the second names nothing unseen."""
    said = acknowledge(PushState(2, None, specification=OLD), pushed(["9", "p", 1.0], ["9", "q", 1.0]))
    assert [each.text for each in said] == ["2 of 2 rows: `machine` has 1 name never seen, as 9"]


def test_rows_that_are_refused_do_not_count() -> None:
    ledger = PushState(2, None, on_rejected=lambda _: None, specification=OLD)
    refused = [instance_pb2.RefusedRow(row=0, code=3, field="labels[0]", message="is wrong")]
    said = acknowledge(ledger, pushed(["9", "p", 1.0], ["8", "q", 1.0]), rows_stored=1, refused=refused)
    assert [each.text for each in said] == ["1 of 1 row: `machine` has 1 name never seen, as 8"]


def test_first_names_are_no_sign_of_a_mistake_but_names_beyond_the_bound_are_reported() -> None:
    ledger = PushState(2, None, specification=OLD)
    for beyond in (0, 1):
        unseen = [values_pb2.UnseenNames(attribute="new", rows=2, names=2, rows_beyond=beyond)]
        found = acknowledge(ledger, pushed(["101", "p", 1.0], ["101", "q", 1.0]), unseen=unseen)
        assert len(found) == beyond
    assert ledger.has_taught
    (said,) = ledger.report.unseen
    assert (said.rows, said.of_rows, said.names, said.rows_beyond) == (4, 4, 2, 1)


def test_of_rows_that_an_earlier_process_encoded_the_server_tells() -> None:
    unseen = [values_pb2.UnseenNames(attribute="machine", rows=2, names=1, examples=["9"])]
    found = acknowledge(PushState(2, None), pushed(["9", "p", 1.0], ["9", "q", 1.0]), unseen=unseen)
    assert [each.text for each in found] == ["2 of 2 rows: `machine` has 1 name never seen, as 9"]


def test_the_bound_of_an_attribute_is_compared_if_it_is_given() -> None:
    def differing(known: Nominal, given: Nominal) -> bool:
        return bool(differences(Specification([known], ["o", "s"]), Specification([given], ["o", "s"])))

    learned = Nominal("A", ["a", "b"], max_values=20)
    assert not differing(learned, Nominal("A", ["a"]))
    assert not differing(learned, Nominal("A", ["a"], max_values=20))
    assert not differing(Nominal("A", ["a"]), Nominal("A", ["a"], max_values=1_000))
    assert differing(learned, Nominal("A", ["a"], max_values=21))
    assert differing(learned, Nominal("A", ["a"], overflow="refuse"))
