"""Answers and statements by both clients: typed, lazy, resumed after a stream that broke."""

import asyncio
import itertools
from functools import partial
from typing import Any

import pytest
from integration.client.serving import Serving

from quercus.client import (
    AnswerFilter,
    Client,
    InvalidArgument,
    Model,
    Nominal,
    NotFound,
    Specification,
    Statement,
    aio,
)

ROWS = 700  # more than a page of the server


@pytest.fixture
def said(client: Client, model: Model) -> str:
    """A statement of one of two labellers about each row."""
    client.push(model.name, [["a", 0.5]] * ROWS, ids=[f"r{i}" for i in range(ROWS)])
    statements = [
        Statement(f"r{i}", "o" if i % 3 else {"o": 1.0, "s": 0.5}, "ab"[i % 2]) for i in range(ROWS)
    ]
    report = client.state(model.name, statements, request_id="all")
    assert (report.stored, report.known) == (ROWS, 0)
    assert client.state(model.name, statements, request_id="all").known == ROWS
    return model.name


def test_answers_come_in_order_lazily_and_typed(client: Client, said: str) -> None:
    found = list(client.answers(said))
    assert [each.instance for each in found] == [f"r{i}" for i in range(ROWS)]
    first, second = found[:2]
    assert (first.labeller, first.kind, first.state, first.text) == ("a", "stated", "counts", "o:1.0 s:0.5")
    assert first.label == {"o": 1.0, "s": 0.5} == first.known
    assert (second.label, second.class_name, second.query, second.values) == ("o", "o", None, {})
    assert [each.number for each in client.answers(said, newest_first=True)] == [
        each.number for each in reversed(found)
    ]
    assert [each.number for each in client.answers(said, after=found[9].number, limit=3)] == [
        each.number for each in found[10:13]
    ]
    own = list(client.answers(said, AnswerFilter(labellers=["b"], states=["counts"]), with_values=True))
    assert [each.labeller for each in own] == ["b"] * (ROWS // 2)
    assert own[0].values == {"X": "a", "y": 0.5}
    few = list(itertools.islice(client.answers(said), 5))
    assert [each.number for each in few] == [each.number for each in found[:5]]
    (again,) = client.answers(said, AnswerFilter(since=found[0].at, instances=["r5"]))
    assert again == found[5]


def test_what_cannot_be_asked_for_is_named(client: Client, said: str) -> None:
    with pytest.raises(InvalidArgument, match="kinds: 'shouted' is not one of answered, refused"):
        list(client.answers(said, AnswerFilter(kinds=["shouted"])))  # type: ignore[list-item]
    with pytest.raises(InvalidArgument, match="limit: is 0, must be at least 1"):
        list(client.answers(said, limit=0))
    with pytest.raises(NotFound, match="model nowhere"):
        list(client.answers("nowhere"))
    with pytest.raises(InvalidArgument, match=r"statements\[1\].label: 'q' is not a class"):
        client.state(said, [Statement("r1", "o"), Statement("r2", "q")], labeller="a")


def test_the_asyncio_client_says_and_reads_the_same(serving: Serving, client: Client, said: str) -> None:
    async def work() -> list[Any]:
        async with aio.Client(serving.address) as other:
            assert (await other.state(said, [Statement("r0", "s")], labeller="cleo")).stored == 1
            (own,) = [each async for each in other.answers(said, AnswerFilter(labellers=["cleo"]))]
            await other.correct_answer(said, own, "o", comment="on reflection")
            (own,) = [
                each
                async for each in other.answers(
                    said, AnswerFilter(labellers=["cleo"], states=["counts"]), limit=1
                )
            ]
            await other.undo_answer(said, own)
            return [each async for each in other.answers(said)]

    found = asyncio.run(work())
    assert found == list(client.answers(said))
    assert [(each.kind, each.text, each.state, each.former_text) for each in found[-3:]] == [
        ("stated", "s", "replaced", ""),
        ("stated", "o", "undone", "s"),
        ("retracted", "", "empty", "o"),
    ]


def test_a_client_waits_for_trees_with_its_corrections(client: Client) -> None:
    client.create_model("corrected", Specification([Nominal("X", "ab")], ["o", "s"], budget=3))
    client.push("corrected", [{"X": "a"}, {"X": "b"}])
    client.answer(client.lease("corrected", "ann", wait_s=30.0).queries[0], "o")
    for change in (partial(client.correct_answer, label="s"), client.undo_answer):
        (own,) = client.answers("corrected", AnswerFilter(states=["counts"]))
        assert change("corrected", own) == client._sequences.newest_sequence("corrected")


@pytest.mark.slow
def test_a_stream_of_answers_goes_on_after_an_outage(tmp_path: Any) -> None:
    serving = Serving(tmp_path, grower=False)
    try:
        with Client(serving.address, outage_s=60.0) as client:
            client.create_model("m", Specification([Nominal("X", "ab")], ["o", "s"]))
            client.push("m", [["a"]] * ROWS, ids=[f"r{i}" for i in range(ROWS)])
            client.state("m", [Statement(f"r{i}", "o", "ann") for i in range(ROWS)])
            stream = client.answers("m")
            seen = [next(stream).instance]
            serving.stop()
            serving = Serving(tmp_path, serving.port, grower=False)
            seen += [each.instance for each in stream]
        assert seen == [f"r{i}" for i in range(ROWS)]
    finally:
        serving.stop()
