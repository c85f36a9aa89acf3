"""Keeps the grower process running: starts it, restarts it when it ends, and ends it with the server."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import subprocess
import sys
import time
import uuid
from typing import Final

from quercus.server.config import Config
from quercus.server.growth.child_process import LOOK
from quercus.server.growth.heartbeat import Heartbeat
from quercus.server.machine import memory_of_machine
from quercus.server.wire.limits import MODEL_MEMORY_SHARE, QUIET_S
from quercus.storage import without_secrets
from quercus.v1 import admin_pb2

_log = logging.getLogger(__name__)
FIRST_DELAY_S: Final = 0.1
LAST_DELAY_S: Final = 30.0
HEALTHY_S: Final = 10.0
"""Seconds after which a running grower resets the delay of restarts."""

STOP_S: Final = 5.0
SILENCE_S: Final = 30.0
"""Seconds without a heartbeat after which a grower counts as hanging or suspended. A step of a model takes two seconds
at most, ten times as long on a busy machine."""

TICK_S: Final = 1.0
"""Length, in seconds, of the periods in which silence is counted. A period in which this process was suspended counts
once, however long, and heartbeats that the grower sent meanwhile are read first."""

LOADING_S: Final = 60.0
"""Additional seconds for the first heartbeat of a new grower."""


class Supervisor:
    """Runs one grower process."""

    def __init__(self, config: Config) -> None:
        self.member = uuid.uuid4().hex
        """Identity of this server's growers among those that share the store."""
        url, self._secrets = without_secrets(config.store_url)
        self._command = [
            sys.executable, "-m", "quercus.server.growth.grower", url,
            "--poll-ms", str(config.poll_ms), "--log-level", config.log_level,
            "--log-format", config.log_format, "--keep-trees", str(config.keep_trees),
            "--snapshot-interval-s", str(config.snapshot_interval_s),
            "--agenda-share", str(config.agenda_share),
            "--member", self.member, "--ttl-s", str(config.grower_ttl_s),
            "--max-model-memory-bytes",
            str(config.max_model_memory_bytes or int(MODEL_MEMORY_SHARE * memory_of_machine())),
        ]  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None
        self._task: asyncio.Task[None] | None = None
        self._stopping = False
        self._wanted = config.grower
        self._restarts = 0
        self._beat = Heartbeat()
        self._silent_s = 0.0  # seconds since the last heartbeat
        self._changed_at = -math.inf  # time of the last noticed change

    @property
    def pid(self) -> int | None:
        """Process id of the grower; None while there is none."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    @property
    def restart_count(self) -> int:
        """Number of times that the grower was restarted."""
        return self._restarts

    @property
    def is_well(self) -> bool:
        """True if the grower runs and makes progress, or the server runs without one."""
        well = admin_pb2.GrowerStatus
        return self.status().state in (well.STATE_OFF, well.STATE_RUNNING)

    @property
    def is_silent(self) -> bool:
        """True if the grower runs, but makes no progress."""
        return self.pid is not None and self._silent_s >= SILENCE_S

    def status(self) -> admin_pb2.GrowerStatus:
        """Return the status of the grower."""
        states = admin_pb2.GrowerStatus
        if not self._wanted:
            return states(state=states.STATE_OFF)
        if self.pid is None:
            return states(state=states.STATE_RESTARTING, restarts=self._restarts)
        return states(
            state=states.STATE_SILENT if self.is_silent else states.STATE_RUNNING,
            pid=self.pid,
            restarts=self._restarts,
            at=self._beat.at if self.is_silent else "",
            learning=self._beat.learning,
            waiting=self._beat.waiting,
            waiting_count=self._beat.waiting_count,
        )

    @property
    def damaged(self) -> dict[str, str]:
        """The damage of models that the grower cannot read, by name."""
        return dict(self._beat.damaged)

    def set_log_level(self, level: str) -> None:
        """Set the log level of this grower and of later ones."""
        self._command[self._command.index("--log-level") + 1] = level
        self._send_line(level)

    def note_change(self) -> None:
        """Note that the store has changed, and wake a grower that may poll it rarely by now."""
        now = time.monotonic()
        is_first, self._changed_at = now >= self._changed_at + QUIET_S, now
        if is_first:
            self._send_line(LOOK)

    def _send_line(self, line: str) -> None:
        if self.pid is not None and self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # it has just ended
                self._process.stdin.write(f"{line}\n".encode())

    async def start(self) -> None:
        """Start the first grower."""
        process = await self._start_grower()
        self._task = asyncio.create_task(self._keep_running(process), name="quercus-supervisor")

    async def close(self) -> None:
        """End the grower, and wait until it has ended."""
        self._stopping = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if (process := self._process) is None:
            return
        process.terminate()
        try:
            await asyncio.to_thread(process.wait, STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            await asyncio.to_thread(process.wait)
        await self._forget_pipes(process)

    async def _forget_pipes(self, process: subprocess.Popen[bytes]) -> None:
        """Close the pipes of a grower that has ended, once its last heartbeat is read."""
        if process.stdin is not None:
            process.stdin.close()
        await asyncio.wait([self._listening], timeout=TICK_S)
        self._listening.cancel()

    async def _start_grower(self) -> subprocess.Popen[bytes]:
        # The grower ends when the pipe to its standard input ends, with this process.
        # A separate process group, because Ctrl-C in the terminal is for the server, which ends the grower itself.
        # By subprocess, not by the event loop: uvloop forks, of which gRPC warns in a process that serves.
        self._process = subprocess.Popen(  # noqa: S603
            self._command,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **self._secrets, "PYTHONUNBUFFERED": "1"},
            process_group=0,
        )
        if self._process.stdin is not None:  # never wait for a suspended grower that reads nothing
            os.set_blocking(self._process.stdin.fileno(), False)
        self._silent_s, self._beat = -LOADING_S, Heartbeat()
        self._listening = asyncio.create_task(self._read_heartbeats(self._process), name="quercus-heartbeat")
        return self._process

    async def _read_heartbeats(self, process: subprocess.Popen[bytes]) -> None:
        """Record each heartbeat of the grower, until its output ends."""
        stream = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(stream), process.stdout
        )
        with contextlib.closing(transport):
            while (beat := await self._next_beat(stream)) is not None:
                self._silent_s, self._beat = 0.0, beat

    async def _next_beat(self, stream: asyncio.StreamReader) -> Heartbeat | None:
        """Return the next heartbeat, or None at the end; other output of the grower is ignored."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(TICK_S):
                    while True:
                        with contextlib.suppress(ValueError):  # also raised for a line that is too long
                            line = await stream.readline()
                            return Heartbeat.decode(line) if line.endswith(b"\n") else None
            self._silent_s += TICK_S
            if SILENCE_S <= self._silent_s < SILENCE_S + TICK_S:
                at = f" at model {self._beat.at}" if self._beat.at else ""
                _log.warning("the grower makes no progress%s, for %.0f s now", at, self._silent_s)

    async def _keep_running(self, process: subprocess.Popen[bytes]) -> None:
        delay = FIRST_DELAY_S
        while True:
            started = time.monotonic()
            code = await asyncio.to_thread(process.wait)
            await self._forget_pipes(process)
            self._restarts += 1
            if time.monotonic() - started >= HEALTHY_S:
                delay = FIRST_DELAY_S
            _log.warning("the grower ended with code %s; starting it again in %.1f s", code, delay)
            while True:
                await asyncio.sleep(delay)
                delay = min(2 * delay, LAST_DELAY_S)
                try:
                    process = await self._start_grower()
                    break
                except OSError as error:  # out of memory or of processes, perhaps only for now
                    _log.error("the grower cannot be started (%s); trying again in %.1f s", error, delay)
