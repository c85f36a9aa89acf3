"""Batches, the ledger of acknowledgements, and when a broken stream is tried again."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from quercus.client import (
    InvalidArgument,
    Nominal,
    Numeric,
    PushReport,
    QuercusError,
    Specification,
    Unavailable,
)
from quercus.client.pushing import Batcher, PushState, batch_size, check_sizes
from quercus.client.retrying import MAX_BACKOFF_S
from quercus.client.rows import row_chunks
from quercus.client.transport import MAX_SEND_BYTES
from quercus.v1 import instance_pb2

SPECIFICATION = Specification([Nominal("X", "ab"), Numeric("y")], ["o", "s"])
ROWS = [["a", 1.0], ["b", 2.0], ["a", 3.0]]


def test_batches_carry_rows_labels_and_ids_in_step() -> None:
    batcher = Batcher("m", SPECIFICATION, ["o", None, "s"], iter(["p", "q", "r"]))
    requests = [batcher.encode_chunk(chunk).request for chunk in row_chunks(ROWS, 2)]
    batcher.check_leftovers(3)
    assert [list(request.ids) for request in requests] == [["p", "q"], ["r"]]
    assert [list(request.labels.sets.masks) for request in requests] == [[1, 3], [2]]
    assert [len(request.rows.packed.values) for request in requests] == [4, 2]
    assert {request.model for request in requests} == {"models/m"}


def test_batch_ids_are_never_repeated() -> None:
    pushes = [Batcher("m", SPECIFICATION, None, None) for _ in range(3)]
    ids = [
        batcher.encode_chunk(chunk).request.batch_id for batcher in pushes for chunk in row_chunks(ROWS, 1)
    ]
    assert len(set(ids)) == 9


@pytest.mark.parametrize(
    ("labels", "ids", "words"),
    [
        (["o"], None, "there are fewer labels than rows: none for row 1"),
        (np.ones((2, 2)), None, "there are fewer labels than rows: none for row 2"),
        (None, ["p", "q"], "there are fewer ids than rows: none for row 2"),
        (["o"] * 4, None, "there are more labels than the 3 rows"),
        (np.ones((4, 2)), None, "there are more labels than the 3 rows"),
        (None, list("pqrs"), "there are more ids than the 3 rows"),
    ],
)
def test_labels_and_ids_must_be_as_many_as_rows(labels: object, ids: list[str] | None, words: str) -> None:
    batcher = Batcher("m", SPECIFICATION, labels, ids)  # type: ignore[arg-type]

    def push() -> None:
        for chunk in row_chunks(ROWS, 3):
            batcher.encode_chunk(chunk)
        batcher.check_leftovers(3)

    with pytest.raises(InvalidArgument, match=words):
        push()


def test_new_values_ask_for_a_renewal_once_they_may_be_known() -> None:
    batcher = Batcher("m", SPECIFICATION, None, None)
    chunk = next(row_chunks([["new", 1.0]], 1))
    assert not batcher.wants_renewal(chunk)  # nothing was sent that could have added it
    assert batcher.encode_chunk(chunk).request.rows.WhichOneof("kind") == "named"
    assert batcher.wants_renewal(chunk)
    batcher.use_specification(Specification([Nominal("X", ["a", "b", "new"]), Numeric("y")], ["o", "s"]))
    assert batcher.encode_chunk(chunk).request.rows.packed.values == [2.0, 1.0]


def acknowledge(ledger: PushState, batch_id: str, sequence: int, stored: int, known: int = 0) -> None:
    ledger.record_response(
        instance_pb2.PushInstancesResponse(
            batch_id=batch_id, committed_sequence=sequence, rows_stored=stored, rows_known=known
        )
    )


def test_the_ledger_counts_each_batch_once() -> None:
    seen: list[PushReport] = []
    ledger = PushState(2, seen.append)
    batcher = Batcher("m", SPECIFICATION, None, None)
    batches = [batcher.encode_chunk(chunk) for chunk in row_chunks(ROWS, 2)]
    for batch in batches:
        ledger.record_sent(batch)
    assert ledger.is_full
    acknowledge(ledger, batches[0].request.batch_id, 2, 2)
    acknowledge(ledger, batches[0].request.batch_id, 2, 0, 2)  # again, after a reconnection
    assert ledger.pending == [batches[1]]
    acknowledge(ledger, batches[1].request.batch_id, 3, 0, 1)
    report = ledger.report
    assert (report.rows, report.stored, report.known, report.batches, report.committed_sequence) == (
        3,
        2,
        1,
        2,
        3,
    )
    assert [each.rows for each in seen] == [2, 3]


def test_a_broken_stream_is_tried_again_for_a_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    ledger = PushState(2, None, outage_s=10.0)
    for _ in range(100):
        pause_s = ledger.record_break(Unavailable("gone"))
        assert 0 < pause_s <= MAX_BACKOFF_S
        now += pause_s
        if now > 9.999:
            break
    now = 10.0
    with pytest.raises(Unavailable) as caught:
        ledger.record_break(Unavailable("gone"))
    assert caught.value.report == ledger.report
    assert str(caught.value) == "gone; 0 rows had been acknowledged"


def test_progress_makes_time_free_again_and_other_errors_get_none(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    ledger = PushState(2, None, outage_s=1.0)
    batch = Batcher("m", SPECIFICATION, None, None).encode_chunk(next(row_chunks(ROWS, 3)))
    ledger.record_sent(batch)
    ledger.record_break(Unavailable("gone"))
    acknowledge(ledger, batch.request.batch_id, 3, 3)
    now = 100.0
    assert ledger.record_break(Unavailable("gone")) <= 0.1
    with pytest.raises(InvalidArgument) as caught:
        ledger.record_break(InvalidArgument("wrong"))
    assert caught.value.report is not None
    assert caught.value.report.rows == 3


def test_an_error_of_the_caller_gets_a_note() -> None:
    assert PushState(1, None).with_report(KeyError("theirs")).__notes__ == ["0 rows had been acknowledged"]
    assert isinstance(PushState(1, None).with_report(QuercusError("ours")), QuercusError)


@pytest.mark.parametrize(("batch_rows", "window"), [(0, 1), (10_001, 1), (1, 0)])
def test_sizes_out_of_bounds_are_refused(batch_rows: int, window: int) -> None:
    with pytest.raises(InvalidArgument, match=r"is not (in|at least) 1"):
        check_sizes(batch_rows, window)


def test_wide_rows_make_smaller_batches() -> None:
    wide = Specification([Numeric(f"a{k}") for k in range(1000)], ["o", "s"])
    size = batch_size(10_000, wide)
    assert 0 < size * 1002 * 8 <= MAX_SEND_BYTES / 2
    assert batch_size(10_000, SPECIFICATION) == 10_000


def test_a_frame_of_plausibilities_is_taken_by_class() -> None:
    frame = pd.DataFrame({"s": [1.0, 0.5, 0.0], "o": [0.0, 1.0, 1.0]})
    batcher = Batcher("m", SPECIFICATION, frame, None)
    (chunk,) = row_chunks(ROWS, 10)
    assert batcher.encode_chunk(chunk).request.labels.contours.plausibilities == [
        0.0,
        1.0,
        1.0,
        0.5,
        1.0,
        0.0,
    ]
    with pytest.raises(InvalidArgument, match="there are more labels than the 2 rows"):
        batcher.check_leftovers(2)


@pytest.mark.parametrize(
    ("labels", "ids", "words"),
    [
        ("oso", None, "labels: expected one per row, got one str"),
        ({"o": 1.0, "s": 0.5}, None, "labels: expected one per row, got one dict"),
        (None, "pqr", "ids: expected one per row, got one str"),
        (None, ["p", None, "q"], r"ids\[1\]: None is not an id"),
        (None, ["p", "q", math.nan], r"ids\[2\]: nan is not an id"),
        (pd.DataFrame({"o": [1.0], "q": [1.0]}), None, "are o, q; they must be the classes o, s"),
        (pd.DataFrame({"o": ["x"], "s": [1.0]}), None, "must hold plausibilities"),
    ],
)
def test_what_is_not_one_a_row_is_refused(labels: Any, ids: Any, words: str) -> None:
    (chunk,) = row_chunks(ROWS, 10)
    with pytest.raises(InvalidArgument, match=words):
        Batcher("m", SPECIFICATION, labels, ids).encode_chunk(chunk)


MANY = [
    ["a", 1.0],
    ["a", "much"],
    {"X": "b", "y": math.inf},
    {"Z": 1},
    ["b"],
    ["b", 2.0],
    ["a\nb", 1.0],
    ["a", 3],
]
MANY_FAULTS = {
    1: "rows[1].y: the attribute is numeric, got the text 'much'",
    2: "rows[2].y: is inf, must be a finite number, or None for missing",
    3: "rows[3]: no attribute 'Z'",
    4: "rows[4]: expected 2 values, got 1",
    6: "rows[6].X: has the line end U+000A at position 2",
}


@pytest.mark.parametrize("size", [1, 3, 8])
def test_rows_that_cannot_be_sent_are_left_out_one_by_one(size: int) -> None:
    """With their positions in the whole input; what belongs to the others stays with them."""
    ids = [f"r{row}" for row in range(8)]
    batcher = Batcher("m", SPECIFICATION, list("osososos"), ids, row_by_row=True)
    batches = [batcher.encode_chunk(chunk) for chunk in row_chunks(MANY, size)]
    rejected = [each for batch in batches for each in batch.rejected]
    assert [(each.position, each.id, each.error.row) for each in rejected] == [
        (row, f"r{row}", row) for row in MANY_FAULTS
    ]
    for each, words in zip(rejected, MANY_FAULTS.values(), strict=True):
        assert str(each.error).startswith(words)
        assert isinstance(each.error, InvalidArgument)
    sent = [batch for batch in batches if batch.rows]
    assert [row for batch in sent for row in batch.positions or ()] == [0, 5, 7]
    assert [each for batch in sent for each in batch.request.ids] == ["r0", "r5", "r7"]
    assert [each for batch in sent for each in batch.request.labels.sets.masks] == [1, 2, 2]
    assert [each for batch in sent for each in batch.request.rows.packed.values] == [0, 1, 1, 2, 0, 3]


@pytest.mark.parametrize("size", [1, 3, 8])
def test_the_first_row_that_cannot_be_sent_is_named_by_its_position(size: int) -> None:
    batcher = Batcher("m", SPECIFICATION, None, None)
    with pytest.raises(InvalidArgument, match=r"^rows\[1\]\.y: .* 'much'") as caught:
        list(map(batcher.encode_chunk, row_chunks(MANY, size)))
    assert caught.value.row == 1


@pytest.mark.parametrize(
    ("labels", "ids", "displays", "words"),
    [
        (["o", "elm", "s"], None, None, "labels[1]: 'elm' is not a class"),
        ([{"o": 1.0}, {"o": 1.5}, "s"], None, None, "labels[1]: is 1.5 for class 'o', must lie in [0, 1]"),
        (np.array([[1, 0], [0, 0], [1, 1.0]]), None, None, "labels[1]: is zero for every class"),
        ([None, {frozenset("o"): 0.5}, None], None, None, "labels[1]: "),
        (None, ["p", "a\nb", "q"], None, "ids[1]: has the line end U+000A"),
        (None, ["p", None, "q"], None, "ids[1]: None is not an id"),
        (None, ["p", "x" * 201, "q"], None, "ids[1]: has 201 characters, not 1 to 200"),
        (None, None, [None, [3], None], "displays[1]: expected TextItem"),
    ],
)
def test_labels_ids_and_displays_refuse_their_own_row(
    labels: Any, ids: Any, displays: Any, words: str
) -> None:
    batcher = Batcher("m", SPECIFICATION, labels, ids, displays=displays, row_by_row=True)
    (batch,) = (
        batcher.encode_chunk(chunk) for chunk in row_chunks(np.array([[0, 1.0], [0, 2.0], [1, 3.0]]), 10)
    )
    ((position, error),) = ((each.position, each.error) for each in batch.rejected)
    assert position == 1
    assert str(error).startswith(words)
    assert (batch.rows, list(batch.request.rows.packed.values)) == (2, [0, 1, 1, 3])


def test_rows_of_arrays_and_frames_are_left_out_too() -> None:
    strict = Specification([Nominal("X", "ab"), Numeric("y", missing="reject")], ["o", "s"])
    values = np.array([[0, 1.0], [2, 2.0], [0.5, 1.0], [np.nan, 4.0], [1, np.nan], [1, -np.inf]])
    batcher = Batcher("m", strict, None, None, row_by_row=True)
    (batch,) = (batcher.encode_chunk(chunk) for chunk in row_chunks(values, 10))
    assert [str(each.error) for each in batch.rejected] == [
        "rows[1].X: is 2.0, must be an index into its 2 values, or NaN for missing",
        "rows[2].X: is 0.5, must be an index into its 2 values, or NaN for missing",
        "rows[4].y: is missing, which the attribute does not accept",
        "rows[5].y: is -inf, must be a finite number, or None for missing",
    ]
    frame = pd.DataFrame({"X": ["a", "b", "a"], "y": [1.0, "two", 3.0]})
    batcher = Batcher("m", SPECIFICATION, None, None, row_by_row=True)
    (batch,) = (batcher.encode_chunk(chunk) for chunk in row_chunks(frame, 10))
    assert [each.position for each in batch.rejected] == [1]
    assert list(batch.request.rows.packed.values) == [0, 1, 0, 3]


@pytest.mark.parametrize("row_by_row", [True, False])
def test_a_row_without_an_attribute_that_others_have_is_no_fault_beside_one_that_is(row_by_row: bool) -> None:
    rows = [{"X": "a"}, {"X": "a", "y": "high"}, {"X": "b", "y": 1.0}, {"X": "b"}]
    batcher = Batcher("m", SPECIFICATION, None, None, row_by_row=row_by_row)
    if not row_by_row:
        with pytest.raises(InvalidArgument, match=r"rows\[1\]\.y: the attribute is numeric"):
            batcher.encode_chunk(next(row_chunks(rows, 4)))
        return
    batch = batcher.encode_chunk(next(row_chunks(rows, 4)))
    assert [each.position for each in batch.rejected] == [1]
    assert batch.positions == [0, 2, 3]
    (alone,) = batcher.encode_chunk(next(row_chunks([{"X": "a", "Y": 1.0}], 4))).rejected
    assert "no attribute 'Y'" in alone.reason
    nowhere = [{"X": "a"}, {"X": "a", "Y": "b"}, {"Z": 1.0}]
    with pytest.raises(InvalidArgument, match="rows: have no 'y', only 'X', 'Y', 'Z'"):
        batcher.encode_chunk(next(row_chunks(nowhere, 4)))


def test_what_is_wrong_with_all_rows_ends_a_push_in_any_case() -> None:
    frame = pd.DataFrame({"X": ["a", "b"]})
    batcher = Batcher("m", SPECIFICATION, None, None, row_by_row=True)
    with pytest.raises(InvalidArgument, match="have no 'y', only 'X'"):
        batcher.encode_chunk(next(row_chunks(frame, 10)))
