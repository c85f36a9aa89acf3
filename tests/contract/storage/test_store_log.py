import threading
from dataclasses import replace

import numpy as np
import pytest
from support import words

from quercus.belief.errors import InvalidInput
from quercus.storage import (
    AlreadyExists,
    AppendedBatch,
    ConflictingRows,
    EventKind,
    NewValue,
    NotFound,
    Push,
    Stale,
    Store,
)
from quercus.storage.sqlite import pushed_rows


def test_events_are_numbered_without_gaps_and_read_back_as_they_were(store, helper, clock):
    helper.create()
    values = np.array([[1.5, np.nan], [-0.0, 1e300]])
    assert store.append_instances("m", ["a", "b"], values, [b"\x01", b""]) == AppendedBatch(2, 2, 0)
    clock.now += 1
    assert helper.push("c") == AppendedBatch(3, 1, 0)
    events = store.read_events("m")
    assert [(e.sequence, e.instance, e.id, e.label, e.created_at) for e in events] == [
        (1, 1, "a", b"\x01", 1_000_000.0),
        (2, 2, "b", b"", 1_000_000.0),
        (3, 3, "c", words.ANYTHING, 1_000_001.0),
    ]
    assert all(e.kind is EventKind.INSTANCE and e.author == "source" and e.reliability == 1.0 for e in events)
    stored = np.array([np.frombuffer(e.values or b"", "<f8") for e in events[:2]])
    np.testing.assert_array_equal(stored, values)


def test_models_count_apart(store, helper):
    for name in ("m", "n"):
        helper.create(name=name)
        assert helper.push("a", name=name).committed_sequence == 1


def test_pushing_again_stores_nothing(store, helper):
    helper.create()
    values = np.array([[np.nan, 1.0], [2.0, 3.0]])
    store.append_instances("m", ["a", "b"], values, [b"x", b"y"])
    other_nan = values.copy()
    other_nan[0, 0] = np.frombuffer(b"\x01\x00\x00\x00\x00\x00\xf8\x7f")[0]  # missing, by another bit pattern
    assert store.append_instances("m", ["a", "b"], other_nan, [b"x", b"y"]) == AppendedBatch(2, 0, 2)
    for zero, stored in ((-0.0, 1), (0.0, 0)):
        assert store.append_instances("m", ["z"], np.full((1, 2), zero), [b"x"]).stored == stored
    mixed = np.vstack([values[1:], [[9.0, 9.0]]])
    assert store.append_instances("m", ["b", "c"], mixed, [b"y", b"z"]) == AppendedBatch(4, 1, 1)
    assert [e.id for e in store.read_events("m")] == ["a", "b", "z", "c"]
    assert store.get_model("m").instance_count == 4


@pytest.mark.parametrize(
    ("value", "label", "what"), [(2.0, words.ANYTHING, "other values"), (1.0, b"!", "another label")]
)
def test_a_known_id_with_other_content_stores_nothing_of_its_batch(store, helper, value, label, what):
    helper.create()
    helper.push("a")
    message = f"instance a already exists in model m with {what}"
    with pytest.raises(AlreadyExists, match=message) as caught:
        helper.push("new", "a", value=value, label=label)
    assert (caught.value.resource, caught.value.name) == ("instance", "a")
    assert [e.id for e in store.read_events("m")] == ["a"]
    assert helper.push("new") == AppendedBatch(2, 1, 0)


def test_an_id_twice_in_a_batch(store, helper):
    helper.create()
    assert helper.push("a", "b", "a") == AppendedBatch(2, 2, 1)
    with pytest.raises(AlreadyExists, match="instance c"):
        store.append_instances("m", ["c", "c"], np.array([[1.0, 1.0], [1.0, 2.0]]), [b"", b""])
    assert store.get_model("m").sequence_committed == 2


def test_an_empty_batch_is_acknowledged(store, helper):
    helper.create()
    helper.push("a")
    assert store.append_instances("m", [], np.empty((0, 2)), []) == AppendedBatch(1, 0, 0)


@pytest.mark.parametrize(
    ("batch", "field"),
    [
        ((["a", "b"], np.ones((1, 2)), [b""]), "ids"),
        ((["a"], np.ones((1, 2)), []), "ids"),
        ((["a"], np.ones(2), [b""]), "values"),
        ((["a"], np.ones((1, 0)), [b""]), "values"),
        ((["a", ""], np.ones((2, 2)), [b"", b""]), "ids[1]"),
        ((["a" * 201], np.ones((1, 2)), [b""]), "ids[0]"),
        ((["\ud800"], np.ones((1, 2)), [b""]), "ids"),
    ],
)
def test_a_malformed_batch_is_named(store, helper, batch, field):
    helper.create()
    with pytest.raises(InvalidInput) as caught:
        store.append_instances("m", *batch)
    assert caught.value.field == field
    assert store.read_events("m") == []


