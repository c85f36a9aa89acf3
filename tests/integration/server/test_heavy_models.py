"""A model that takes minutes to learn holds up no other, and stops when it is not wanted any more."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from support.command_line import quercus
from support.processes import children, cpu_s, has_open
from support.waiting import until

from quercus.client import Client
from quercus.client.plugins import to_proto
from quercus.server.app import GROWER_HEALTH
from quercus.server.gate import access
from quercus.server.growth.learner_pool import LEARNERS
from quercus.v1 import model_pb2, query_pb2

ROWS = 600
END_S = 90.0
WORKED_S = 0.3
"""CPU seconds; to read its model takes a learner a few hundredths of one."""


def create_heavy(api: Any, tools: Any, model: str, *, known: float = 1.0, **fields: Any) -> None:
    """A forest of total-uncertainty trees with cross-validation; of so many rows the class is known."""
    forest = to_proto({"name": "forest", "trees": 1000, "base": "total-uncertainty"})
    numbers = [tools.numeric(f"x{k}", bins=3) for k in range(4)]
    fields = {"budget": 0} | fields
    api.create(model, attributes=numbers, learner=forest, **fields)
    rng = np.random.default_rng(0)
    values = rng.normal(size=(ROWS, 4))
    push = tools.batch(model, values)
    classes = (values[:, :2] > 0).sum(axis=1)
    push.labels.sets.masks.extend(int(1 << k) if rng.random() < known else 7 for k in classes)
    api.push(push)


def command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # it is gone meanwhile
        return b""


def learner(grower: int) -> int:
    """The one process of a grower that learns; it ends with the grower from before it opens the store.

    It has worked for a moment since it opened the store: one that has not read its model yet finds out by itself when
    the model is gone, and stays for the next one.
    """

    def learning() -> list[int]:
        mine = [pid for pid in children(grower) if b"quercus.server.growth.learner_process" in command(pid)]
        return [pid for pid in mine if has_open(pid, ".db")]  # it has imported everything, and reads rows

    (pid,) = until(learning)
    begun = cpu_s(pid)
    until(lambda: cpu_s(pid) > begun + WORKED_S)
    return int(pid)


@pytest.mark.slow
def test_a_heavy_model_holds_up_no_other(start_live: Any, tools: Any, tmp_path: Path) -> None:
    live = start_live(tmp_path / "store.db")
    api, grower = live.api, live.server.supervisor.pid
    create_heavy(api, tools, "heavy")
    first = learner(grower)
    api.create("light")
    api.push(tools.table_t("light"))
    assert api.grown("light", 21).nodes.counts[0] == 21  # within the deadline of its call
    request = health_pb2.HealthCheckRequest(service=GROWER_HEALTH)
    said = health_pb2_grpc.HealthStub(api.channel).Check(request, timeout=END_S)
    assert said.status == health_pb2.HealthCheckResponse.SERVING
    assert (tools.alive(first), api.get("heavy").sequence_grown) == (True, 0)  # it learns on
    api.models.DeleteModel(model_pb2.DeleteModelRequest(name="models/heavy"))
    until(lambda: not tools.alive(first))  # what it learns nobody wants any more


@pytest.mark.release
def test_a_heavy_model_is_learnt_anew_whatever_happens_to_its_learner(
    start_live: Any, tools: Any, tmp_path: Path
) -> None:
    live = start_live(tmp_path / "store.db")
    api, grower = live.api, live.server.supervisor.pid
    create_heavy(api, tools, "heavy")
    first = learner(grower)
    tools.kill(first, tools.signals.SIGSTOP)  # its model waits alone
    api.create("lighter")
    api.push(tools.table_t("lighter"))
    assert api.grown("lighter", 21).nodes.counts[0] == 21
    tools.kill(first, tools.signals.SIGKILL)
    until(lambda: not tools.alive(first))
    again = learner(grower)
    assert again != first
    assert live.server.supervisor.pid == grower

    shallower = model_pb2.Specification(max_depth=20)
    update = model_pb2.UpdateModelRequest(name="models/heavy", specification=shallower)
    update.update_mask.paths.append("max_depth")
    api.models.UpdateModel(update)
    until(lambda: not tools.alive(again))  # what it learns nobody wants any more

    third = learner(grower)
    tools.kill(grower, tools.signals.SIGKILL)
    until(lambda: not tools.alive(third))
    until(lambda: live.server.supervisor.pid not in (None, grower))
    assert learner(live.server.supervisor.pid) != third  # the next grower begins anew


@pytest.mark.slow
def test_who_answers_is_asked_on_while_it_learns(start_live: Any, tools: Any, tmp_path: Path) -> None:
    """By queries that know the answer; who wants them of a tree that does is told at once that it grows."""
    api = start_live(tmp_path / "store.db").api
    create_heavy(api, tools, "heavy", known=0.2, budget=50, alpha=0.5)
    request = query_pb2.LeaseQueriesRequest(model="models/heavy", labeller="ann", wait={"seconds": 60})
    asked = set()
    for _ in range(3):
        (query,) = api.queries.LeaseQueries(request, timeout=END_S).queries
        asked.add(query.instance)
        done = api.answer(query)
    assert (len(asked), api.get("heavy").sequence_grown) == (3, 0)  # it learns on
    request = query_pb2.LeaseQueriesRequest(
        model="models/heavy", labeller="ann", min_sequence=done.committed_sequence
    )
    told = api.queries.LeaseQueries(request, timeout=END_S)
    assert (list(told.queries), told.idle) == ([], query_pb2.LeaseQueriesResponse.IDLE_GROWING)


@pytest.mark.slow
def test_a_learner_ends_with_its_server(start_child: Any, tools: Any, tmp_path: Path) -> None:
    child = start_child(tmp_path / "store.db")
    create_heavy(child.api, tools, "heavy")
    (grower,) = children(child.process.pid)
    pid = learner(grower)
    tools.kill(pid, tools.signals.SIGSTOP)  # it cannot notice anything by itself
    child.process.kill()
    until(lambda: not tools.alive(pid))


@pytest.mark.slow
def test_status_names_the_models_that_learn_and_those_that_wait(
    start_live: Any, tools: Any, tmp_path: Path
) -> None:
    live = start_live(tmp_path / "store.db")
    names = [f"heavy{k}" for k in range(LEARNERS + 1)]
    for name in names:
        create_heavy(live.api, tools, name)
    with Client(live.server.address) as client:
        status = until(lambda: (found := client.status()).waiting and found)
        assert len(status.learning) == LEARNERS
        assert {*status.learning, *status.waiting} == set(names)
        assert status.waiting_count == 1
        said = quercus("status", server=live.server.address).stdout
        assert f"waiting for their turn: {status.waiting[0]}" in said
        client.delete_model(status.learning[0])
        until(lambda: not client.status().waiting)


@pytest.mark.slow
def test_status_names_no_model_that_the_caller_may_not_touch(
    start_live: Any, tools: Any, tmp_path: Path
) -> None:
    names = [f"heavy{k}" for k in range(LEARNERS + 1)]
    first = start_live(tmp_path / "store.db", grower=False)
    for name in names:
        create_heavy(first.api, tools, name)
    first.close()
    server = start_live(tmp_path / "store.db", access="tokens").server
    issue = partial(access.issue_token, server.core.store.access, roles=["reader"])
    with (
        Client(server.address, token=issue("of-all")[0]) as of_all,
        Client(server.address, token=issue("of-one", models=[names[0]])[0]) as of_one,
    ):
        until(lambda: {*(found := of_all.status()).learning, *found.waiting} == set(names))
        named = until(lambda: {*(found := of_one.status()).learning, *found.waiting})
        assert named == {names[0]}


def test_a_model_that_takes_too_much_memory_stops_alone_and_goes_on_by_a_higher_limit(
    start_live: Any, tools: Any, tmp_path: Path
) -> None:
    limit = 20_000_000  # less than a process takes that holds nothing
    live = start_live(tmp_path / "store.db", max_model_memory_bytes=limit)
    api = live.api
    api.create("large", attributes=[tools.numeric(f"x{k}") for k in range(20)], learner=None, strategy=None)
    rng = np.random.default_rng(0)

    def push(rows: int) -> None:
        batch = tools.batch("large", rng.normal(size=(rows, 20)))
        batch.labels.sets.masks.extend(1 << int(k) for k in rng.integers(0, 3, rows))
        api.push(batch)

    push(100)
    api.grown("large", 100)
    push(limit // 100 // 60)  # from so many rows on it has a process of its own
    stopped = until(lambda: (found := api.get("large")).growth_stopped and found)
    assert (
        "more than 20 MB of memory, the limit of a model (max_model_memory_bytes)" in stopped.growth_stopped
    )
    assert "--limit max_model_memory_bytes=40000000" in stopped.growth_stopped
    assert stopped.sequence_grown == 100
    grown = stopped.tree_version

    push(10)  # it takes rows on, and classifies with the tree that it has; others grow
    with Client(live.server.address) as client:
        assert client.classify("large", rng.normal(size=(5, 20))).version == grown
        assert list(client.status().stopped) == ["large"]
        assert client.get_model("large").growth_stopped == stopped.growth_stopped
    api.create("small")
    api.push(tools.table_t("small"))
    api.grown("small", 21)
    told = quercus("status", server=live.server.address)
    assert told.returncode == 1
    assert "max_model_memory_bytes" in told.stdout
    assert "growth stopped" in quercus("models", "show", "large", server=live.server.address).stdout
    live.close()

    api = start_live(tmp_path / "store.db").api
    committed = api.get("large").sequence_committed
    api.grown("large", committed)
    assert api.get("large").growth_stopped == ""


@pytest.mark.release
def test_a_large_model_that_stands_still_holds_up_no_other(
    start_live: Any, tools: Any, tmp_path: Path
) -> None:
    """It grows in a process of its own, which ends with the grower, and goes on when it may."""
    live = start_live(tmp_path / "store.db")
    api, grower = live.api, live.server.supervisor.pid
    names = [f"c{k}" for k in range(64)]
    numbers = [tools.numeric(f"x{k}") for k in range(200)]
    api.create("large", attributes=numbers, classes=names, learner=None, strategy=None)
    rng = np.random.default_rng(0)
    batch = tools.batch("large", rng.normal(size=(1_000, 200)))
    batch.labels.sets.masks.extend(1 << int(k) for k in rng.integers(0, 64, 1_000))
    api.push(batch)
    (process,) = until(lambda: [pid for pid in children(grower) if b"--only" in command(pid)])
    tools.kill(process, tools.signals.SIGSTOP)
    grown = api.get("large").sequence_grown
    for number in range(3):
        api.create(f"small-{number}")
        api.push(tools.table_t(f"small-{number}"))
        assert api.grown(f"small-{number}", 21).nodes.counts[0] == 21
    assert api.get("large").sequence_grown == grown
    tools.kill(process, tools.signals.SIGCONT)
    api.grown("large", 1_000)

    tools.kill(process, tools.signals.SIGSTOP)  # it cannot notice anything by itself
    tools.kill(grower, tools.signals.SIGKILL)
    until(lambda: not tools.alive(process))
