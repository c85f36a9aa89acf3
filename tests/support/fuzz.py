"""Mutated messages for every RPC of a live server, and garbage where frames should be.

    python tests/support/fuzz.py 10000

Whatever comes, a server answers with a status that says what is wrong with the message, and goes on.
"""

from __future__ import annotations

import asyncio
import socket
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import grpc
import numpy as np
from google.protobuf import message_factory
from google.protobuf.descriptor import FieldDescriptor
from integration.client.serving import Serving

from quercus.client import Client, Nominal, Numeric, Specification
from quercus.proto.v1 import admin_pb2, classify_pb2, instance_pb2, model_pb2, query_pb2, tree_pb2

FILES: Final = (model_pb2, instance_pb2, query_pb2, classify_pb2, tree_pb2, admin_pb2)
METHODS: Final = {
    f"{service.full_name}/{method.name}": method
    for file in FILES
    for service in file.DESCRIPTOR.services_by_name.values()
    for method in service.methods
}
BUGS: Final = frozenset({"INTERNAL", "UNKNOWN", "UNIMPLEMENTED", "DATA_LOSS"})
MODEL = "m"
NAMES: Final = [
    "models/m", "models/m/queries/1", "models/m/instances/row-1", "models/m/trees/latest", "models/m/trees/1", "m",
    "models/none", "models/", "", "models/m/", "models/m/queries/-1", "models/m/queries/99999999999999999999",
]  # fmt: skip
TEXTS: Final = ["a", "b", "o", "s", "ann", "row-1", "é\u0000", " ", "x" * 300, "?", "latest", "info", *NAMES]
RIGHT: Final = {
    **dict.fromkeys(("GetModel", "UpdateModel"), "models/m"),
    "DeleteModel": "models/none",
    "GetInstance": "models/m/instances/row-1",
    **dict.fromkeys(("GetTree", "RenderTree"), "models/m/trees/latest"),
}
"""What `name` is about, most of the time, so that a message gets past the door."""
INTEGERS: Final = [0, 1, 2, 3, 7, 100, 1000, 65535, 2**31 - 1, -1]
DOUBLES: Final = [0.0, 1.0, 0.5, -1.0, 2.0, 1e308, float("nan"), float("inf"), -float("inf"), 5e-324]
AT_ONCE = 32
DEADLINE_S = 0.5
Rng = np.random.Generator


def message(descriptor: Any, rng: Rng, depth: int = 0) -> Any:
    """A message of a type, each field there or not, with values that are often right and often extreme."""
    made = message_factory.GetMessageClass(descriptor)()
    for field in descriptor.fields:
        if rng.random() < (0.35 if depth else 0.2) or depth > 5:
            continue
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            value = field.message_type.fields_by_name["value"]
            for _ in range(rng.integers(0, 3)):
                key = str(rng.choice(TEXTS))
                if value.message_type is not None:
                    getattr(made, field.name)[key].CopyFrom(message(value.message_type, rng, depth + 1))
                else:
                    getattr(made, field.name)[key] = scalar(value, rng)
        elif field.is_repeated:
            count = int(rng.choice([0, 1, 2, 3, 6, 12, 40]))
            values = [
                message(field.message_type, rng, depth + 1)
                if field.message_type is not None
                else scalar(field, rng)
                for _ in range(min(count, 3) if field.message_type is not None else count)
            ]
            getattr(made, field.name).extend(values)
        elif field.message_type is not None:
            getattr(made, field.name).CopyFrom(message(field.message_type, rng, depth + 1))
        else:
            setattr(made, field.name, scalar(field, rng))
    return made


def scalar(field: FieldDescriptor, rng: Rng) -> Any:
    """A value that fits the type of a field."""
    kind = field.cpp_type
    if kind == FieldDescriptor.CPPTYPE_STRING:
        if field.type == FieldDescriptor.TYPE_BYTES:
            return rng.bytes(int(rng.integers(0, 20)))
        named = field.name in ("name", "model", "parent", "instance")
        return str(rng.choice(NAMES[:5] if named and rng.random() < 0.7 else TEXTS))
    if kind in (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT):
        return float(rng.choice(DOUBLES))
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        return bool(rng.integers(0, 2))
    if kind == FieldDescriptor.CPPTYPE_ENUM:
        return int(rng.integers(-1, len(field.enum_type.values) + 1))
    value = int(rng.choice(INTEGERS))
    return abs(value) if kind in (FieldDescriptor.CPPTYPE_UINT32, FieldDescriptor.CPPTYPE_UINT64) else value


def spoilt(data: bytes, rng: Rng) -> bytes:
    """Bytes of a message with some of them changed, doubled, cut out or put in."""
    cells = bytearray(data)
    for _ in range(int(rng.integers(1, 5))):
        at = int(rng.integers(0, len(cells) + 1))
        match int(rng.integers(0, 4)):
            case 0 if at < len(cells):
                cells[at] = int(rng.integers(0, 256))
            case 1:
                cells[at:at] = rng.bytes(int(rng.integers(1, 9)))
            case 2:
                del cells[at : at + int(rng.integers(1, 9))]
            case _:
                cells[at:at] = cells[at : at + int(rng.integers(1, 30))]
    return bytes(cells)


