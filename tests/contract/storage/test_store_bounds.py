"""The contents of a store that runs for ever: all evidence, a bounded number of old trees and withdrawn queries."""

from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import insert, update
from support import words

from quercus.belief.errors import InvalidInput
from quercus.storage import AgendaEntry, NotFound, QueryState, Step, Store
from quercus.storage.log.event_log import history_of
from quercus.storage.queries import agenda
from quercus.storage.queries.agenda import Publication, publish_tree
from quercus.storage.rows import lock_model
from quercus.storage.schema import model, query, query_history
from quercus.storage.sqlite.texts import driver_of


def test_old_tree_versions_are_removed(store, helper):
    helper.create()
    helper.create(name="other")
    helper.push("a")
    helper.publish(name="other")
    for version in range(1, 6):
        assert store.publish("m", as_of=1, snapshot=b"%d" % version, agenda=[], keep=3) == version
    assert [store.snapshot("m", version).data for version in (3, 4, 5)] == [b"3", b"4", b"5"]
    assert (store.snapshot("m").version, store.snapshot("other").version) == (5, 1)
    for version in (1, 2):
        with pytest.raises(
            NotFound,
            match=rf"^tree version m/{version} does not exist any more: old versions are removed, 3 to 5 are kept$",
        ):
            store.snapshot("m", version)
    for version in (0, 6):
        with pytest.raises(NotFound, match=rf"^tree version m/{version} does not exist$"):
            store.snapshot("m", version)
    assert [event.id for event in store.read_events("m")] == ["a"]


def test_at_least_the_newest_tree_is_kept(store, helper):
    helper.create()
    assert store.publish("m", as_of=0, snapshot=b"1", agenda=[], keep=1) == 1
    assert store.publish("m", as_of=0, snapshot=b"2", agenda=[], keep=1) == 2
    assert store.snapshot("m").data == b"2"
    with pytest.raises(InvalidInput, match="keep: is 0, must be at least 1"):
        store.publish("m", as_of=0, snapshot=b"3", agenda=[], keep=0)
    assert store.get_model("m").tree_version == 2


def test_old_withdrawn_queries_are_removed_and_no_others(store, helper, monkeypatch):
    monkeypatch.setattr(agenda, "KEPT_WITHDRAWN", 2)
    helper.create(budget=10)
    helper.push("a", "b", "c", "d", "e", "f")
    helper.publish(1, 2, 3)
    answered, refused, leased = store.lease("m", "ann", 3, 60).queries
    words.answer(store, "m", answered.number, answered.token, words.A, 1.0)
    words.refuse(store, "m", refused.number, refused.token)
    helper.publish(4, 5, 6)  # numbers 4, 5, 6
    helper.publish(6)  # withdraws 4, 5
    helper.publish(4, 5)  # withdraws 6; numbers 7, 8
    helper.publish()  # withdraws them
    states = {query.number: query.state for query in store.list_queries("m")}
    assert states == {
        1: QueryState.ANSWERED,
        2: QueryState.REFUSED,
        3: QueryState.LEASED,
        7: QueryState.WITHDRAWN,
        8: QueryState.WITHDRAWN,
    }
    with pytest.raises(NotFound, match=r"^query m/4 does not exist any more: it was withdrawn$"):
        store.get_query("m", 4)
    with pytest.raises(NotFound, match=r"^query m/4 does not exist any more: it was withdrawn$"):
        words.answer(store, "m", 4, "token", words.A, 1.0)
    with pytest.raises(NotFound, match=r"^query m/9 does not exist$"):
        store.get_query("m", 9)
    assert words.answer(store, "m", leased.number, leased.token, words.A, 1.0).repeated is False
    helper.publish(6)
    assert [query.number for query in store.list_queries("m", [QueryState.OPEN])] == [9]


@pytest.mark.parametrize("withdrawn", [1, 100])  # one of so many; the others are answered
def test_a_publication_reads_no_more_of_many_old_queries(tmp_path, monkeypatch, withdrawn):
    """It read all that were ever withdrawn, or all, while it held the model."""
    monkeypatch.setattr(agenda, "LOOKED_THROUGH", 500)
    monkeypatch.setattr(agenda, "KEPT_WITHDRAWN", 100)
    small, large = (
        steps_of_a_publication(f"sqlite:///{tmp_path}/{n}.db", n, withdrawn) for n in (1000, 4000)
    )
    assert large < 1.5 * small


def steps_of_a_publication(url: str, count: int, withdrawn: int) -> int:
    """Return the work of SQLite, in tens of its steps, where a number of queries are in the history."""
    states = [QueryState.ANSWERED if number % withdrawn else QueryState.WITHDRAWN for number in range(count)]
    given = {
        "position": 0,
        "asked": b"",
        "reason": b"",
        "tree_version": 1,
        "created_at": 0.0,
        "wanted": False,
    }
    held = {
        "step": Step.LEASED,
        "state": QueryState.LEASED,
        "labeller": "ann",
        "token": "t",
        "clock": 1,
        "at": 1,
    }
    ticks: list[None] = []
    with closing(Store.open(url)) as store:
        store.create_model("m", b"specification", budget=1)
        ids = [str(number) for number in range(count + 20)]
        store.append_instances("m", ids, np.zeros((len(ids), 1)), [words.ANYTHING] * len(ids))
        mine = [{"model_id": 1, "number": n, "instance": n} for n in range(1, count + 1)]
        with store._database.write() as connection:
            rows = zip(mine, states, strict=True)
            connection.execute(insert(query), [each | given | {"state": int(state)} for each, state in rows])
            connection.execute(insert(query_history), [each | held for each in mine])
            connection.execute(update(model).values(query_count=count))
        for first in (1, 11):  # the second withdraws what the first opened
            entries = [AgendaEntry(count + first + each, b"", b"") for each in range(10)]
            ticks.clear()
            with store._database.write() as connection:
                driver_of(connection).set_progress_handler(lambda: ticks.append(None), 10)
                publish_tree(
                    connection, "m", Publication(len(ids), b"tree", entries), store._clock_of(connection)
                )
                driver_of(connection).set_progress_handler(None, 0)
        return len(ticks)


def test_what_is_said_of_an_instance_is_looked_up_and_not_searched(tmp_path: Path) -> None:
    """In a log of a thousand rows as in one of ten."""
    counts = []
    for rows in (10, 1_000):
        ticks: list[None] = []
        with Store.open(f"sqlite:///{tmp_path / str(rows)}.db") as store:
            store.create_model("m", b"", budget=9)
            store.append_instances(
                "m", [str(i) for i in range(rows)], np.zeros((rows, 1)), [words.ANYTHING] * rows
            )
            with store._database.write() as connection:
                held = lock_model(connection, "m")
                driver_of(connection).set_progress_handler(partial(ticks.append, None), 10)
                assert [*history_of(connection, held, [7])] == [7]
                driver_of(connection).set_progress_handler(None, 0)
        counts.append(len(ticks))
    assert counts[0] == counts[1]
