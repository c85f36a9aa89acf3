"""A model labelled through two servers on one PostgreSQL, while a grower and a server are killed: the tree of SQLite.

    python tests/support/cluster_demo.py

The same rows, queries and answers go through one server on a SQLite file, and through two servers on a PostgreSQL of
their own. A third of the way the grower of the model is killed, at two thirds a server. Then two workers of a Dask
cluster grow the tree of the rows as the second server has them; one of them is killed when it has read its rows.

The two served trees must be equal in every number. That of the workers must be the same node for node, up to rounding:
growth adds up the events of the log, and the workers the rows that they lead to. Without PostgreSQL nothing is shown,
and what to install is said.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from integration.client.serving import Serving
from integration.service.play import settle
from integration.service.problems import Problem, doubter, iris

from quercus.client import Client, Instance, Tree
from quercus.client.specification_messages import message_of_specification
from quercus.client.tree_nodes import TreeNode
from quercus.compute.sharded import grow_sharded
from quercus.server.wire.models import complete_specification, decode_specification
from quercus.server.wire.trees import encode_head, encode_nodes
from quercus.specification.model import Specification
from quercus.trees import FlatTree
from support.dask_cluster import DaskCluster
from support.postgres import Cluster, binaries
from support.processes import children
from support.tasks import given, rows_of_a_mortal_worker

INSTALL: Final = "skipped: PostgreSQL is not installed: apt-get install postgresql"
MODEL: Final = "iris"
TTL_S: Final = 1.0
SETTINGS: Final = ("env", f"QUERCUS_GROWER_TTL_S={TTL_S}")
WAIT_S: Final = 60.0
ROUNDING: Final = 1e-9
"""Bits, and probabilities, by which estimates may differ that were added up in another order."""

Event = Callable[[list[Client]], None]


def labelled(clients: list[Client], problem: Problem, events: dict[int, Event]) -> Tree:
    """Push the rows, answer every query through one client after another, and return the tree.

    Parameters
    ----------
    clients : of the servers; an event may remove some.
    problem : rows, and who answers.
    events : what happens before which answer.
    """
    clients[0].create_model(MODEL, problem.specification)
    for start in range(0, len(problem.rows), 10):
        some = slice(start, start + 10)
        labels = None if problem.labels is None else problem.labels[some]
        clients[start // 10 % len(clients)].push(MODEL, problem.rows[some], labels, problem.ids[some])
    oracle, answers = doubter(problem), 0
    for turn in count():
        if answers in events:
            events.pop(answers)(clients)
        leased = clients[turn % len(clients)].lease(MODEL, "ann", wait_s=5)
        if not leased.queries and leased.idle in ("budget_spent", "nothing_to_ask"):
            break
        for query in leased.queries:
            settle(clients[(turn + 1) % len(clients)], query, oracle)  # leased here, answered there
            answers += 1
    print(f"  {answers} queries answered or refused")
    clients[0].wait_grown(MODEL, timeout_s=WAIT_S)
    return clients[0].tree(MODEL)


def connected(stack: ExitStack, servers: Sequence[Serving]) -> list[Client]:
    """Clients of servers, once these are ready."""
    clients = [stack.enter_context(Client(server.address, outage_s=WAIT_S)) for server in servers]
    for client in clients:
        client.wait_ready(WAIT_S)
    return clients


def on_sqlite(problem: Problem) -> Tree:
    """The tree of one server on a file."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        server = Serving(Path(folder))
        stack.callback(server.kill)
        return labelled(connected(stack, [server]), problem, {})


def on_postgresql(problem: Problem, database: Cluster) -> tuple[Tree, list[Instance]]:
    """The tree of two servers, of which one dies, and the rows as the other one has them."""
    url = database.url(database.create())
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        servers = [Serving(Path(folder), before=SETTINGS, store=url) for _ in range(2)]
        for server in servers:
            stack.callback(server.kill)

        def kill_growers(_: list[Client]) -> None:
            for pid in children(servers[1].process.pid):
                os.kill(pid, signal.SIGKILL)
            print("  the grower of the second server is killed")

        def kill_server(clients: list[Client]) -> None:
            servers[0].kill()
            del clients[0]
            print("  the first server is killed")

        third = problem.specification.budget // 3
        clients = connected(stack, servers)
        tree = labelled(clients, problem, {third: kill_growers, 2 * third: kill_server})
        return tree, list(clients[0].instances(MODEL))