def test_a_large_batch_is_one_transaction(store, helper):
    helper.create()
    ids = [f"i{k}" for k in range(3000)]
    assert store.append_instances("m", ids, np.ones((3000, 3)), [b""] * 3000) == AppendedBatch(3000, 3000, 0)
    assert store.append_instances("m", ids, np.ones((3000, 3)), [b""] * 3000) == AppendedBatch(3000, 0, 3000)
    assert [e.id for e in store.read_events("m", limit=5000)] == ids


def test_a_group_is_one_commit_with_an_outcome_for_each_push(store, helper):
    helper.create()
    helper.push("a")
    one = np.ones((1, 2))
    token = store.change_token()
    outcomes = store.append_group(
        [
            Push("m", ["b"], one, [words.ANYTHING]),
            Push("m", ["c", "a"], np.ones((2, 2)), [words.ANYTHING, b"other"]),
            Push("no", ["d"], one, [words.ANYTHING]),
            Push("m", ["e", "f"], one, [words.ANYTHING]),
            Push("m", ["g"], one, [words.ANYTHING], [NewValue(0, 4, "late")]),
            Push("m", ["b", "h"], np.ones((2, 2)), [words.ANYTHING, words.ANYTHING]),
        ]
    )
    assert outcomes[0] == AppendedBatch(2, 1, 0)
    assert [type(o) for o in outcomes[1:5]] == [AlreadyExists, NotFound, InvalidInput, Stale]
    assert outcomes[5] == AppendedBatch(3, 1, 1)
    assert [e.id for e in store.read_events("m")] == ["a", "b", "h"]
    assert store.change_token() != token


def test_learned_values_come_with_their_push(store, helper):
    helper.create()
    assert store.vocabulary("m") == {}
    first = [NewValue(1, 0, "red"), NewValue(0, 0, "x"), NewValue(1, 1, "blue")]
    store.append_instances("m", ["a"], np.ones((1, 2)), [b""], first)
    store.append_instances("m", ["b"], np.ones((1, 2)), [b""], [NewValue(1, 2, "äöü")])
    assert store.vocabulary("m") == {0: ("x",), 1: ("red", "blue", "äöü")}


@pytest.mark.parametrize("new", [NewValue(1, 0, "blue"), NewValue(1, 2, "blue"), NewValue(1, 1, "red")])
def test_an_old_vocabulary_stores_nothing(store, helper, new):
    helper.create()
    store.append_instances("m", ["a"], np.ones((1, 2)), [b""], [NewValue(1, 0, "red")])
    with pytest.raises(Stale, match="1 values are learned: read the vocabulary again"):
        store.append_instances("m", ["b"], np.ones((1, 2)), [b""], [NewValue(0, 0, "x"), new])
    assert store.vocabulary("m") == {1: ("red",)}
    assert [e.id for e in store.read_events("m")] == ["a"]


@pytest.mark.parametrize("new", [NewValue(-1, 0, "x"), NewValue(0, 0, ""), NewValue(0, 0, "\ud800")])
def test_a_malformed_new_value_is_named(store, helper, new):
    helper.create()
    with pytest.raises(InvalidInput) as caught:
        store.append_instances("m", ["b"], np.ones((1, 2)), [b""], [new])
    assert caught.value.field == "new_values"
    assert store.read_events("m") == []


def test_a_refused_batch_leaves_no_vocabulary(store, helper):
    helper.create()
    helper.push("a")
    with pytest.raises(AlreadyExists):
        store.append_instances("m", ["a"], np.zeros((1, 2)), [words.ANYTHING], [NewValue(0, 0, "x")])
    assert store.vocabulary("m") == {}


def test_events_and_instances_are_read_by_pages(store, helper):
    helper.create()
    helper.push("a", "b")
    store.respecify("m", b"", budget=1)
    helper.push("c")
    assert [e.sequence for e in store.read_events("m", after=1, limit=2)] == [2, 3]
    assert [e.sequence for e in store.read_events("m", after=3)] == [4]
    assert store.read_events("m", after=4) == []
    assert [e.id for e in store.list_instances("m", after_sequence=1, limit=2)] == ["b", "c"]
    for read in (store.read_events, store.list_instances):
        with pytest.raises(InvalidInput):
            read("m", 0, 0)


