"""Two servers on one store in PostgreSQL, under the load of `torture`, while parts are killed, stopped and cut off.

    python tests/support/cluster_torture.py 200        # rounds; a second number is the seed of rows and faults

A round strikes one of: a server, a grower, a learner (SIGKILL); a grower that stands still (SIGSTOP) until another has
taken its models, and then goes on; the database server, which loses its power (SIGQUIT) and comes back. Each fault is
proved to have happened: a stopped grower had a successor by the rows of the store, and a dead database refused a
connection. What is checked at the end is what `torture` checks, without backups; trees never fall behind what was seen.
That growers without the fence fail such a check is shown by `tests/integration/cluster/test_fence.py`.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "false"  # what is forked is another program at once

import psycopg
from integration.client.serving import Serving

from quercus.trees.precompile import prepare
from support.postgres import Cluster, binaries
from support.processes import children
from support.torture import Torture, show, tell
from support.unbroken import TREE

INSTALL: Final = "skipped: PostgreSQL is not installed: apt-get install postgresql"
SERVERS: Final = 2
TTL_S: Final = 1.0
SETTINGS: Final = ("env", f"QUERCUS_GROWER_TTL_S={TTL_S}")


class ClusterTorture(Torture):
    """The servers, their database, their load and its killer.

    Parameters
    ----------
    database : a running one.
    folder : for what servers write beside the store.
    seed, budget : as of `Torture`.
    """

    targets = ("server", "grower", "learner", "stopped grower", "database")

    def __init__(self, database: Cluster, folder: Path, seed: int = 0, budget: int = 1000) -> None:
        self.database = database
        self.store = database.url(database.create())
        self._versions: dict[str, int] = {}
        super().__init__(folder, seed, budget)
        self.url = self.store

    def begin(self) -> None:
        """Start the servers."""
        self.servers = [Serving(self.folder, 0, before=SETTINGS, store=self.store) for _ in range(SERVERS)]
        self.serving = self.servers[0]
        self.addresses = [server.address for server in self.servers]

    def end(self) -> None:
        """Stop the servers in order."""
        for server in self.servers:
            server.stop()

    def _kill(self, target: str) -> None:
        place = int(self.rng.integers(SERVERS))
        self.serving = self.servers[place]
        match target:
            case "stopped grower":
                self._stop_grower()
            case "database":
                self._cut_power()
            case "server":
                self.serving.kill()
                self.serving = self.servers[place] = Serving(
                    self.folder, self.serving.port, before=SETTINGS, store=self.store
                )
            case _:
                super()._kill(target)
                return
        self.outcome.kills[target] += 1
        self._back_up()

    def _stop_grower(self) -> None:
        """Let the grower that has the model stand still until another has it, and then go on."""
        stopped: list[int] = []

        def stops() -> bool:
            owner, epoch = self._owner()
            for pid in self._growers():
                if owner.endswith(f"process {pid}"):
                    os.kill(pid, signal.SIGSTOP)
                    if self._owner() == (owner, epoch):  # it still has it, and cannot give it back
                        stopped.extend((pid, epoch))
                        return True
                    os.kill(pid, signal.SIGCONT)
            return False

        self._wait(stops, "no grower has the model")
        pid, epoch = stopped
        try:
            self._wait(lambda: self._owner()[1] > epoch, "nobody succeeds the grower")
        finally:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def _growers(self) -> list[int]:
        return [pid for server in self.servers for pid in children(server.process.pid)]

    def _learners(self) -> list[int]:
        """Processes that learn, of all growers: one of them has the model."""
        with suppress(FileNotFoundError):  # one has just ended
            return [pid for grower in self._growers() for pid in children(grower)]
        return []

    def _owner(self) -> tuple[str, int]:
        """Return the grower that has the model, in words, and its epoch: how often a grower took it."""
        with psycopg.connect(self.store) as connection:
            found = connection.execute(
                "SELECT coalesce(grower.place, ''), growing.epoch FROM growing JOIN model ON model.id = model_id "
                "LEFT JOIN grower ON grower.id = owner WHERE model.name = %s",
                (TREE,),
            ).fetchone()
        return (str(found[0]), int(found[1])) if found else ("", 0)

    def _cut_power(self) -> None:
        self.database.stop(signal.SIGQUIT)
        with suppress(psycopg.OperationalError):
            psycopg.connect(self.store).close()
            raise AssertionError("the database answers")
        time.sleep(float(self.rng.uniform(0, 1)))
        self.database.start()

    def _back_up(self) -> None:
        """Instead of a backup: versions of trees only rise, and each was grown from no less than the one before."""
        with psycopg.connect(self.store) as connection:
            rows = connection.execute("SELECT name, tree_version, sequence_grown FROM model").fetchall()
            snapshots = connection.execute(
                "SELECT count(*) FROM snapshot a JOIN snapshot b ON a.model_id = b.model_id "
                "AND a.version < b.version AND a.as_of > b.as_of"
            ).fetchone()
        assert snapshots == (0,), "a tree was published by a grower that knew less than the one before"
        for name, version, _ in rows:
            assert version >= self._versions.get(name, 0), f"the tree of {name} went back"
            self._versions[name] = version


def main() -> None:
    """Torture for as many rounds as the first argument says, and say what was reached."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else rounds
    programs = binaries()
    if programs is None:
        print(INSTALL)
        return
    prepare()  # compiled once, kernels are loaded by every grower
    database = Cluster(programs)
    started = time.monotonic()
    try:
        with tempfile.TemporaryDirectory() as folder:
            torture = ClusterTorture(database, Path(folder), seed=seed)
            try:
                outcome = torture.run(rounds, show)
            finally:
                for server in torture.servers:
                    server.kill()
    finally:
        database.remove()
    tell(outcome, time.monotonic() - started)


if __name__ == "__main__":
    main()
