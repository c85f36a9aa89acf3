"""The client for asyncio: :class:`Client` has the same calls as :class:`quercus.client.Client`, awaited."""

from quercus.client.aio.client import Client

__all__ = ["Client"]
