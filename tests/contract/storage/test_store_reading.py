"""Reading all of a log: instances as columns, in pieces of bounded size, the same as event by event."""

import tracemalloc

import numpy as np
import pytest
from support import words

from quercus.belief.errors import InvalidInput
from quercus.storage import Event, EventKind, InstanceColumns, LogSegment, NotFound, Store


def as_events(segment: LogSegment) -> list[tuple[int, EventKind, bytes | None, bytes | None]]:
    found: list[tuple[int, EventKind, bytes | None, bytes | None]] = []
    for part in segment.parts:
        if isinstance(part, Event):
            found.append((part.sequence, part.kind, part.values, part.label))
        else:
            found += [
                (part.first + i, EventKind.INSTANCE, row.tobytes(), label)
                for i, (row, label) in enumerate(zip(part.values, part.labels, strict=True))
            ]
    return found


def mixed_log(store: Store, helper) -> None:
    """Instances, an answer, a refusal and a specification, in runs of one and of more."""
    helper.create()
    helper.push("a", "b", "c", value=np.nan, label=words.B)
    helper.publish(2, 3)
    for query in store.lease("m", "ann", 2, 60).queries:
        if query.instance == 2:
            words.answer(store, "m", query.number, query.token, words.A, 0.5)
        else:
            words.refuse(store, "m", query.number, query.token)
    helper.push("d", value=2.0, label=b"")
    store.respecify("m", b"other", budget=9)
    helper.push("e", "f", value=-0.0, label=b"333")


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 100])
def test_it_is_what_the_events_say_however_it_is_cut(store, helper, rows):
    mixed_log(store, helper)
    events = store.read_events("m")
    read, after, others = [], 0, []
    while True:
        segment = store.read_log("m", after, rows=rows)
        if not segment.parts:
            break
        assert after < segment.last <= after + rows
        read += as_events(segment)
        others += [part for part in segment.parts if isinstance(part, Event)]
        after = segment.last
    assert segment.last == after == len(events) == 9
    assert read == [(e.sequence, e.kind, e.values, e.label) for e in events]
    assert others == [e for e in events if e.kind is not EventKind.INSTANCE]


def test_instances_that_follow_each_other_are_one_table(store, helper):
    mixed_log(store, helper)
    parts = [part for part in store.read_log("m").parts if isinstance(part, InstanceColumns)]
    assert [(part.first, part.values.shape) for part in parts] == [(1, (3, 2)), (6, (1, 2)), (8, (2, 2))]
    assert [part.labels for part in parts] == [[words.B] * 3, [b""], [b"333"] * 2]


def test_models_are_apart(store, helper):
    for name in ("m", "n"):
        helper.create(name=name)
    helper.push("a", name="m")
    helper.push("b", "c", name="n")
    assert [store.read_log(name).last for name in ("m", "n")] == [1, 2]
    with pytest.raises(NotFound):
        store.read_log("o")


def test_its_size_is_bounded(store, helper):
    helper.create()
    ids = [f"{i}" for i in range(6000)]
    helper.push(*ids, label=b"x" * 84)  # with its values 100 bytes an event
    segment = store.read_log("m", size_bytes=200_000)
    assert 2000 < segment.last < 3000
    assert store.read_log("m", size_bytes=1).last >= 1  # one event at least
    for bounds in ({"rows": 0}, {"size_bytes": 0}):
        with pytest.raises(InvalidInput, match="is 0, must be at least 1"):
            store.read_log("m", **bounds)


def test_memory_does_not_grow_with_the_log(store, helper):
    helper.create()
    for start in range(0, 60_000, 10_000):
        helper.push(*(f"{i}" for i in range(start, start + 10_000)), label=b"x" * 84)

    def peak(rows: int) -> int:
        tracemalloc.start()
        after = 0
        while (segment := store.read_log("m", after, rows=rows)).parts:
            after = segment.last
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert after == 60_000
        return most

    assert peak(3_000) < peak(60_000) / 5
