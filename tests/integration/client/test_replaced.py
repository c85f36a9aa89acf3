"""One client deletes a model and makes another of its name while a second waits: it goes on rightly, or is told."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from integration.client.serving import Serving

from quercus.client import Client, FailedPrecondition, Model, Nominal, NotFound, Numeric, Specification

ROWS = [["a", 0.5], ["a", 1.5], ["b", 0.5], ["b", 2.5]] * 5
OTHER = Specification([Nominal("X", ["a", "b"]), Numeric("y", edges=[1.0, 2.0])], ["o", "s"], budget=3)


@pytest.fixture
def second(serving: Serving) -> Any:
    with Client(serving.address) as connected:
        yield connected


def replace(client: Client, name: str) -> Model:
    client.delete_model(name)
    return client.create_model(name, OTHER)


def meanwhile(waits: Callable[[], Any], then: Callable[[], Any]) -> Future[Any]:
    """Have one thing waited for, and do another; the first ends by itself within a minute, or the test fails."""
    begun = threading.Event()

    def wait() -> Any:
        begun.set()
        return waits()

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(wait)
        assert begun.wait(20)
        then()
        future.exception(60)
    return future


def test_models_of_one_name_have_different_uids(client: Client, second: Client, model: Model) -> None:
    other = replace(second, model.name)
    assert len({model.uid, other.uid}) == 2
    assert client.get_model(model.name).uid == other.uid


def test_who_pushed_to_the_first_gets_queries_of_the_second(
    client: Client, second: Client, model: Model
) -> None:
    """The newest number that was seen is of the model that is gone, and waited for no longer."""
    client.push(model.name, ROWS)
    replace(second, model.name)
    second.push(model.name, ROWS[:4], batch_rows=2)
    second.wait_grown(model.name)
    lease = client.lease(model.name, "ann", wait_s=10)
    assert [query.model for query in lease.queries] == [model.name]
    client.release(lease.queries[0])
    client.push(model.name, ROWS[:4], ids=["a", "b", "c", "d"])  # of the second: remembered anew
    assert client._sequences.newest_sequence(model.name) == 8


def test_streams_of_queries_begin_anew(client: Client, second: Client, model: Model) -> None:
    client.push(model.name, ROWS)
    replace(second, model.name)
    second.push(model.name, ROWS[:8])
    second.wait_grown(model.name)
    with client.stream_queries(model.name, "ann") as stream:
        assert next(stream).model == model.name


@pytest.mark.parametrize("sequence", [None, 20, 10**6])
def test_waiting_for_growth_of_a_replaced_model_is_an_error(
    client: Client, second: Client, model: Model, sequence: int | None
) -> None:
    client.push(model.name, ROWS)
    client.wait_grown(model.name)
    replace(second, model.name)
    if sequence is None:
        assert client.wait_grown(model.name).sequence_committed == 0
        return
    with pytest.raises(FailedPrecondition, match="another has its name"):
        client.wait_grown(model.name, sequence)


def test_waiting_for_growth_ends_when_the_model_is_replaced(
    client: Client, second: Client, model: Model
) -> None:
    client.push(model.name, ROWS)
    ended = meanwhile(lambda: client.wait_grown(model.name, 1000), lambda: replace(second, model.name))
    assert isinstance(ended.exception(), FailedPrecondition | NotFound)


def test_classify_says_that_the_number_is_of_another(client: Client, second: Client, model: Model) -> None:
    client.push(model.name, ROWS)
    grown = client.wait_grown(model.name)
    replace(second, model.name)
    second.wait_grown(model.name)
    with pytest.raises(FailedPrecondition, match=r"min_sequence.*ends at 0") as caught:
        client.classify(model.name, ROWS[:1], min_sequence=grown.sequence_grown)
    assert caught.value.violations[0].field == "min_sequence"


def test_a_sensor_gets_one_error_and_continues(client: Client, second: Client, model: Model) -> None:
    """Within a second of its last push it may not know yet; its rows never reach a model they were not made for."""
    client.push(model.name, [["a", 0.5]])
    second.delete_model(model.name)
    second.create_model(model.name, Specification([Numeric("y"), Nominal("X", ["b", "a"])], ["o", "s"]))
    with pytest.raises(FailedPrecondition, match="another has its name"):
        client.push(model.name, [["a", 0.5]])
    assert client.push(model.name, [[0.5, "a"]]).rows == 1
    (stored,) = client.instances(model.name)
    assert dict(stored.values) == {"y": 0.5, "X": "a"}