class Fuzz:
    """A live server and what it answered.

    Parameters
    ----------
    address : of the server.
    seed : of the messages.
    """

    def __init__(self, address: str, seed: int = 0) -> None:
        self.address = address
        self.rng = np.random.default_rng(seed)
        self.codes: Counter[tuple[str, str]] = Counter()
        self.bugs: list[str] = []

    def prepare(self) -> None:
        """Have a model that all seeds speak of; messages may have deleted it."""
        with Client(self.address) as client:
            if MODEL not in [model.name for model in client.models()]:
                attributes = [Nominal("a", ["a", "b"]), Numeric("b"), Nominal("o", ["s", "t"])]
                client.create_model(MODEL, Specification(attributes, ["o", "s"], budget=1000, alpha=0.9))
            client.push(MODEL, [["a", 1.0, "s"], ["b", 2.0, "t"], ["a", 3.0, "t"]] * 3)

    def run(self, count: int) -> None:
        """Send so many messages to every RPC."""
        for method in METHODS:
            self.prepare()
            asyncio.run(self._send(method, count))

    async def _send(self, method: str, count: int) -> None:
        options = [("grpc.max_receive_message_length", -1)]
        async with grpc.aio.insecure_channel(self.address, options=options) as channel:
            for start in range(0, count, AT_ONCE):
                calls = [self._call(channel, method) for _ in range(min(AT_ONCE, count - start))]
                await asyncio.gather(*calls)

    def _bytes(self, method: str) -> bytes:
        made = message(METHODS[method].input_type, self.rng)
        right = {"model": "models/m", "name": RIGHT.get(method.rpartition("/")[2], "models/m/queries/1")}
        for field, value in right.items():
            if field in made.DESCRIPTOR.fields_by_name and self.rng.random() < 0.7:
                setattr(made, field, value)
        data: bytes = made.SerializeToString()
        return spoilt(data, self.rng) if self.rng.random() < 0.3 else data

    async def _call(self, channel: grpc.aio.Channel, method: str) -> None:
        descriptor = METHODS[method]
        streams_in, streams_out = descriptor.client_streaming, descriptor.server_streaming
        sent = [self._bytes(method) for _ in range(int(self.rng.integers(1, 4)) if streams_in else 1)]
        kind = f"{'stream' if streams_in else 'unary'}_{'stream' if streams_out else 'unary'}"
        call = getattr(channel, kind)(f"/{method}")(iter(sent) if streams_in else sent[0], timeout=DEADLINE_S)
        try:
            if streams_out:
                async for _ in call:
                    pass
            else:
                await call
            code = "OK"
        except grpc.aio.AioRpcError as error:
            code = error.code().name
            if code in BUGS and not _came_from_the_server(error):
                code = "CLOSED"  # while this client still wrote
            if code in BUGS:
                self.bugs.append(f"{method} {code} {error.details()} {[data.hex() for data in sent]}")
        self.codes[method, code] += 1


def _came_from_the_server(error: grpc.aio.AioRpcError) -> bool:
    """The server names every request; what gRPC says by itself has no name."""
    return any(key == "x-request-id" for key, _ in error.trailing_metadata() or ())


def garbage(address: str, count: int, seed: int = 0) -> None:
    """Send bytes that are no HTTP/2, and such that begin like it."""
    rng = np.random.default_rng(seed)
    host, port = address.rsplit(":", 1)
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    for _ in range(count):
        with socket.create_connection((host, int(port)), timeout=5) as connection:
            head = [b"", preface, preface + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"][int(rng.integers(0, 3))]
            try:
                connection.sendall(head + rng.bytes(int(rng.integers(1, 3000))))
                connection.settimeout(0.02)
                connection.recv(1000)
            except (TimeoutError, ConnectionError):
                continue


def main() -> None:
    """Fuzz every RPC as often as the first argument says, and say what was reached."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        serving = Serving(Path(folder), 0, "--log-level", "error")
        try:
            with Client(serving.address) as client:
                fuzz = Fuzz(serving.address)
                fuzz.run(max(1, count // 10))  # whatever is loaded and cached is, by then
                before = client.status().memory_bytes
                fuzz.run(count)
                garbage(serving.address, count)
                after = client.status().memory_bytes
        finally:
            serving.stop()
    seconds = time.monotonic() - started
    print(f"{fuzz.codes.total():,} calls of {len(METHODS)} RPCs in {seconds:.0f} s, {len(fuzz.bugs)} bugs")
    print(f"memory {before / 1e6:.0f} MB before, {after / 1e6:.0f} MB after")
    for (method, code), number in sorted(fuzz.codes.items()):
        print(f"  {method} {code}: {number:,}")
    for bug in fuzz.bugs[:20]:
        print(bug)
    sys.exit(bool(fuzz.bugs))


if __name__ == "__main__":
    main()
