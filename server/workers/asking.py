"""The keeper asks the other workers for their metrics."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from typing import Any, Final

import grpc

from quercus.server.gate.guard import INTERNAL
from quercus.server.telemetry.metric_sums import Answers
from quercus.server.workers.forwarding import CHANNEL_OPTIONS
from quercus.server.workers.post import Post

ANSWER_S: Final = 1.0
"""Longest time, in seconds, that a worker takes to answer; one that hangs is left out."""


class WorkerMetrics:
    """The metrics of the other workers; for threads of the metrics page.

    Parameters
    ----------
    post : the keeper's place.
    """

    def __init__(self, post: Post) -> None:
        self._channels = {
            worker: grpc.insecure_channel(post.socket_of(worker), options=CHANNEL_OPTIONS)
            for worker in post.others
        }

    def ask(self) -> Answers:
        """Ask all of them at once; return what those say that answer."""
        calls: dict[int, Any] = {
            worker: _metrics_method(channel).future(b"", timeout=ANSWER_S, wait_for_ready=True)
            for worker, channel in self._channels.items()
        }
        found: dict[int, tuple[int, str]] = {}
        for worker, call in calls.items():
            try:
                process, text = json.loads(call.result())
            except grpc.RpcError:
                continue
            found[worker] = process, text
        return found

    def close(self) -> None:
        """End the connections."""
        for channel in self._channels.values():
            channel.close()


def _metrics_method(channel: grpc.Channel) -> Any:
    return channel.unary_unary(f"/{INTERNAL}/Metrics")


async def tell_metrics(own_text: Callable[[], bytes]) -> bytes:
    """Answer the keeper."""
    return json.dumps([os.getpid(), (await asyncio.to_thread(own_text)).decode()]).encode()
