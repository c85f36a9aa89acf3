"""A log that was written out and read back is the same log, and a wrong line leaves nothing behind."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support import words

from quercus.belief.errors import InvalidInput
from quercus.storage import (
    AlreadyExists,
    Corrections,
    NewValue,
    NotFound,
    Policy,
    Push,
    QueryState,
    Reliability,
    Store,
)
from quercus.storage.admin.verify import verify_store

sqlite_only = pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
"""Cases that are refused before anything is written, whatever the database."""


@pytest.fixture
def filled(store: Store, helper) -> Store:
    """A model with rows, learned values, an answer, a refusal and another specification; queries open."""
    helper.create(budget=5)
    helper.push("a", "b", "ü\n1")
    values = [NewValue(0, 0, "red"), NewValue(1, 0, "x"), NewValue(0, 1, "blue")]
    store.append_instances("m", ["c"], np.array([[0.0, np.nan]]), [b"\x00\xff"], values)
    helper.publish(1, 2, 3)
    first, second = store.lease("m", "ann", 2, 60).queries
    words.answer(store, "m", first.number, first.token, words.A, 0.9)
    words.refuse(store, "m", second.number, second.token)
    store.respecify("m", b"other specification", budget=4)
    return store


def events(store: Store, name: str) -> list:
    return store.read_events(name, 0, 1000)


def test_what_is_read_back_is_the_same_log(filled: Store) -> None:
    lines = list(filled.dump("m"))
    assert filled.load(lines, "copy") == ("copy", 7)
    assert events(filled, "copy") == events(filled, "m")
    assert filled.vocabulary("copy") == filled.vocabulary("m") == {0: ("red", "blue"), 1: ("x",)}
    copy, original = filled.get_model("copy"), filled.get_model("m")
    for field in (
        "initial_specification", "specification", "budget", "created_at", "sequence_committed",
        "instance_count", "queries_answered", "queries_refused", "conflicts",
    ):  # fmt: skip
        assert getattr(copy, field) == getattr(original, field), field
    assert (copy.sequence_grown, copy.tree_version, copy.queries_open) == (0, 0, 0)
    again = list(filled.dump("copy"))
    assert again[1:] == lines[1:]


def test_a_refusal_that_was_taken_back_is_not_counted(filled: Store) -> None:
    (query,) = filled.list_queries("m", [QueryState.REFUSED])
    words.amend(filled, "m", query.number, "ann", None)
    filled.load(list(filled.dump("m")), "copy")
    assert filled.get_model("copy").queries_refused == filled.get_model("m").queries_refused == 0


def test_another_store_reads_it_too(filled: Store, tmp_path: Path) -> None:
    with Store.open(f"sqlite:///{tmp_path / 'other.db'}") as other:
        other.load(line + "\n" for line in filled.dump("m"))
        assert events(other, "m") == events(filled, "m")
    assert verify_store(f"sqlite:///{tmp_path / 'other.db'}") == []


def test_what_people_see_beside_rows_goes_along(filled: Store) -> None:
    """At any number of rows; a row has it, nothing else."""
    ids = [f"r{k}" for k in range(2_500)]
    shown = [b"beside " + name.encode() if k % 1_000 == 7 else b"" for k, name in enumerate(ids)]
    push = Push("m", ids, np.zeros((2_500, 2)), [b"\x00\xff"] * 2_500, displays=shown)
    assert not isinstance(filled.append_group([push])[0], Exception)
    lines = list(filled.dump("m"))
    filled.load(lines, "copy")
    rows = range(1, filled.get_model("m").sequence_committed + 1)
    found = filled.displays("m", rows)
    assert found == filled.displays("copy", rows)
    assert sorted(found.values()) == sorted(data for data in shown if data)
    for place, wrong in ((5, "none"), (2, "%")):  # of an answer; no base64
        with pytest.raises(InvalidInput, match=f"line {place + 1}: has display"):
            filled.load([*lines[:place], changed(lines[place], display=wrong), *lines[place + 1 :]], "wrong")


def test_the_policy_goes_along(filled: Store) -> None:
    policy = Policy(2, 0.25, Reliability.ESTIMATED, 7, None, 5, Corrections.NOBODY, ("red", "wine, white"))
    filled.set_policy("m", policy)
    filled.load(filled.dump("m"), "copy")
    assert filled.policy("copy") == policy
    lines = list(filled.dump("m"))
    for wrong in ({"tags": "red"}, {"max_held": 0}, {"reliability": 9}, {"per_hour": "many"}, {"what": 1}, 3):
        with pytest.raises(InvalidInput, match=r"policy|max_held"):
            filled.load([json.dumps(json.loads(lines[0]) | {"policy": wrong}), *lines[1:]], "wrong")
    head = {key: value for key, value in json.loads(lines[0]).items() if key != "policy"}
    with pytest.raises(InvalidInput, match="line 1: has policy None, must be an object"):
        filled.load([json.dumps(head), *lines[1:]], "none")


@sqlite_only
def test_names_are_checked(filled: Store) -> None:
    with pytest.raises(AlreadyExists, match="model m already exists"):
        filled.load(filled.dump("m"))
    with pytest.raises(NotFound, match="model nothing"):
        list(filled.dump("nothing"))


def changed(line: str, **cells: object) -> str:
    content = json.loads(line) | cells
    return json.dumps({key: value for key, value in content.items() if value is not None})


SPOILT: dict[str, tuple[Callable[[list[str]], list[str]], str]] = {
    "nothing": (lambda lines: [], "line 1: is not JSON"),
    "another file": (lambda lines: ['{"a": 1}'], "not an exported log"),
    "a later version": (lambda lines: [changed(lines[0], version=2), *lines[1:]], "has version 2"),
    "no budget": (lambda lines: [changed(lines[0], budget="5"), *lines[1:]], "line 1: has budget '5'"),
    "vocabulary": (lambda lines: [changed(lines[0], vocabulary=[[1, 2]]), *lines[1:]], "in its vocabulary"),
    "cut off": (lambda lines: lines[:-1], "ends after event 6, its first line promises 7 events"),
    "cut within a line": (lambda lines: [*lines[:-1], lines[-1][:20]], "line 8: is not JSON"),
    "one left out": (lambda lines: [*lines[:3], *lines[4:]], "line 4: is event 4, must be event 3"),
    "one twice": (lambda lines: [*lines[:3], *lines[2:]], "line 4: is event 2, must be event 3"),
    "a list": (lambda lines: [*lines[:2], "[]", *lines[3:]], "line 3: is not an object"),
    "kind": (lambda lines: [*lines[:2], changed(lines[2], kind=77), *lines[3:]], "line 3: is of kind 77"),
    "label": (
        lambda lines: [*lines[:2], changed(lines[2], label="%"), *lines[3:]],
        "label that is not base64",
    ),
    "no author": (lambda lines: [*lines[:2], changed(lines[2], author=None), *lines[3:]], "lacks author"),
    "author": (lambda lines: [*lines[:2], changed(lines[2], author=3), *lines[3:]], "has author 3"),
    "unknown": (lambda lines: [*lines[:2], changed(lines[2], mood="good"), *lines[3:]], "line 3: has mood"),
}  # fmt: skip


@pytest.mark.parametrize("what", SPOILT)
def test_a_wrong_line_is_named_and_nothing_is_stored(filled: Store, what: str) -> None:
    spoil, said = SPOILT[what]
    lines = spoil(list(filled.dump("m")))
    with pytest.raises(InvalidInput, match=said):
        filled.load(lines, "copy")
    with pytest.raises(NotFound):
        filled.get_model("copy")


@sqlite_only
@pytest.mark.parametrize("name", ["Wine", "a/b", "../a", "a b", "", "a\n", "1a", "a" * 64])
def test_a_log_becomes_no_model_that_no_service_can_name(filled, name):
    lines = list(filled.dump("m"))
    with pytest.raises(InvalidInput, match="1 to 63 characters"):
        filled.load(lines, name)


def test_an_answer_that_was_taken_back_and_given_again_counts_twice_in_a_copy_too(
    store: Store, helper
) -> None:
    """The budget of a copy is spent as that of the original is: corrections cost nothing, every reply does."""
    helper.create(budget=9)
    helper.push("a", "b")
    helper.publish(1, 2)

    store.set_policy("m", Policy(answers_per_query=2, max_conflict=1.0))

    def reply(labeller: str) -> int:
        (query,) = store.lease("m", labeller, 1, 60).queries
        words.answer(store, "m", query.number, query.token)
        return query.number

    number = reply("ann")
    words.amend(store, "m", number, "ann", words.B)
    words.amend(store, "m", number, "ann", None)
    assert reply("ann") == number
    assert reply("bob") == number
    words.amend(store, "m", number, "ann", words.C)
    words.amend(store, "m", number, "ann", None)
    words.amend(store, "m", number, "ann", words.D)
    assert reply("eve") != number
    store.load(list(store.dump("m")), "copy")
    assert [store.get_model(name).queries_answered for name in ("m", "copy")] == [4, 4]
