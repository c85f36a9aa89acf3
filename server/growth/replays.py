"""The replays of a server, each in a process of its own; only a few at once, and each for a limited time."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import asdict
from typing import Final

from quercus.server.growth.replaying import ReplayTask
from quercus.server.telemetry import logs
from quercus.server.wire.errors import ResourceExhausted, Unavailable
from quercus.storage import FailedPrecondition, NotFound, without_secrets
from quercus.v1 import tree_pb2 as pb

MOST: Final = 2
"""Most replays at once, because each holds a log in memory."""
LONGEST_S: Final = 120.0
"""Seconds after which a replay is ended."""
RETRY_S: Final = 2.0


class Replays:
    """Runs replays, and ends each with its call.

    Parameters
    ----------
    url : URL of the store; its secrets are passed to the processes in their environment.
    log_format : format of the processes' logs.
    most, longest_s : most replays at once, and seconds after which one is ended.
    """

    def __init__(
        self, url: str, log_format: str = "human", most: int = MOST, longest_s: float = LONGEST_S
    ) -> None:
        self._url, self._secrets = without_secrets(url)
        self._log_format = log_format
        self._most = most
        self._longest_s = longest_s
        self._free = asyncio.Semaphore(most)

    async def explain_row(self, task: ReplayTask) -> pb.ExplainRowResponse:
        """Replay a log for a row; a cancelled call kills the process.

        Raises
        ------
        ResourceExhausted
            If the most replays allowed are running.
        FailedPrecondition
            If there is too much to replay, or it takes too long.
        NotFound
            If the model was deleted, replaced or extended meanwhile.
        Unavailable
            If the process ended early.
        """
        if self._free.locked():
            raise ResourceExhausted(
                f"{self._most} replays are running, as many as this server allows at once", RETRY_S
            )
        async with self._free:
            try:
                async with asyncio.timeout(self._longest_s):
                    return await self._replay(task)
            except TimeoutError:
                raise FailedPrecondition(
                    f"the replay took longer than {self._longest_s:g} s: ask about a later event"
                ) from None

    async def _replay(self, task: ReplayTask) -> pb.ExplainRowResponse:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "quercus.server.growth.replay_process", self._url,
            "--log-level", logs.current_level(), "--log-format", self._log_format,
            stdin=pipe, stdout=pipe, env={**os.environ, **self._secrets},
        )  # fmt: skip
        try:
            return await _outcome(process, task)
        finally:
            if process.returncode is None:
                process.kill()
                await asyncio.shield(process.wait())


async def _outcome(process: asyncio.subprocess.Process, task: ReplayTask) -> pb.ExplainRowResponse:
    if process.stdin is None or process.stdout is None:
        raise TypeError("a replay needs pipes")
    process.stdin.write(json.dumps(asdict(task)).encode() + b"\n")
    try:
        said = json.loads(await process.stdout.readline())
        data = await process.stdout.readexactly(said["bytes"])
    except (ValueError, asyncio.IncompleteReadError, ConnectionError):
        raise Unavailable(f"the replay of model {task.model} ended early: send it again") from None
    if "gone" in said:
        raise NotFound("model", task.model, "any more: it was deleted, replaced or extended meanwhile")
    if "refused" in said:
        raise FailedPrecondition(said["refused"])
    if "trouble" in said:
        raise RuntimeError(f"model {task.model} cannot be replayed: {said['trouble'][:200]}")
    return pb.ExplainRowResponse.FromString(data)
