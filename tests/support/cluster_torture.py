"""Two servers on one store in PostgreSQL, under the load of `torture`, while parts are killed, stopped and cut off.

    python tests/support/cluster_torture.py 200        # rounds; a second number is the seed of rows and faults
    python tests/support/cluster_torture.py unfenced   # the control: stale trees are published, and found

Each round has one fault: a server, a grower or a learner is killed (SIGKILL); a grower is stopped (SIGSTOP) until
another has taken over its models, and then continues; a server whose grower has a model is cut off from the database,
every other time from its clients too, until another grower has that model; the database server loses power (SIGQUIT)
and restarts; or its disk is full until a request was refused.

Each fault is proved to have happened: a grower that was stopped or cut off had a successor by the rows of the store, no
connection can be made over a network that is cut, a dead database refuses one, and a full disk refuses a table. What is
checked at the end is what `torture` checks, without backups. Trees never fall behind what was seen, and an observer in
the database finds that each was published by the grower that had its model (`support.publications`).

Namespaces and a separate disk need root. Without it, faults of network and disk are reported as not tested.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "false"  # a fork runs another program at once

import psycopg
from integration.client.serving import Serving

from quercus.client import Client, QuercusError
from quercus.storage.admin.verify import StoreFault
from support.mounts import NotMountedError, fill, mounted
from support.namespaces import NETWORK, Namespace, NoNamespaceError, reaches
from support.postgres import Cluster, binaries
from support.processes import children
from support.publications import counted, live, stale, watch
from support.torture import Torture, show, tell
from support.unbroken import TREE

INSTALL: Final = "skipped: PostgreSQL is not installed: apt-get install postgresql"
SERVERS: Final = 2
TTL_S: Final = 1.0
DISK_MB: Final = 1024
SETTINGS: Final = {"autovacuum": "on", "max_wal_size": "64MB", "min_wal_size": "32MB"}
SERVED: Final = ("env", f"QUERCUS_GROWER_TTL_S={TTL_S}")
STOPPED, CUT, FULL = "stopped grower", "cut network", "full disk"
UNFENCED: Final = Path(__file__).with_name("unfenced")
CONTROL_ROUNDS: Final = 20
LOG_LINES: Final = 60
STATE: Final = (
    "SELECT name, sequence_committed, sequence_grown, owner, epoch FROM model LEFT JOIN growing ON model_id = id",
    "SELECT id, place, until, program FROM grower LEFT JOIN watched.member USING (id)",
    (
        "SELECT pid, application_name, state, wait_event, now() - state_change, pg_blocking_pids(pid), left(query, 80) "
        "FROM pg_stat_activity WHERE datname = current_database()"
    ),
)


class ClusterTorture(Torture):
    """The servers, their database, their load and the faults.

    Parameters
    ----------
    database : a running one.
    folder : for the files of servers outside the store.
    seed, budget : as in `Torture`.
    networks : of each server, with a link for the database and one for clients; none: they are not cut.
    disk : that of the database alone; None: it is not filled.
    is_fenced : False: the control.
    """

    def __init__(
        self, database: Cluster, folder: Path, seed: int = 0, budget: int = 1000, *,
        networks: list[Namespace] | None = None, disk: Path | None = None, is_fenced: bool = True,
    ) -> None:  # fmt: skip
        self.database, self.networks, self.disk = database, networks or [], disk
        self.database.stop()
        self.database.allow(NETWORK)
        self._settings = SETTINGS | {
            "listen_addresses": ",".join(network.links[0].here for network in self.networks)
        }
        self.database.start(**self._settings)
        self._name = database.create()
        self.store = database.url(self._name)
        self._before = SERVED if is_fenced else (*SERVED, f"PYTHONPATH={_python_path(UNFENCED)}")
        self._logs = [folder / f"server{place}.log" for place in range(SERVERS)]
        self._versions: dict[str, int] = {}
        self.cut_from_clients = self.crashes = 0
        self.targets = ("server", "grower", "learner", STOPPED, "database")
        self.targets += (CUT,) * bool(self.networks) + (FULL,) * (disk is not None)
        super().__init__(folder, seed, budget)
        self.url = self.store

    def begin(self) -> None:
        """Start the servers."""
        self.servers = [self._serve(place) for place in range(SERVERS)]
        self.serving = self.servers[0]
        self.addresses = [server.address for server in self.servers]
        watch(self.store)

    def end(self) -> None:
        """Stop the servers in order."""
        for server in self.servers:
            server.stop()

    def _serve(self, place: int, port: int = 0) -> Serving:
        store, flags, before = self.store + "&", (), self._before
        if self.networks:
            network = self.networks[place]
            database, clients = network.links
            store = self.database.url_at(database.here, self._name) + "?"
            flags, before = (
                ("--host", clients.there, "--plaintext", "--access", "open"),
                (*network.before, *before),
            )
        with self._logs[place].open("a") as log:
            store += f"application_name=server{place}"
            return Serving(self.folder, port, *flags, stderr=log, before=before, store=store)

    def _kill(self, target: str) -> None:
        place = int(self.rng.integers(SERVERS))
        self.serving = self.servers[place]
        match target:
            case "stopped grower":
                self._stop_grower()
            case "cut network":
                self._cut_network()
            case "database":
                self._cut_power()
            case "full disk":
                self._fill_disk()
            case "server":
                self.serving.kill()
                self.serving = self.servers[place] = self._serve(place, self.serving.port)
            case _:
                super()._kill(target)
                return
        self.outcome.kills[target] += 1
        self._back_up()

    def _stop_grower(self) -> None:
        """Stop the grower that has the model until another has it, then let it continue."""
        stopped: list[int] = []

        def stops() -> bool:
            owner, epoch = self._owner()
            for pid in self._growers():
                if owner.endswith(f"process {pid}"):
                    os.kill(pid, signal.SIGSTOP)
                    if self._owner() == (owner, epoch):  # it has the model, and cannot give it back
                        stopped.extend((pid, epoch))
                        return True
                    os.kill(pid, signal.SIGCONT)
            return False

        self._wait(stops, "no grower has the model")
        pid, epoch = stopped
        try:
            self._wait(lambda: self._owner()[1] > epoch, "no grower takes over")
        finally:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def _cut_network(self) -> None:
        """Cut off the server whose grower has the model until another has it, every other time from clients too."""
        from_clients = bool(self.outcome.kills[CUT] % 2)
        cut: list[int] = []

        def cuts() -> bool:
            owner, epoch = self._owner()
            for place, server in enumerate(self.servers):
                if any(owner.endswith(f"process {pid}") for pid in children(server.process.pid)):
                    links = self.networks[place].links
                    for link in links if from_clients else links[:1]:
                        link.cut()
                    if self._owner() == (owner, epoch):
                        cut.extend((place, epoch))
                        return True
                    self._heal(place)
            return False

        self._wait(cuts, "no grower has the model")
        place, epoch = cut
        network, port = self.networks[place], self.database.port
        host, address = network.links[0].here, self.servers[place].address
        try:
            assert not network.reaches(host, port), "the database is reached over a network that is cut"
            assert reaches(address) is not from_clients, f"{address} is reached or not, against what was cut"
            self._wait(lambda: self._owner()[1] > epoch, "no grower takes over from the one cut off")
        finally:
            self._heal(place)
        self._wait(lambda: network.reaches(host, port) and reaches(address), "the network is cut")
        self.cut_from_clients += from_clients

    def _heal(self, place: int) -> None:
        for link in self.networks[place].links:
            link.heal()

    def _growers(self) -> list[int]:
        return [pid for server in self.servers for pid in children(server.process.pid)]

    def _learners(self) -> list[int]:
        """Processes that learn, of all growers: one of them has the model."""
        with suppress(FileNotFoundError):  # one has just ended
            return [pid for grower in self._growers() for pid in children(grower)]
        return []

    def _owner(self) -> tuple[str, int]:
        """Return the name of the grower that has the model, and its epoch: the number of takeovers."""
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
        self.database.start(**self._settings)

    def _fill_disk(self) -> None:
        """Fill the disk of the database until a server is refused; without space for its log the database crashes."""
        assert self.disk is not None
        fillers: list[Path] = []
        try:
            with Client(self.addresses[0], outage_s=0) as client:
                self._wait(lambda: self._is_full(fillers), "the disk is full, and takes a table")
                self._wait(lambda: self._has_refused(client), "the disk is full, and no server says so")
        finally:
            for filler in fillers:
                filler.unlink()
        self._wait(self._answers, "the database does not answer")

    def _is_full(self, fillers: list[Path]) -> bool:
        """Fill the free space; return whether the database has no space for a table, or has crashed."""
        assert self.disk is not None
        fillers.append(fill(self.disk, name=f"filler{len(fillers)}"))
        table = "CREATE TEMPORARY TABLE filler AS SELECT repeat('x', 1000) FROM generate_series(1, 1000)"
        try:
            with psycopg.connect(self.store) as connection:
                connection.execute(table)
        except psycopg.errors.DiskFull:
            return True
        except psycopg.OperationalError:
            self.crashes += 1
            return True
        return False

    def _has_refused(self, client: Client) -> bool:
        """Return whether a server reports the full disk, or the database has crashed."""
        with suppress(QuercusError):
            if "no disk space" in client.status().store_trouble:
                return True
        return not self._answers(starts=False)

    def _answers(self, starts: bool = True) -> bool:
        """Return whether the database can be reached; start it if it has ended."""
        if starts and self.database.has_ended:
            self.database.start(**self._settings)
        with suppress(psycopg.OperationalError):
            psycopg.connect(self.store).close()
            return True
        return False

    def _back_up(self) -> None:
        """Instead of a backup: versions of trees only rise, and each is of the grower that had the model."""
        with psycopg.connect(self.store) as connection:
            rows = connection.execute("SELECT name, tree_version, sequence_grown FROM model").fetchall()
            snapshots = connection.execute(
                "SELECT count(*) FROM snapshot a JOIN snapshot b ON a.model_id = b.model_id "
                "AND a.version < b.version AND a.as_of > b.as_of"
            ).fetchone()
            found = stale(connection)
        assert found == [], found
        assert snapshots == (0,), "a tree was published by a grower that knew less than the one before"
        for name, version, _ in rows:
            assert version >= self._versions.get(name, 0), f"the tree of {name} went back"
            self._versions[name] = version

    def _faults(self) -> list[StoreFault]:
        with psycopg.connect(self.store) as connection:
            for table in ("grower", "snapshot"):  # a check reports triggers that are not Quercus's
                connection.execute(f"DROP TRIGGER watched ON {table}")
        return super()._faults()

    def _wait_for_progress(self) -> None:
        """Wait for all growers as well."""
        super()._wait_for_progress()
        self._wait(lambda: self._live_programs() == SERVERS, "a grower is not a member")

    def _live_programs(self) -> int:
        with suppress(psycopg.OperationalError), psycopg.connect(self.store) as connection:
            return live(connection)
        return 0

    def tell_state(self) -> None:
        """Print the state when progress stops: members, sessions, and the newest lines of the logs."""
        with suppress(psycopg.OperationalError), psycopg.connect(self.store) as connection:
            for statement in STATE:
                print(statement, *connection.execute(statement), sep="\n  ")
        for log in self._logs:
            print(log.name, *log.read_text().splitlines()[-LOG_LINES:], sep="\n  ")

    def tell_faults(self) -> None:
        """Print the effects of faults, and the observer's findings."""
        with psycopg.connect(self.store) as connection:
            trees, successions = counted(connection)
        print(
            f"{self.cut_from_clients} cuts from clients too; {self.crashes} full disks crashed the database"
        )
        print(
            f"{trees:,} trees, each of the grower that had its model; it changed {successions:,} times between two"
        )


