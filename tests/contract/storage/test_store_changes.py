"""Every commit that changes a model is told once, in the order of the commits, to whoever reads from any point."""

import threading
from dataclasses import replace

import numpy as np
import pytest
from sqlalchemy import update
from support import words

from quercus.storage import FailedPrecondition, Policy
from quercus.storage.changes import KEPT_COMMITS, Change
from quercus.storage.schema import change_counter


def names(changes: list[Change]) -> list[str]:
    return [change.name for change in changes]


def test_a_commit_tells_the_models_it_changed(store, helper):
    assert store.changes(0) == []
    for name in ("a", "b", "c"):
        helper.create(name=name)
    assert names(store.changes(0)) == ["a", "b", "c"]
    seen = store.newest_change()
    assert store.changes(seen) == []
    helper.push("x", name="b")
    (change,) = store.changes(seen)
    assert change == Change(store.newest_change(), store.get_model("b").key, "b", 0, 1, 1)
    assert change.number > seen


def test_every_write_to_a_model_is_reported(store, helper):
    helper.create()

    def leased():
        (query,) = store.lease("m", "ann", 1, 60.0).queries
        return query

    def told(do):
        seen = store.newest_change()
        result = do()
        assert names(store.changes(seen)) == ["m"], do
        return result

    told(lambda: helper.push("a", "b", "c"))
    told(lambda: helper.publish(1, 2, 3))
    told(lambda: store.publish_agenda("m", as_of=3, agenda=[], key=store.get_model("m").key))
    told(lambda: helper.publish(1, 2, 3))
    told(lambda: store.replace_report("m", b"report", key=store.get_model("m").key))
    query = told(leased)
    told(lambda: store.extend("m", query.number, query.token, 120.0))
    told(lambda: store.release("m", query.number, query.token))
    query = told(leased)
    told(lambda: words.answer(store, "m", query.number, query.token, words.C, 1.0))
    told(lambda: store.set_policy("m", Policy(max_held=7)))
    told(lambda: store.respecify("m", b"other", budget=5))


def test_a_report_is_replaced_and_nothing_else(store, helper):
    helper.create()
    helper.push("a", "b", "c")
    helper.publish(2, 3)
    before = store.get_model("m")
    store.replace_report("m", b"of another", key=before.key + 1)
    store.replace_report("n", b"of none", key=before.key)
    assert store.get_model("m") == before
    store.replace_report("m", b"new", key=before.key)
    assert store.get_model("m") == replace(before, report=b"new")
    assert [query.instance for query in store.lease("m", "ann", 2, 60.0).queries] == [2, 3]


def test_a_call_without_effect_is_not_reported(store, helper):
    """Else every labeller who looks in vain would wake all others, for ever."""
    helper.create()
    helper.push("a")
    seen = store.newest_change()
    assert store.lease("m", "ann", 1, 60.0).queries == []
    helper.push("a")  # known already
    with pytest.raises(FailedPrecondition):
        store.publish("m", as_of=9, snapshot=b"", agenda=[])
    store.access.record("ann", "nothing", "server", "OK")
    assert (store.newest_change(), store.changes(seen)) == (seen, [])


def test_the_end_of_a_model_is_reported_and_its_successor_is_another(store, helper):
    helper.create()
    first = store.get_model("m")
    seen = store.newest_change()
    store.delete_model("m")
    assert [(change.key, change.tree_version) for change in store.changes(seen)] == [(first.key, None)]
    helper.create()
    second = store.get_model("m")
    assert [(change.key, change.tree_version) for change in store.changes(seen)] == [
        (first.key, None),
        (second.key, 0),
    ]
    assert first.uid != second.uid
    assert len(first.uid) == 36


def test_the_end_of_a_model_is_told_for_a_million_commits(store, helper):
    """A model that is there stays, and so does the greatest key, which no other model may get."""
    for name in ("kept", "one", "two"):
        helper.create(name=name)
    end(store, "one")
    end(store, "two")
    assert names(store.changes(0)) == ["kept", "one", "two"]
    pass_commits(store, KEPT_COMMITS - 3)
    helper.create(name="three")
    end(store, "three")
    assert names(store.changes(0)) == ["kept", "two", "three"]
    pass_commits(store, KEPT_COMMITS)
    end(store, "kept")
    assert names(store.changes(0)) == ["three", "kept"]


def end(store, name):
    store.delete_model(name)
    while store.remove_deleted():
        pass


def pass_commits(store, count):
    """Count on, as so many commits would."""
    with store._database.write() as connection:
        connection.execute(update(change_counter).values(number=change_counter.c.number + count))


def test_everything_has_changed_where_the_newest_commits_were_lost(store, helper):
    """As by a standby that took over without them: readers waited until as many others had come."""
    for name in ("a", "b"):
        helper.create(name=name)
    seen = store.newest_change()
    assert names(store.changes(seen + 3)) == ["a", "b"]
    helper.push("x", name="b")
    assert names(store.changes(seen + 3)) == ["a", "b"]
    assert names(store.changes(store.changes(seen + 3)[-1].number)) == []


def test_models_are_read_by_key(store, helper):
    for name in ("a", "b", "c"):
        helper.create(name=name)
    keys = [store.get_model(name).key for name in ("c", "a")]
    store.delete_model("c")
    assert [record.name for record in store.models_of([*keys, 10**6])] == ["a"]


def test_a_reader_misses_nothing_of_many_writers(store, helper):
    """Each follows the numbers while others commit: at the end it knows of the newest commit of every model."""
    writers, pushes = 8, 12
    for number in range(writers):
        helper.create(name=f"m{number}")
    known: dict[str, int] = {}
    ended = threading.Event()

    def write(number: int) -> None:
        for i in range(pushes):
            store.append_instances(f"m{number}", [f"i{i}"], np.zeros((1, 2)), [words.ANYTHING])

    def follow() -> None:
        seen, last = 0, False
        while not last:
            last = ended.is_set()  # one look after the end
            for change in store.changes(seen):
                seen = change.number
                known[change.name] = store.get_model(change.name).sequence_committed

    threads = [threading.Thread(target=write, args=(number,)) for number in range(writers)]
    reader = threading.Thread(target=follow)
    for thread in (*threads, reader):
        thread.start()
    for thread in threads:
        thread.join()
    ended.set()
    reader.join()
    assert known == {f"m{number}": pushes for number in range(writers)}
