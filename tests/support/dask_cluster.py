"""A Dask cluster on loopback: a scheduler and workers, each a process of its own, with certificates on both sides."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO

import dask
import distributed  # noqa: F401 - its settings must exist before they are changed
import trustme

from support.checkout import ROOT

START_S = 60


class DaskCluster:
    """Scheduler and workers with TLS.

    Parameters
    ----------
    folder
        For certificates and the workers' files.
    workers
        How many.
    allowed_failures
        Number of times that a task may lose its worker.
    """

    def __init__(self, folder: Path, workers: int, allowed_failures: int = 3) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            **_certificates(folder),
            "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": str(allowed_failures),
            "DASK_DISTRIBUTED__WORKER__DAEMON": "False",
        }
        self.environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])
        self.scheduler = self._start(
            "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--protocol", "tls"
        )
        self.port = int(self._heard(self.scheduler, r"Scheduler at:\s+tls://127\.0\.0\.1:(\d+)"))
        self.workers = [self.add_worker() for _ in range(workers)]

    @property
    def name(self) -> str:
        return f"dask://127.0.0.1:{self.port}"

    def trusted(self) -> contextlib.AbstractContextManager[object]:
        """Configure this process like the cluster, for a block."""
        pair = str(self.folder / "pair.pem")
        client = {"distributed.comm.tls.client.cert": pair, "distributed.comm.tls.client.key": pair}
        return dask.config.set({"distributed.comm.tls.ca-file": str(self.folder / "ca.pem"), **client})

    def add_worker(self) -> subprocess.Popen[str]:
        address = f"tls://127.0.0.1:{self.port}"
        worker = self._start(
            "worker",
            address,
            "--nthreads",
            "1",
            "--no-nanny",
            "--no-dashboard",
            "--local-directory",
            str(self.folder),
        )
        self._heard(worker, r"Registered to:\s+(\S+)")
        return worker

    def stop(self) -> None:
        for process in (*self.workers, self.scheduler):
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait(START_S)

    def _start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "dask", *arguments]
        return subprocess.Popen(
            command, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )

    def _heard(self, process: subprocess.Popen[str], pattern: str) -> str:
        """Read the output of a process until it matches `pattern`."""
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if found := re.search(pattern, line):
                threading.Thread(target=_drain, args=(process.stderr,), daemon=True).start()
                return found[1]
        raise AssertionError(f"a process of Dask ended: {''.join(said)}")


def _drain(stream: IO[str]) -> None:
    """Read to the end: otherwise the process would block on a full pipe."""
    with stream:
        stream.read()


def _certificates(folder: Path) -> dict[str, str]:
    authority, other = trustme.CA(), folder / "pair.pem"
    issued = authority.issue_cert("127.0.0.1", "localhost")
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    issued.private_key_and_cert_chain_pem.write_to_path(str(other))
    found = {"DASK_DISTRIBUTED__COMM__TLS__CA_FILE": str(folder / "ca.pem")}
    for role in ("SCHEDULER", "WORKER", "CLIENT"):
        for part in ("CERT", "KEY"):
            found[f"DASK_DISTRIBUTED__COMM__TLS__{role}__{part}"] = str(other)
    return found