def _python_path(first: Path) -> str:
    return os.pathsep.join(filter(None, (str(first), os.environ.get("PYTHONPATH"))))


def _networks(stack: ExitStack) -> list[Namespace]:
    """Return a namespace for each server, with a link for the database and one for clients; none where not allowed."""
    networks: list[Namespace] = []
    try:
        for _ in range(SERVERS):
            networks.append(Namespace(links=2))
            stack.callback(networks[-1].remove)
    except NoNamespaceError as error:
        print(f"NOT TESTED, a cut network: {error}")
        return []
    return networks


def _disk(stack: ExitStack, folder: Path) -> Path | None:
    try:
        return stack.enter_context(mounted(folder / "disk", DISK_MB))
    except NotMountedError as error:
        print(f"NOT TESTED, a full disk: {error}")
        return None


def made(stack: ExitStack, programs: Path, seed: int, *, is_fenced: bool = True) -> ClusterTorture:
    """Return the running test, with all faults that this machine allows; the stack cleans up.

    Parameters
    ----------
    stack : cleans up.
    programs : of PostgreSQL.
    seed, is_fenced : as in `ClusterTorture`.
    """
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    folder.chmod(0o711)  # the database is of a user without rights
    networks, disk = _networks(stack), _disk(stack, folder)
    database = Cluster(programs, disk)
    stack.callback(database.remove)
    torture = ClusterTorture(database, folder, seed, networks=networks, disk=disk, is_fenced=is_fenced)
    stack.callback(lambda: [server.kill() for server in torture.servers])
    return torture


def control(programs: Path) -> int:
    """Torture growers whose fence the store does not check; 1 unless stale trees are found."""
    with ExitStack() as stack:
        torture = made(stack, programs, CONTROL_ROUNDS, is_fenced=False)
        torture.targets = tuple(target for target in torture.targets if target in (STOPPED, CUT))
        try:
            torture.run(CONTROL_ROUNDS)
        except AssertionError as error:
            if "was published by" not in str(error):
                raise
            print(f"without the fence it fails, after {dict(torture.outcome.kills)}: {error}")
            return 0
    print(f"without the fence nothing was found in {CONTROL_ROUNDS} rounds")
    return 1


def main() -> int:
    """Torture for as many rounds as the first argument says, and say what was reached."""
    programs = binaries()
    if programs is None:
        print(INSTALL)
        return 0
    if sys.argv[1:] == ["unfenced"]:
        return control(programs)
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else rounds
    started = time.monotonic()
    with ExitStack() as stack:
        torture = made(stack, programs, seed)
        try:
            outcome = torture.run(rounds, show)
        except BaseException:
            torture.tell_state()
            raise
        tell(outcome, time.monotonic() - started)
        torture.tell_faults()
    return 0


if __name__ == "__main__":
    sys.exit(main())
