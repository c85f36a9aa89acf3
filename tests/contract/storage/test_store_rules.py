"""Rules run while the store holds the model, so that no concurrent change is lost."""

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from support import words

from quercus.belief.codec import decode
from quercus.storage import Policy, Store

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


def test_a_correction_knows_all_earlier_answers(store_url: str, store, helper) -> None:
    helper.create()
    helper.push("a")
    helper.publish(1)
    store.set_policy("m", Policy(answers_per_query=5, max_conflict=1.0))
    for name in (*WORKERS, "eve"):
        (query,) = store.lease("m", name, 1, 60.0).queries
        words.answer(store, "m", query.number, query.token)

    def amend(own: Store, name: str) -> int:
        return words.amend(own, "m", query.number, name, words.B).sequence

    assert sorted(at_once(store_url, amend)) == [9, 11, 13, 15]  # each with its combination behind it
    history = store.get_instance("m", "a")
    joint = decode(history[-1].label, 8).mass.contour()
    wrong, right = 0.01**4, 0.01  # of four who say B and eve who says A, each at most .99 reliable
    np.testing.assert_allclose(joint[:2] / joint[1], [wrong / right, 1.0])
    assert set(history[-1].author.split()) <= {*WORKERS, "eve", "+"}


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


def test_changes_of_a_policy_build_on_each_other(store: Store, store_url: str) -> None:
    store.create_model("m", b"", budget=0)

    def tag(own: Store, name: str) -> None:
        own.set_policy("m", lambda before: replace(before, tags=(*before.tags, name)))

    at_once(store_url, tag)
    assert sorted(store.policy("m").tags) == sorted(WORKERS)


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
