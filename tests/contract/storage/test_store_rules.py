"""Rules run while the store holds the model, so that no concurrent change is lost."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from quercus.storage import AmendContext, AnswerChange, FailedPrecondition, Store

WORKERS = ("ann", "bob", "cid", "dan")


class TooManyError(Exception):
    """An error of the caller, not of the store."""


def at_once(url: str, work: Callable[[Store, str], Any]) -> list[Any]:
    """Return the results of all workers, each with a store of its own; a failure fails the test."""
    ready = threading.Barrier(len(WORKERS))
    done: list[Any] = []

    def run(name: str) -> None:
        with Store.open(url) as own:
            ready.wait(30)
            done.append(work(own, name))

    threads = [threading.Thread(target=run, args=(name,)) for name in WORKERS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == len(WORKERS)
    return done


def test_a_correction_by_rule_knows_all_earlier_answers(store_url: str, store, helper) -> None:
    helper.create()
    helper.push("a")
    helper.publish(1)
    (query,) = store.lease("m", "eve", 1, 60.0).queries
    store.answer("m", query.number, query.token, b"!", 1.0, False)
    met: list[AmendContext] = []

    def amend(own: Store, name: str) -> int:
        def rule(context: AmendContext) -> AnswerChange:
            met.append(context)
            said = " ".join([*(event.author for event in context.history[1:]), name]).encode()
            return AnswerChange(name, said, said, permitted=True)

        return own.amend("m", query.number, rule).sequence

    assert sorted(at_once(store_url, amend)) == [3, 4, 5, 6]
    history = store.get_instance("m", "a")
    assert history[-1].label == " ".join(event.author for event in history[1:]).encode()
    assert {(each.key, each.number, each.settled) for each in met} == {(store.get_model("m").key, 1, True)}
    assert [len(each.history) for each in met] == [2, 3, 4, 5]


def test_a_rule_that_refuses_changes_nothing(store, helper) -> None:
    helper.create()
    helper.push("a")
    helper.publish(1)

    def refusing(context: AmendContext) -> AnswerChange:
        assert not context.settled
        raise FailedPrecondition("the rule says no")

    with pytest.raises(FailedPrecondition, match="the rule says no"):
        store.amend("m", 1, refusing)
    assert store.get_model("m").sequence_committed == 1


def test_revisions_of_a_specification_build_on_each_other(store_url: str, store: Store) -> None:
    store.create_model("m", b"", budget=0)

    def revise(own: Store, name: str) -> int:
        return own.revise("m", lambda before: (before + name.encode(), len(before) + 3)).sequence_committed

    assert sorted(at_once(store_url, revise)) == [1, 2, 3, 4]
    record = store.get_model("m")
    found = [record.specification[start : start + 3].decode() for start in range(0, 12, 3)]
    assert sorted(found) == sorted(WORKERS)
    assert record.budget == 12
    assert store.revise("m", lambda _: None) == record  # nothing is to be changed


def test_there_are_no_more_models_than_are_admitted(store_url: str, store: Store) -> None:
    def admit(count: int) -> None:
        if count > 2:
            raise TooManyError

    def create(own: Store, name: str) -> str:
        try:
            return own.create_model(name, b"", budget=0, admit=admit).name
        except TooManyError:
            return ""

    made = at_once(store_url, create)
    assert sorted(record.name for record in store.list_models()) == sorted(filter(None, made))
    assert len(store.list_models()) == 2
