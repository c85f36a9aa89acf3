"""A grower that cannot be started at one moment is started at a later one."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from quercus.server.config import Config
from quercus.server.growth import supervisor as module
from quercus.server.growth.supervisor import Supervisor


def test_no_process_to_be_had_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "FIRST_DELAY_S", 0.001)
    spawn = asyncio.create_subprocess_exec
    calls: list[int] = []

    async def scarce(*command: str, **options: Any) -> asyncio.subprocess.Process:
        calls.append(len(calls))
        if len(calls) in {2, 3}:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return await spawn("sleep", "60", **options)

    async def run() -> None:
        monkeypatch.setattr(asyncio, "create_subprocess_exec", scarce)
        running = Supervisor(Config(store=str(tmp_path / "store.db")))
        await running.start()
        first = running._process
        assert first is not None
        first.kill()
        async with asyncio.timeout(30):
            while running._process is first:
                await asyncio.sleep(0.001)
        assert running.pid is not None
        await running.close()

    asyncio.run(run())
    assert len(calls) == 4
    assert sum("cannot be started" in record.getMessage() for record in caplog.records) == 2
