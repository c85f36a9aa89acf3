"""The contents of a store that runs for ever: all evidence, a bounded number of old trees and withdrawn queries."""

import pytest

from quercus.belief.errors import InvalidInput
from quercus.storage import NotFound, QueryState
from quercus.storage.queries import agenda


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
    store.answer("m", answered.number, answered.token, b"!", 1.0, False)
    store.refuse("m", refused.number, refused.token)
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
        store.answer("m", 4, "token", b"!", 1.0, False)
    with pytest.raises(NotFound, match=r"^query m/9 does not exist$"):
        store.get_query("m", 9)
    assert store.answer("m", leased.number, leased.token, b"!", 1.0, False).repeated is False
    helper.publish(6)
    assert [query.number for query in store.list_queries("m", [QueryState.OPEN])] == [9]
