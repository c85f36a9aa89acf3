"""Server reflection under both names: v1, which tools ask for first, and v1alpha, the only one that grpcio has.

The messages of both are the same on the wire; only the names of their packages differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, text_format
from grpc_reflection.v1alpha import reflection, reflection_pb2, reflection_pb2_grpc

V1: Final = "grpc.reflection.v1.ServerReflection"


def enable_reflection(names: Sequence[str], server: Any) -> None:
    """Add reflection, by which callers can list the services of a server and their messages.

    Parameters
    ----------
    names : names of the services, without reflection itself.
    server : server of ``grpc.aio``, before its start.
    """
    pool = descriptor_pool.Default()
    try:
        pool.FindServiceByName(V1)
    except KeyError:
        alpha = descriptor_pb2.FileDescriptorProto()
        reflection_pb2.DESCRIPTOR.CopyToProto(alpha)
        renamed = text_format.MessageToString(alpha).replace("v1alpha", "v1")
        pool.AddSerializedFile(
            text_format.Parse(renamed, descriptor_pb2.FileDescriptorProto()).SerializeToString()
        )
    servicer = reflection.aio.ReflectionServicer((*names, V1, reflection.SERVICE_NAME))
    reflection_pb2_grpc.add_ServerReflectionServicer_to_server(servicer, server)
    method = grpc.stream_stream_rpc_method_handler(
        servicer.ServerReflectionInfo,
        reflection_pb2.ServerReflectionRequest.FromString,
        reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    handler = grpc.method_handlers_generic_handler(V1, {"ServerReflectionInfo": method})
    server.add_generic_rpc_handlers((handler,))
