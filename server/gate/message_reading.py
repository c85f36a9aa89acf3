"""Reads the messages that callers send: small ones at once, large ones in a thread and only up to a bound."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from google.protobuf.message import DecodeError

from quercus.belief.errors import InvalidInput
from quercus.server.gate.handlers import Deserialize
from quercus.server.wire.errors import is_out_of_memory
from quercus.server.wire.json_messages import EncodedMessage
from quercus.server.wire.limits import INLINE_BYTES, INLINE_JSON_BYTES, UNCOUNTED_BYTES
from quercus.server.wire.message_size import MessageShape, check_parts

InThread = Callable[..., Awaitable[Any]]
"""Runs a function with its arguments in a thread."""


def is_small(data: bytes) -> bool:
    """Return whether a message is read at once, and not in a thread."""
    return len(data) <= (INLINE_JSON_BYTES if isinstance(data, EncodedMessage) else INLINE_BYTES)


class MessageReader:
    """Reads the messages of one method.

    Parameters
    ----------
    deserialize : makes a message of bytes: `FromString` of its class.
    in_thread : runs the reading of large messages in a thread.
    """

    def __init__(self, deserialize: Deserialize, in_thread: InThread) -> None:
        self._deserialize = deserialize
        self._kind: Any = deserialize.__self__  # type: ignore[attr-defined]
        self._in_thread = in_thread
        self._shape = MessageShape.of(self._kind.DESCRIPTOR)

    async def read_message(self, data: bytes) -> Any:
        """Return the message.

        Raises
        ------
        InvalidInput
            When the bytes are no message of the method's type, or would make more than a message may have.
        """
        if is_small(data):
            return self.parse_message(data)
        return await self._in_thread(self._read_large, data)

    def _read_large(self, data: bytes) -> Any:
        if len(data) > UNCOUNTED_BYTES and not isinstance(data, EncodedMessage):  # which count for themselves
            check_parts(data, self._shape)
        return self.parse_message(data)

    def parse_message(self, data: bytes) -> Any:
        """Return a message that is small; errors as `read_message`."""
        if isinstance(data, EncodedMessage):
            return data.read_as(self._kind)
        try:
            return self._deserialize(data)
        except DecodeError as error:
            if is_out_of_memory(error):
                raise
            raise InvalidInput("request", f"cannot be read ({error})") from None