def test_an_instance_tells_its_history(store, helper):
    helper.create()
    helper.push("a", "b", label=words.B)
    helper.publish(1, 2)
    first, second = store.lease("m", "ann", 2, 60).queries
    words.refuse(store, "m", first.number, first.token)
    words.answer(store, "m", second.number, second.token)
    told = store.get_instance("m", "b")
    assert [(e.sequence, e.kind, e.instance, e.id, e.author) for e in told] == [
        (2, EventKind.INSTANCE, 2, "b", "source"),
        (4, EventKind.ANSWER, 2, "b", "ann"),
    ]
    answer = told[1]
    assert (answer.label, answer.reliability, answer.conflict, answer.asked) == (
        words.A,
        1.0,
        True,
        b"asked 2",
    )
    assert answer.values is None
    both = store.history("m", [2, 1])
    assert both[2] == told
    refusal = both[1][1]
    assert (refusal.kind, refusal.label, refusal.asked) == (EventKind.REFUSAL, None, b"asked 1")
    assert store.history("m", []) == {}


def test_unknown_instances_are_not_found(store, helper):
    helper.create()
    store.respecify("m", b"", budget=1)
    with pytest.raises(NotFound, match="instance m/x does not exist"):
        store.get_instance("m", "x")
    for sequence in (1, 2):  # a specification, and nothing
        with pytest.raises(NotFound, match=f"instance m/sequence {sequence} does not exist"):
            store.history("m", [sequence])


def test_threads_append_without_gaps(store_url):
    with Store.open(store_url) as store:
        store.create_model("m", b"", budget=0)
        acks: list[AppendedBatch] = []

        def work(name: str) -> None:
            for k in range(10):
                ids = [f"{name}{k}", f"{name}{k}'"]
                acks.append(store.append_instances("m", ids, np.ones((2, 1)), [b"", b""]))

        threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(ack.committed_sequence for ack in acks) == list(range(2, 82, 2))
        events = store.read_events("m")
        assert [e.sequence for e in events] == list(range(1, 81))
        assert len({e.id for e in events}) == 80


def test_pushes_of_a_group_see_each_other(store, helper):
    for name in ("m", "n"):
        helper.create(name=name)
    one = np.ones((1, 2))
    outcomes = store.append_group(
        [
            Push("m", ["a"], one, [words.ANYTHING], [NewValue(0, 0, "red")]),
            Push("n", ["a"], one, [b"other model"]),
            Push(
                "m", ["a", "b"], np.ones((2, 2)), [words.ANYTHING, words.ANYTHING], [NewValue(0, 1, "blue")]
            ),
            Push("m", ["b"], one, [b"another label"]),
            Push("m", ["c"], one, [words.ANYTHING], [NewValue(0, 1, "green")]),
        ]
    )
    assert outcomes[:3] == [AppendedBatch(1, 1, 0), AppendedBatch(1, 1, 0), AppendedBatch(2, 1, 1)]
    assert [type(outcome) for outcome in outcomes[3:]] == [AlreadyExists, Stale]
    assert [event.id for event in store.read_events("m")] == ["a", "b"]
    assert store.get_model("m").instance_count == 2
    assert store.vocabulary("m") == {0: ("red", "blue")}
    assert store.append_group([]) == []


def test_text_with_nul_is_refused(store, helper):
    """No database takes it for text everywhere: SQLite ends JSON there, PostgreSQL refuses it."""
    helper.create()
    nul = r"has a NUL character, which cannot be stored"
    with pytest.raises(InvalidInput, match=f"^ids: {nul}"):
        helper.push("a", "nul\0inside")
    with pytest.raises(InvalidInput, match=f"^name: {nul}"):
        helper.create(name="m\0")
    with pytest.raises(InvalidInput, match=f"^labeller: {nul}"):
        store.lease("m", "ann\0", 1, 60.0)
    assert store.read_events("m") == []
    store.access.record("ann\0", "action", "target", "OK")
    assert store.access.audit()[0].who == "ann\ufffd"


