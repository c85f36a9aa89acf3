"""A real mosquitto or Redis on a free loopback port, and librdkafka's Kafka; each ends with the test."""

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

import pytest

START_S = 20.0


def program(name: str, package: str) -> str:
    """Return a program; where it is missing, skip, or fail in continuous integration."""
    if found := shutil.which(name) or shutil.which(name, path="/usr/sbin"):
        return found
    return miss(f"{name} is missing: apt-get install -y --no-install-recommends {package}")


def miss(text: str) -> NoReturn:
    """Skip a test because something is missing, or fail in continuous integration."""
    if os.environ.get("CI") == "true":
        pytest.fail(text)
    pytest.skip(text)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def started(command: list[str], port: int) -> subprocess.Popen[bytes]:
    """Start a program, and wait until it listens."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    until = time.monotonic() + START_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=0.2).close()
        except OSError:
            assert process.poll() is None, f"{command[0]} ended"
            assert time.monotonic() < until, f"{command[0]} does not answer"
            time.sleep(0.01)
        else:
            return process


class RunningBroker:
    """A broker that keeps sessions; ``url`` is where it listens."""

    def __init__(self, folder: Path) -> None:
        mosquitto = program("mosquitto", "mosquitto")
        self.port = free_port()
        self.url = f"mqtt://127.0.0.1:{self.port}"
        config = folder / "mosquitto.conf"
        # without a user of its own it would look for one that may not be there
        user = "user root\n" if os.geteuid() == 0 else ""
        config.write_text(
            f"listener {self.port} 127.0.0.1\nallow_anonymous true\n{user}persistence false\n"
            "max_queued_messages 0\nmax_inflight_messages 100\nlog_dest none\n"
        )
        self._process = started([mosquitto, "-c", str(config)], self.port)

    def close(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait(timeout=10)


class RunningRedis:
    """A Redis that writes to disk before it acknowledges; ``url`` is its address."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        disk = ["--dir", str(folder), "--save", "", "--appendonly", "yes", "--appendfsync", "always"]
        listen = ["--bind", "127.0.0.1", "--port", str(self.port)]
        self._command = [program("redis-server", "redis-server"), *listen, *disk, *options]
        self._process = started(self._command, self.port)

    def kill(self) -> None:
        """SIGKILL."""
        self._process.kill()
        self._process.wait(timeout=10)

    def start(self) -> None:
        """Start it again, with its data."""
        self._process = started(self._command, self.port)

    def close(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait(timeout=10)


KAFKA = """
import logging, re, sys
from confluent_kafka import Producer

def told(record):
    if found := re.search(r"bootstrap.servers=(\\S+)", record.getMessage()):
        print(found[1], flush=True)

log = logging.Logger("kafka")
log.addFilter(told)
log.addHandler(logging.NullHandler())
producer = Producer({"test.mock.num.brokers": 1, "debug": "mock"}, logger=log)
while True:
    producer.poll(1)
"""
"""A broker in memory that comes with librdkafka: it speaks Kafka's protocol over TCP, consumer groups included."""


class RunningKafka:
    """A Kafka broker that creates topics as they are named; ``address`` is where it listens."""

    def __init__(self) -> None:
        if importlib.util.find_spec("confluent_kafka") is None:
            miss("confluent-kafka is missing: pip install --group tests")
        self._process = subprocess.Popen([sys.executable, "-c", KAFKA], stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().strip()
        assert self.address, "Kafka did not start"

    def close(self) -> None:
        """End it."""
        with self._process:
            self._process.kill()
