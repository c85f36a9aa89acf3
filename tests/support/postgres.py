"""A private cluster of PostgreSQL: made by initdb as a user without rights, on a socket in a folder of its own."""

import ctypes
import os
import shutil
import signal
import subprocess
import tempfile
import time
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest

from support.waiting import until

INSTALL = "PostgreSQL is not installed: apt-get install postgresql"
START_S = 60.0
MEMORY = Path("/dev/shm")  # noqa: S108 - commits that wait for no disk; what is tested waits for them all the same
SETTINGS = {
    "listen_addresses": "",
    "max_connections": "200",
    "shared_buffers": "32MB",
    "autovacuum": "off",
    "max_wal_size": "256MB",
    "log_min_messages": "fatal",
}
TEMPLATE = "quercus_template"


def binaries() -> Path | None:
    """The folder of initdb and postgres, of the newest version; None when there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda each: int(each.parts[-3]))
    if found:
        return found[-1].parent
    there = shutil.which("initdb")
    return Path(there).resolve().parent if there else None


def require_binaries() -> Path:
    """Return `binaries`; without them, skip the test, or fail it in continuous integration."""
    folder = binaries()
    if folder is None and os.environ.get("CI") == "true":
        pytest.fail(INSTALL)
    if folder is None:
        pytest.skip(INSTALL)
    return folder


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGQUIT)


class Cluster:
    """A running database server; its databases are copies of one that has an empty store.

    Parameters
    ----------
    folder : of the programs.
    disk : a folder in which its own is made; None: in memory.
    of : the primary that this one is a standby of; None: it is a primary itself.
    """

    def __init__(self, folder: Path, disk: Path | None = None, of: "Cluster | None" = None) -> None:
        self._programs = folder
        self.user = "quercus"
        self._as = {"user": "nobody"} if os.geteuid() == 0 else {}
        disk = disk or (MEMORY if MEMORY.is_dir() else None)
        self.root = Path(tempfile.mkdtemp(prefix="quercus-pg-", dir=disk))
        if self._as:
            shutil.chown(self.root, "nobody")
        self._numbers = count(1)
        self._process: subprocess.Popen[bytes] | None = None
        if of is not None:
            place = ["--host", str(of.root), "--port", str(of.port), "--username", self.user]
            self._run("pg_basebackup", "--pgdata", str(self.data), "--write-recovery-conf", "--no-sync",
                      "--checkpoint=fast", *place)  # fmt: skip
            self.start()
            return
        language = ["--locale=C.UTF-8", "--locale-provider=icu", "--icu-locale=en-US"]  # in which "a" < "B"
        self._run("initdb", "--pgdata", str(self.data), "--username", self.user, "--auth=trust", "--no-sync",
                  "--encoding=UTF8", *language)  # fmt: skip
        self.start()

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def pid(self) -> int:
        """Process id of the server, whose children serve connections."""
        assert self._process is not None, "it is stopped"
        return self._process.pid

    @property
    def port(self) -> int:
        """Port of the server, where it listens on addresses; its socket has the number in its name."""
        return int(self._port)

    @property
    def has_ended(self) -> bool:
        """True if the server has ended by itself."""
        return self._process is not None and self._process.poll() is not None

    def _run(self, program: str, *arguments: str) -> None:
        ran = subprocess.run(
            [str(self._programs / program), *arguments],
            capture_output=True, check=False, cwd=self.root, **self._as,  # type: ignore[call-overload]
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr.decode()

    def start(self, **settings: str) -> None:
        """Start the server, and wait until it answers."""
        self._port = settings.get("port", "5432")  # names the socket too
        both = SETTINGS | {"unix_socket_directories": str(self.root)} | settings
        words = [word for name, value in both.items() for word in ("-c", f"{name}={value}")]
        log = (self.root / "log").open("ab")
        self._process = subprocess.Popen(
            [str(self._programs / "postgres"), "-D", str(self.data), *words],
            stdout=log, stderr=log, cwd=self.root, preexec_fn=_end_with_parent, **self._as,  # type: ignore[call-overload]  # noqa: PLW1509
        )  # fmt: skip
        log.close()
        deadline = time.monotonic() + START_S
        while True:
            assert self._process.poll() is None, (self.root / "log").read_text()
            try:
                self.execute("SELECT 1")
                return
            except psycopg.OperationalError:
                assert time.monotonic() < deadline, "PostgreSQL does not answer"
                time.sleep(0.02)

    def allow(self, network: str) -> None:
        """Let the addresses of a network connect, from the next start on."""
        with (self.data / "pg_hba.conf").open("a") as file:
            file.write(f"\nhost all all {network} trust\n")

    def make_standby(self) -> "Cluster":
        """Start a standby; from now on a commit is acknowledged when the standby has it on its disk, too."""
        made = Cluster(self._programs, of=self)
        self.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.execute("SELECT pg_reload_conf()")
        state = "SELECT sync_state FROM pg_stat_replication"
        until(lambda: self.execute(state) == [("sync",)], "the standby to follow")
        return made

    def promote(self) -> None:
        """Make the primary of a standby."""
        self.execute("SELECT pg_promote()")

    def stop(self, number: int = signal.SIGINT) -> None:
        """Stop the server: by SIGINT in order, by SIGQUIT as if it had lost its power."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(30)
            self._process = None

    def remove(self) -> None:
        """Stop the server and remove all it wrote."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.root)

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Execute a statement outside of a transaction."""
        place = {"host": str(self.root), "port": self._port, "user": self.user, "dbname": database}
        with psycopg.connect(**place, autocommit=True) as connection:
            ran = connection.execute(statement)  # type: ignore[call-overload]
            return ran.fetchall() if ran.description else []

    def url(self, database: str) -> str:
        """URL of a database."""
        return f"postgresql://{self.user}@/{database}?host={self.root}&port={self._port}"

    def url_at(self, host: str, database: str) -> str:
        """URL of a database by the network; `allow` its addresses first."""
        return f"postgresql://{self.user}@{host}:{self._port}/{database}"

    def create(self, template: str = "template0") -> str:
        """Create a database, and return its name."""
        name = f"test{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
        return name

    def drop(self, database: str) -> None:
        """Remove a database, whoever uses it."""
        self.execute(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)")