# Where SQLite has no JSON, rows are inserted one by one.
@pytest.mark.parametrize("has_json", [True, False])
def test_rows_come_back_as_they_were_whatever_their_ids_and_labels(
    store, helper, clock, has_json, monkeypatch
):
    monkeypatch.setattr(pushed_rows, "HAS_JSON", has_json)
    helper.create()
    ids = [
        'quote"',
        "back\\slash",
        "é",
        "😀",
        "\ufeff",
        "\x01\n\x7f",
        "\\u0041",
        "\\N",
        "\\.",
        "tab\tand\rreturn",
        "{}",
        "null",
        " ",
        "7",
        "plain",
    ]
    labels = [
        b"",
        b"a",
        b"\0",
        b"\0\xff",
        b"bc",
        b"",
        b"",
        b"d" * 600,
        b"e",
        b"f",
        b"",
        b"\\N\t\n",
        b"g",
        b"h",
        b"\0",
    ]
    values = np.arange(30.0).reshape(15, 2)
    store.append_group(
        [Push("m", ids[:5], values[:5], labels[:5]), Push("m", ids[5:], values[5:], labels[5:])]
    )
    events = store.read_events("m")
    assert [(event.sequence, event.id, event.label, event.values) for event in events] == [
        (at + 1, each, labels[at], values[at].tobytes()) for at, each in enumerate(ids)
    ]
    assert {
        (event.kind, event.author, event.reliability, event.conflict, event.created_at) for event in events
    } == {(EventKind.INSTANCE, "source", 1.0, False, clock.now)}
    assert store.append_instances("m", ids, values, labels) == AppendedBatch(15, 0, 15)


def test_pushes_of_a_group_may_differ_in_width(store, helper):
    helper.create()
    wide, narrow = np.arange(6.0).reshape(2, 3), np.arange(2.0).reshape(2, 1)
    store.append_group(
        [
            Push("m", ["a", "b"], wide, [words.ANYTHING] * 2),
            Push("m", ["c", "d"], narrow, [words.ANYTHING] * 2),
        ]
    )
    assert [event.values for event in store.read_events("m")] == [row.tobytes() for row in (*wide, *narrow)]


def test_a_repeated_push_with_old_numbers_of_values_is_stale_and_does_not_conflict(store, helper):
    """Another server knows neither value: it gives "x" the number that "w" has, and must read the vocabulary again.

    A push beside it repeats a row, so that rows are compared with those in the store.
    """
    helper.create()
    store.append_instances("m", ["a"], np.array([[0.0, 1.0]]), [b""], [NewValue(0, 0, "w")])
    store.append_instances("m", ["b"], np.array([[1.0, 1.0]]), [b""], [NewValue(0, 1, "x")])
    repeated = Push("m", ["a"], np.array([[0.0, 1.0]]), [b""])
    late = Push("m", ["b"], np.array([[0.0, 1.0]]), [b""], [NewValue(0, 0, "x")])
    known, outcome = store.append_group([repeated, late])
    assert known == AppendedBatch(2, 0, 1)
    assert isinstance(outcome, Stale)


def test_a_refused_row_teaches_no_values(store, helper):
    helper.create()
    store.append_instances("m", ["a"], np.array([[0.0, 1.0]]), [b""], [NewValue(0, 0, "w")])
    values, new = np.array([[1.0, 1.0], [2.0, 1.0]]), [NewValue(0, 1, "x"), NewValue(0, 2, "y")]
    push = Push("m", ["a", "b"], values, [b"", b""], new, row_by_row=True)
    (outcome,) = store.append_group([push])
    assert isinstance(outcome, ConflictingRows)
    assert [each.row for each in outcome.refused] == [0]
    assert store.vocabulary("m") == {0: ("w",)}


def test_a_push_row_by_row_stores_what_is_not_refused(store, helper):
    """Refused rows leave nothing: no event, no display, no number; a repetition says the same."""
    helper.create()
    helper.push("taken")
    values = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0], [9.0, 1.0]])
    ids, labels = ["new", "taken", "twice", "twice", "a/b"], [words.ANYTHING] * 5
    shown = [b"1", b"2", b"", b"4", b"5"]
    whole = Push("m", ids, values, labels, displays=shown)
    (outcome,) = store.append_group([whole])
    assert isinstance(outcome, AlreadyExists)
    assert (outcome.name, outcome.row, store.get_model("m").instance_count) == ("taken", 1, 1)
    for stored, known in ((3, 0), (0, 3)):
        (outcome,) = store.append_group([replace(whole, row_by_row=True)])
        assert (outcome.committed_sequence, outcome.stored, outcome.known) == (4, stored, known)
        assert [(each.name, each.row) for each in outcome.refused] == [("taken", 1), ("twice", 3)]
    assert [each.id for each in store.list_instances("m")] == ["taken", "new", "twice", "a/b"]
    assert store.displays("m", [1, 2, 3, 4]) == {2: b"1", 4: b"5"}
    empty = Push("m", [], np.empty((0, 2)), [], row_by_row=True)
    assert store.append_group([empty]) == [AppendedBatch(4, 0, 0)]
