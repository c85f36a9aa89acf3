"""The services over one channel, synchronous or asyncio."""

from __future__ import annotations

from typing import Any

from quercus.v1 import (
    admin_pb2_grpc,
    classify_pb2_grpc,
    instance_pb2_grpc,
    model_pb2_grpc,
    query_pb2_grpc,
    tree_pb2_grpc,
)


class Stubs:
    """The generated stubs; the result type of a call depends on the kind of channel.

    Parameters
    ----------
    channel
        ``grpc.Channel`` or ``grpc.aio.Channel``. The stubs' types differ between the two, hence ``Any``:
        each client states the type of what it gets.
    """

    def __init__(self, channel: Any) -> None:
        self.models: Any = model_pb2_grpc.ModelServiceStub(channel)
        self.instances: Any = instance_pb2_grpc.InstanceServiceStub(channel)
        self.queries: Any = query_pb2_grpc.QueryServiceStub(channel)
        self.classify: Any = classify_pb2_grpc.ClassifyServiceStub(channel)
        self.trees: Any = tree_pb2_grpc.TreeServiceStub(channel)
        self.admin: Any = admin_pb2_grpc.AdminServiceStub(channel)
