"""Several processes on one store; processes that are killed."""

import itertools
import json
import subprocess
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable

import numpy as np
import pytest
from contract.storage.workers import BATCH_SIZES
from support import words
from support.waiting import until

from quercus.storage import EventKind, QueryState, Store

Start = Callable[..., "subprocess.Popen[str]"]
SEEN_S = 30.0  # at the latest what another process committed is seen; at once on a machine at rest


@pytest.mark.slow
def test_what_was_acknowledged_survives_a_kill(store_url: str, start: Start) -> None:
    with Store.open(store_url) as store:
        store.create_model("m", b"", budget=0)
    acknowledged: dict[str, int] = {}
    for run in range(3):
        worker = start("append", store_url, f"run{run}", str(run * 1000))
        assert worker.stdout is not None
        acks, times = [], []
        for line in worker.stdout:
            acks.append(json.loads(line))
            times.append(time.monotonic())
            if len(acks) == 7 + 2 * run:  # the last batch had 5 rows: it dies within the next, of 1,000
                time.sleep((run + 1) / 4 * (times[-2] - times[-3]))
                worker.kill()
                break
        # What it printed before it died counts too; a line cut short was never read by anybody.
        acks += [json.loads(line) for line in worker.stdout if line.endswith("\n")]
        assert worker.wait() == -9
        for ack in acks:
            first = ack["sequence"] - ack["rows"] + 1
            acknowledged.update((f"{ack['batch']}-{row}", first + row) for row in range(ack["rows"]))
        with Store.open(store_url) as store:
            events = store.read_events("m", limit=100_000)
            assert [event.sequence for event in events] == list(range(1, len(events) + 1))
            batches = Counter(event.id.rpartition("-")[0] for event in events)
            for batch, rows in batches.items():
                number = int(batch.rpartition("-")[2])
                assert rows == BATCH_SIZES[number % 2], "a batch is stored whole or not at all"
            assert (
                store.get_model("m").sequence_committed == store.get_model("m").instance_count == len(events)
            )
            there = {event.id: event.sequence for event in events}
            assert there.items() >= acknowledged.items()
            assert len(there) == len(events)
    assert len(acknowledged) >= sum(BATCH_SIZES) * (3 + 4 + 5)


@pytest.mark.slow
def test_labellers_and_a_grower_in_processes_keep_the_budget(store_url: str, start: Start) -> None:
    with Store.open(store_url) as store:
        store.create_model("m", b"", budget=30)
        ids = [f"i{k}" for k in range(80)]
        store.append_instances("m", ids, np.ones((80, 1)), [words.ANYTHING] * 80)
        workers = [
            start("label", store_url, "ann"),
            start("label", store_url, "bob"),
            start("grow", store_url, "g"),
        ]
        printed = [worker.communicate(timeout=90)[0] for worker in workers]
        assert [worker.returncode for worker in workers] == [0, 0, 0]
        lines = [[json.loads(line) for line in text.splitlines()] for text in printed[:2]]
        assert all(line["out"] <= 30 for worker in lines for line in worker if "out" in line)
        _assert_never_two_holders(lines)
        model = store.get_model("m")
        assert (model.queries_answered, model.queries_leased) == (30, 0)
        said = [e for e in store.read_events("m") if e.kind in (EventKind.ANSWER, EventKind.REFUSAL)]
        assert len({e.instance for e in said}) == len(said) == 30 + model.queries_refused
        assert [e.sequence for e in store.read_events("m")] == list(range(1, model.sequence_committed + 1))
        assert len(store.list_queries("m", [QueryState.ANSWERED])) == 30
        assert {e.author for e in said} == {"ann", "bob"}


def _assert_never_two_holders(lines: list[list[dict[str, float]]]) -> None:
    """Between `start` and `end`, on the clock all processes share, the worker certainly held the query."""
    held: defaultdict[int, list[tuple[float, float]]] = defaultdict(list)
    for worker in lines:
        for line in worker:
            if "number" in line:
                held[int(line["number"])].append((line["start"], line["end"]))
    assert any(len(times) > 1 for times in held.values()), "releases make queries change hands"
    for times in held.values():
        times.sort()
        assert all(before[1] < after[0] for before, after in itertools.pairwise(times))


@pytest.mark.slow
def test_processes_that_open_a_new_store_at_once(store_url: str, start: Start) -> None:
    workers = [start("create", store_url, name) for name in ("a", "b", "c")]
    for worker in workers:
        assert worker.stdout is not None
        assert json.loads(worker.stdout.readline()) == {"ready": True}
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    assert [worker.wait(timeout=60) for worker in workers] == [0, 0, 0]
    with Store.open(store_url) as store:
        assert [model.name for model in store.list_models()] == ["a", "b", "c"]


def test_the_change_token_sees_another_process(store_url: str, start: Start) -> None:
    with Store.open(store_url) as store:
        store.create_model("m", b"", budget=0)
        token = store.change_token()
        assert store.change_token() == token
        assert store.read_events("m") == []
        assert store.lease("m", "ann", 1, 60).queries == []  # a write that changes nothing
        assert store.change_token() == token
        worker = start("append", store_url, "other", "0")
        assert worker.stdout is not None
        assert json.loads(worker.stdout.readline())["sequence"] == 5
        until(lambda: store.change_token() != token, seconds=SEEN_S)
        worker.kill()
        worker.wait()
        token = store.change_token()
        store.create_model("n", b"", budget=0)
        assert store.change_token() != token


def test_the_change_token_is_safe_for_threads(store_url: str) -> None:
    with Store.open(store_url) as store:
        seen: list[int] = []
        threads = [threading.Thread(target=lambda: seen.append(store.change_token())) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(seen) == 8
        assert len(set(seen)) == 1
