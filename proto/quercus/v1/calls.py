"""The options of methods (``options.proto``), read from the descriptors."""

from typing import Final

from google.protobuf.descriptor import FileDescriptor, MethodDescriptor
from google.protobuf.descriptor_pb2 import MethodOptions

from quercus.v1 import admin_pb2, classify_pb2, instance_pb2, model_pb2, options_pb2, query_pb2, tree_pb2


def methods_of(*files: FileDescriptor) -> dict[str, MethodDescriptor]:
    """Return the methods of all services of some files by their paths, ``/{service}/{method}``."""
    return {
        f"/{service.full_name}/{method.name}": method
        for file in files
        for service in file.services_by_name.values()
        for method in service.methods
    }


METHODS: Final = methods_of(
    admin_pb2.DESCRIPTOR,
    classify_pb2.DESCRIPTOR,
    instance_pb2.DESCRIPTOR,
    model_pb2.DESCRIPTOR,
    query_pb2.DESCRIPTOR,
    tree_pb2.DESCRIPTOR,
)
"""The methods of ``quercus.v1`` by their paths."""


def traits_of(method: MethodDescriptor) -> options_pb2.CallTraits:
    """Return who may make a call, what it costs, and how it may end."""
    return method.GetOptions().Extensions[options_pb2.call]


def is_reading(method: MethodDescriptor) -> bool:
    """Return whether a call changes nothing."""
    return method.GetOptions().idempotency_level == MethodOptions.NO_SIDE_EFFECTS


def is_repeatable(method: MethodDescriptor) -> bool:
    """Return whether a call may be sent again when its response is lost."""
    return method.GetOptions().idempotency_level != MethodOptions.IDEMPOTENCY_UNKNOWN
