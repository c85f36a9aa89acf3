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
from quercus.proto.v1 import instance_pb2

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
        (None, ["p", None, "q"], r"ids\[1\]: None is no id"),
        (None, ["p", "q", math.nan], r"ids\[2\]: nan is no id"),
        (pd.DataFrame({"o": [1.0], "q": [1.0]}), None, "are o, q; they must be the classes o, s"),
        (pd.DataFrame({"o": ["x"], "s": [1.0]}), None, "must hold plausibilities"),
    ],
)
def test_what_is_not_one_a_row_is_refused(labels: Any, ids: Any, words: str) -> None:
    (chunk,) = row_chunks(ROWS, 10)
    with pytest.raises(InvalidArgument, match=words):
        Batcher("m", SPECIFICATION, labels, ids).encode_chunk(chunk)
