"""The cost of a call does not grow with the number of methods."""

import asyncio
from pathlib import Path

import pytest
from grpc import aio

from quercus.server.app import Server
from quercus.server.config import Config


def test_no_method_is_registered_with_the_server_of_grpc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registered: list[str] = []
    monkeypatch.setattr(
        aio.Server, "add_registered_method_handlers", lambda _, service, __: registered.append(service)
    )

    async def run() -> None:
        server = Server(Config(store=str(tmp_path / "store.db"), port=0, grower=False))
        await server.start()
        await server.stop()

    asyncio.run(run())
    assert registered == []
