"""A model labelled through two servers on one PostgreSQL, while a grower and a server are killed: the tree of SQLite.

    python tests/support/cluster_demo.py

The same rows, queries and answers go through one server on a SQLite file, and through two servers on a PostgreSQL of
their own. A third of the way the grower of the model is killed, at two thirds a server. The two served trees must be
equal in every number. Without PostgreSQL nothing is shown, and what to install is said.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Final

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from integration.client.serving import Serving
from integration.service.play import settle
from integration.service.problems import Problem, doubter, iris

from quercus.client import Client, Tree
from support.postgres import Cluster, binaries
from support.processes import children

INSTALL: Final = "skipped: PostgreSQL is not installed: apt-get install postgresql"
MODEL: Final = "iris"
TTL_S: Final = 1.0
SETTINGS: Final = ("env", f"QUERCUS_GROWER_TTL_S={TTL_S}")
WAIT_S: Final = 60.0

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


def on_postgresql(problem: Problem, database: Cluster) -> Tree:
    """The tree of two servers, of which one dies."""
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
        return labelled(clients, problem, {third: kill_growers, 2 * third: kill_server})


def main() -> int:
    """Run both, and compare; 1 where they differ."""
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
        together = on_postgresql(problem, database)
    finally:
        database.remove()
    is_same = list(map(repr, alone.nodes)) == list(map(repr, together.nodes))
    print(f"SQLite and PostgreSQL: {'equal in every number' if is_same else 'the trees DIFFER'}")
    print(f"{len(together.nodes)} nodes; {time.monotonic() - started:.0f} s")
    return 0 if is_same else 1


if __name__ == "__main__":
    sys.exit(main())
