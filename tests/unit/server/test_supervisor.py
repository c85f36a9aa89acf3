"""A grower that cannot be started at one moment is started at a later one."""

import asyncio
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.published import published_message
from support.said import said

from quercus.belief.codec import encode
from quercus.belief.label import ClassSet
from quercus.server.config import Config
from quercus.server.growth import supervisor as module
from quercus.server.growth.child_process import LOOK
from quercus.server.growth.heartbeat import Heartbeat
from quercus.server.growth.supervisor import Supervisor
from quercus.server.wire.models import complete_specification
from quercus.storage.store import Store
from quercus.v1 import admin_pb2, model_pb2


def test_no_process_to_be_had_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "FIRST_DELAY_S", 0.001)
    spawn = subprocess.Popen
    calls: list[int] = []

    def scarce(command: list[str], **options: Any) -> subprocess.Popen[bytes]:
        calls.append(len(calls))
        if len(calls) in {2, 3}:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return spawn(["sleep", "60"], **options)

    async def run() -> None:
        monkeypatch.setattr(subprocess, "Popen", scarce)
        running = Supervisor(Config(store=str(tmp_path / "store.db")))
        await running.start()
        first = running.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        async with asyncio.timeout(30):
            while running.pid in {None, first}:
                await asyncio.sleep(0.001)
        await running.close()

    asyncio.run(run())
    assert len(calls) == 4
    assert sum("cannot be started" in line for line in said(caplog, module.__name__)) == 2


def test_a_server_that_stood_still_does_not_take_its_grower_for_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A machine that was held, or a thread that did not let go, delays the listener and not who is listened to."""
    monkeypatch.setattr(module, "SILENCE_S", 2.0)

    async def run() -> None:
        running = Supervisor(Config(store=str(tmp_path / "store.db")))
        beat = Heartbeat("m").encode().decode().strip()
        running._command = ["sh", "-c", f"while :; do echo '{beat}'; sleep .05; done"]
        await running.start()
        try:
            async with asyncio.timeout(30):
                while running.status().state != admin_pb2.GrowerStatus.STATE_RUNNING or not running._beat.at:
                    await asyncio.sleep(0.001)
                time.sleep(2.5)
                assert not running.is_silent
                running._beat = Heartbeat()
                while not running._beat.at:
                    await asyncio.sleep(0.001)
                    assert not running.is_silent
        finally:
            await running.close()

    asyncio.run(run())
    assert said(caplog, module.__name__) == []


LONG = "head -c 200000 /dev/zero | tr '\\0' x; echo"
NOISE = f"""echo '[cache] data saved'; echo '[]'; echo '{{"mood": 1}}'; echo 7; {LONG}"""


def supervised(tmp_path: Path, script: str) -> Supervisor:
    running = Supervisor(Config(store=str(tmp_path / "store.db")))
    running._command = ["sh", "-c", script]
    return running


def test_heartbeats_are_read_among_other_output_of_a_grower(tmp_path: Path) -> None:
    beat = Heartbeat("m").encode().decode().strip()

    async def run() -> None:
        running = supervised(tmp_path, f"while :; do {NOISE}; echo '{beat}'; sleep .01; done")
        await running.start()
        try:
            async with asyncio.timeout(30):
                for _ in range(2):
                    while not running._beat.at:
                        await asyncio.sleep(0.001)
                    running._beat = Heartbeat()
        finally:
            await running.close()

    asyncio.run(run())


def test_a_grower_that_writes_and_makes_no_progress_is_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, seconds in {"LOADING_S": 0.0, "SILENCE_S": 0.2, "TICK_S": 0.1}.items():
        monkeypatch.setattr(module, name, seconds)

    async def run() -> None:
        running = supervised(tmp_path, f"while :; do {NOISE}; sleep .01; done")
        await running.start()
        try:
            async with asyncio.timeout(30):
                while running.status().state != admin_pb2.GrowerStatus.STATE_SILENT:
                    await asyncio.sleep(0.001)
        finally:
            await running.close()

    asyncio.run(run())


TALKATIVE = """
import os, threading, time
def speak():
    while True:
        os.write(1, b"a library speaks\\n")
        time.sleep(0.02)
threading.Thread(target=speak, daemon=True).start()
"""


@pytest.mark.slow
def test_what_a_library_of_the_grower_prints_is_no_sign_of_life(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The library here writes on standard output from the start of the process to its end."""
    (tmp_path / "sitecustomize.py").write_text(TALKATIVE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    attribute = model_pb2.Attribute(name="size", numeric=model_pb2.NumericAttribute())
    specification = complete_specification(
        published_message(attributes=[attribute], classes=["small", "large"])
    )
    labels = [encode(ClassSet(1 + (row > 9))) for row in range(20)]
    with Store.open(f"sqlite:///{tmp_path / 'store.db'}") as store:
        store.create_model("m", specification.SerializeToString(), budget=0)
        store.append_instances("m", [f"i{row}" for row in range(20)], np.arange(20.0)[:, np.newaxis], labels)

    async def run() -> None:
        running = Supervisor(Config(store=str(tmp_path / "store.db")))
        await running.start()
        printed = ""
        try:
            async with asyncio.timeout(60):
                while "a library speaks" not in printed:
                    printed += capfd.readouterr().err
                    await asyncio.sleep(0.01)
                running._beat = Heartbeat("none")
                while running._beat.at:
                    await asyncio.sleep(0.01)
        finally:
            await running.close()

    asyncio.run(run())


def test_a_grower_is_told_of_the_first_change_after_a_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "QUIET_S", 60.0)
    heard = tmp_path / "heard"

    async def run() -> None:
        running = Supervisor(Config(store=str(tmp_path / "store.db")))
        running._command = ["sh", "-c", f"cat > {heard}"]
        await running.start()
        for _ in range(3):
            running.note_change()
        running._changed_at -= 60.0
        running.note_change()
        async with asyncio.timeout(30):
            while not heard.exists() or heard.read_text() != f"{LOOK}\n" * 2:
                await asyncio.sleep(0.001)
        await running.close()

    asyncio.run(run())