def on_dask(problem: Problem, rows: Sequence[Instance], served: Tree) -> Tree:
    """The tree that two workers grow of the rows, of which one dies; names and edges are those of the served tree."""
    specification = decode_specification(
        complete_specification(message_of_specification(problem.specification))
    )
    values = np.array([[row.values[name] for name in problem.names] for row in rows], dtype=np.float64)
    contours = np.array([row.contour for row in rows])
    half = len(rows) // 2
    with tempfile.TemporaryDirectory() as folder:
        deaths = Path(folder) / "deaths"
        deaths.mkdir()
        shards = [
            partial(rows_of_a_mortal_worker, deaths, values[:half], contours[:half]),
            partial(given, values[half:], contours[half:]),
        ]
        cluster = DaskCluster(Path(folder), 2)
        try:
            with cluster.trusted():
                grown = grow_sharded(specification, shards, cluster.name)
            dead = sum(worker.poll() is not None for worker in cluster.workers)
        finally:
            cluster.stop()
    print(f"  {len(rows)} rows in two shards; {dead} worker was killed, and the other one grew the tree")
    assert dead == 1
    return _named(specification, grown, served)


def _named(specification: Specification, grown: FlatTree, served: Tree) -> Tree:
    """The tree as a client sees it."""
    attributes = served.attributes
    message = encode_head(
        specification, [each.edges for each in attributes], [each.branches for each in attributes]
    )
    message.nodes.CopyFrom(encode_nodes(grown))
    message.name = f"models/{MODEL}/trees/{served.version}"
    return Tree.from_message(message)


def shape(node: TreeNode) -> tuple[object, ...]:
    """All of a node that is no estimate."""
    return (
        node.parent,
        node.branch,
        node.attribute,
        node.class_name,
        node.count,
        node.undecided,
        node.stop,
        *node.intervals,
    )


def estimates(node: TreeNode) -> np.ndarray:
    """The estimates of a node."""
    ends = [end for interval in node.intervals.values() for end in interval]
    return np.array([*node.theta, *node.belief, *node.plausibility, *ends])


def difference(one: Tree, other: Tree) -> float:
    """The largest difference of two trees' estimates; infinite where a node is another one."""
    if list(map(shape, one.nodes)) != list(map(shape, other.nodes)):
        return np.inf
    pairs = zip(map(estimates, one.nodes), map(estimates, other.nodes), strict=True)
    return max(float(np.abs(left - right).max()) for left, right in pairs)


def main() -> int:
    """Run all three, and compare; 1 where they differ."""
    programs = binaries()
    if programs is None:
        print(INSTALL)
        return 0
    problem, started = iris(), time.monotonic()
    print("one server on SQLite:")
    alone = on_sqlite(problem)
    print("two servers on PostgreSQL:")
    database = Cluster(programs)
    try:
        together, rows = on_postgresql(problem, database)
    finally:
        database.remove()
    print("two workers of a Dask cluster:")
    off = difference(together, on_dask(problem, rows, together))
    is_same, is_near = list(map(repr, alone.nodes)) == list(map(repr, together.nodes)), off <= ROUNDING
    print(f"SQLite and PostgreSQL: {'equal in every number' if is_same else 'the trees DIFFER'}")
    print(f"Dask: {'the same' if is_near else 'OTHER'} nodes, estimates at most {off:.1g} apart")
    print(f"{len(together.nodes)} nodes; {time.monotonic() - started:.0f} s")
    return 0 if is_same and is_near else 1


if __name__ == "__main__":
    sys.exit(main())
