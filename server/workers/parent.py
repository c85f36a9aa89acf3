"""The parent process of a server's workers: it starts them, replaces those that end, and passes signals on.

It serves no calls and only holds the port, so little in it can fail. If it is killed, the workers shut down as after
SIGTERM, and a service manager can restart the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from quercus.server.config import Config
from quercus.server.gate.listening import HTTP, check_address, hold_port, join_address
from quercus.server.machine import SHARES_PORTS
from quercus.server.plugins import choose_plugins
from quercus.server.telemetry.logs import set_up_logging
from quercus.server.wire.errors import BadStart
from quercus.server.workers.board import KEEPER, Board

_log = logging.getLogger(__name__)
FIRST_DELAY_S: Final = 0.1
LAST_DELAY_S: Final = 10.0
HEALTHY_S: Final = 10.0
"""Seconds after which a running worker resets the delay of restarts."""

SILENCE_S: Final = 30.0
"""Seconds without a beat after which a worker counts as hanging or suspended, and is replaced."""

TICK_S: Final = 1.0
"""Length, in seconds, of the periods in which silence is counted."""

PLACES: Final = ("/tmp", "/dev/shm")  # noqa: S108 - a new folder of mode 0700 is created there
"""Alternatives to the temporary folder for the folder of sockets, for example in a read-only container."""

MAX_SOCKET_PATH: Final = 90
"""Most bytes of the path of the folder of sockets; the system allows 107 for a socket."""


def serve_with_workers(config: Config, announce: Callable[[str], None]) -> None:
    """Run a server of several processes until SIGTERM or SIGINT; a second signal ends them at once.

    SIGHUP is passed on to all workers.

    Parameters
    ----------
    config : configuration of the server.
    announce : called with the server's address once all workers accept calls.

    Raises
    ------
    BadStart
        If the system cannot share a port, the store cannot be used, the port is taken, or a plug-in is missing.
    """
    if not SHARES_PORTS:
        raise BadStart(
            f"workers: is {config.workers}, and {sys.platform} does not divide the connections to a port among "
            "processes, as Linux does with SO_REUSEPORT: leave workers at 1"
        )
    set_up_logging(config.log_level, config.log_format)
    choose_plugins(config.plugins)

    async def run() -> None:
        folder = make_private_folder()
        try:
            await Parent(config, folder).run(announce)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    asyncio.run(run())


def make_private_folder() -> Path:
    """Create a folder that only this user may enter, with a path that is short enough for sockets.

    Raises
    ------
    BadStart
        If there is no place for it.
    """
    for place in (None, *PLACES):  # None stands for TMPDIR or the system's temporary folder
        with contextlib.suppress(OSError):
            folder = Path(tempfile.mkdtemp(prefix="quercus-", dir=place))  # mode 0700
            if len(os.fsencode(folder)) <= MAX_SOCKET_PATH:
                return folder
            folder.rmdir()
    raise BadStart(
        "workers: need a folder for their sockets, and no temporary folder can be written whose path is short: "
        "set TMPDIR to one, such as a file system in memory"
    )


class Parent:
    """The workers of one server. Create and use it in one event loop.

    Parameters
    ----------
    config : configuration of the server.
    folder : private folder for their sockets.
    """

    def __init__(self, config: Config, folder: Path) -> None:
        self._config = config
        self._folder = folder
        self._key = secrets.token_bytes(16)
        self._memory = os.memfd_create("quercus-workers")
        self._board = Board(config.workers, self._memory)
        self._processes: dict[int, asyncio.subprocess.Process] = {}
        self._stopping = asyncio.Event()
        self._held: list[socket.socket] = []

    async def run(self, announce: Callable[[str], None]) -> None:
        """Start the workers, announce their address, keep them running, and shut them down after a signal."""
        config = self._config
        check_address(config.host, config.port)
        self._held, port = hold_port(config.host, config.port)
        if config.http_port:
            check_address(config.http_host, config.http_port, HTTP)
            self._held += hold_port(config.http_host, config.http_port, HTTP)[0]
        self._config = config = config.model_copy(update={"port": port})
        self._listen_to_signals()
        keeping: list[asyncio.Task[None]] = []
        try:
            await asyncio.gather(*(self._spawn(worker) for worker in range(config.workers)))
            if failure := await self._brief(KEEPER):  # first, because it creates the store if there is none
                raise BadStart(failure)
            others = (self._brief(worker) for worker in range(1, config.workers))
            if failure := next(filter(None, await asyncio.gather(*others)), ""):
                raise BadStart(failure)
            _log.info("%d workers answer calls", config.workers)
            announce(join_address(config.host, port))
            keeping = [
                asyncio.create_task(self._keep_running(worker), name=f"quercus-worker-{worker}")
                for worker in range(config.workers)
            ]
            await self._stopping.wait()
            _log.info("stopping")
        finally:
            for task in keeping:
                task.cancel()
            await self._end_all()
            for each in self._held:
                each.close()

    def _listen_to_signals(self) -> None:
        def end(number: int) -> None:
            if self._stopping.is_set():
                for process in self._processes.values():
                    with contextlib.suppress(ProcessLookupError):
                        process.kill()
                shutil.rmtree(self._folder, ignore_errors=True)
                os._exit(128 + number)
            self._stopping.set()

        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, end, number)
        loop.add_signal_handler(signal.SIGHUP, self._signal_all, signal.SIGHUP)

    def _signal_all(self, number: int) -> None:
        for process in self._processes.values():
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(number)

    async def _spawn(self, worker: int) -> None:
        """Start the process of a worker, which then waits for its brief."""
        self._board.clear(worker)
        self._processes[worker] = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "quercus.server.workers.worker", str(worker),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            pass_fds=(self._memory,),
            process_group=0,  # Ctrl-C in the terminal is for the parent, which passes it on
        )  # fmt: skip

    async def _brief(self, worker: int) -> str:
        """Give a worker its brief, and wait until it accepts calls; return its failure, empty if it succeeds."""
        process = self._processes[worker]
        assert process.stdin is not None  # noqa: S101 - pipes were requested
        assert process.stdout is not None  # noqa: S101
        # the pipe stays open: its end tells the worker that its parent has ended
        with contextlib.suppress(ConnectionError):  # the worker has ended already, and its output says why
            brief = {
                "count": self._config.workers,
                "board": self._memory,
                "key": self._key.hex(),
                "folder": str(self._folder),
                "config": self._config.model_dump(mode="json"),
            }
            process.stdin.write(json.dumps(brief).encode() + b"\n")
            await process.stdin.drain()
        line = await process.stdout.readline()
        told: dict[str, Any] = json.loads(line) if line.endswith(b"\n") else {}
        if told.get("ready"):
            return ""
        code = await process.wait()
        return str(told.get("failed") or f"worker {worker} ended with code {code} before it accepted calls")

    async def _keep_running(self, worker: int) -> None:
        """Start a worker again whenever it ends."""
        delay, started = FIRST_DELAY_S, time.monotonic()
        what = f"worker {worker}" + (", which writes and grows trees," if worker == KEEPER else "")
        while True:
            process = self._processes[worker]
            watch = asyncio.create_task(self._watch(worker, process))
            try:
                code = await process.wait()
            finally:
                watch.cancel()
            self._board.clear(worker)
            if worker == KEEPER:
                self._board.set("grower_well", 0)
                self._board.set("writable", 0)
            if time.monotonic() - started >= HEALTHY_S:
                delay = FIRST_DELAY_S
            self._board.take_level()
            _log.warning("%s ended with code %s; starting it again in %.1f s", what, code, delay)
            await asyncio.sleep(delay)
            delay, started = min(2 * delay, LAST_DELAY_S), time.monotonic()
            try:
                await self._spawn(worker)
                failure = await self._brief(worker)
            except OSError as error:  # out of memory or of processes, perhaps only for now
                failure = str(error)
            if failure:
                _log.error("%s cannot be started: %s", what, failure)
            else:
                _log.warning("%s is there again (process %d)", what, self._processes[worker].pid)

    async def _watch(self, worker: int, process: asyncio.subprocess.Process) -> None:
        """Kill a worker whose event loop hangs, so that its connections are not answered."""
        beats, silent_s = self._board.beats_of(worker), 0.0
        while silent_s < SILENCE_S:
            await asyncio.sleep(
                TICK_S
            )  # a period in which this process was suspended counts once, however long
            before, beats = beats, self._board.beats_of(worker)
            silent_s = silent_s + TICK_S if beats == before else 0.0
        _log.error(
            "worker %d does not answer for %.0f s: it hangs, or is stopped, and is ended", worker, SILENCE_S
        )
        process.kill()

    async def _end_all(self) -> None:
        """End the workers; the keeper ends last, because it waits until the others have ended."""
        self._signal_all(signal.SIGTERM)

        async def end(worker: int, process: asyncio.subprocess.Process) -> None:
            await process.wait()
            self._board.clear(worker)

        await asyncio.gather(*(end(*each) for each in self._processes.items()))
