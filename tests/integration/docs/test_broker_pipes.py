"""The pipes of docs/howto/pipes.md that read from brokers: as printed there, from a real broker to rows, and back."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration.client.serving import Serving
from support.broker import RunningBroker, RunningKafka, program
from support.doc_blocks import DOCS, blocks
from support.waiting import until

from quercus.client import Client, Nominal, Numeric, Specification

PAGE = [block.code for block in blocks(DOCS / "howto/pipes.md") if block.why_not is not None]
ROWS = 400
WAIT_S = 60.0


@pytest.fixture(scope="module")
def kafka() -> Iterator[RunningKafka]:
    program("kcat", "kcat")
    running = RunningKafka()
    yield running
    running.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Serving]:
    serving = Serving(tmp_path)
    yield serving
    assert serving.stop() == 0


@pytest.fixture
def client(server: Serving) -> Iterator[Client]:
    with Client(server.address) as made:
        made.create_model(
            "wine",
            Specification(
                [Numeric("alcohol"), Nominal("tint", ["dark", "pale"])], ["red", "white"], budget=20
            ),
        )
        yield made


def printed(words: str) -> str:
    """Return the command on the page that contains these words."""
    (found,) = (code for code in PAGE if words in code)
    return found


class Shell:
    """Runs commands as a terminal of a user does; those that still run at its end are killed."""

    def __init__(self, server: Serving) -> None:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self._environment = os.environ | {"PATH": path, "QUERCUS_SERVER": server.address}
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self, code: str) -> None:
        """Start a command, in a session of its own."""
        command = ["bash", "-euo", "pipefail", "-c", code]
        self._started.append(subprocess.Popen(command, env=self._environment, start_new_session=True))

    def run(self, code: str) -> None:
        """Run a command to its end."""
        self.start(code)
        assert self._started[-1].wait(timeout=WAIT_S) == 0

    def kill(self) -> None:
        """Kill all that was started, with SIGKILL."""
        for process in self._started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(timeout=WAIT_S)
        self._started.clear()


@pytest.fixture
def shell(server: Serving) -> Iterator[Shell]:
    made = Shell(server)
    yield made
    made.kill()


def written(folder: Path, first: int, count: int) -> Path:
    """Write bottles to a file, one JSON object a line."""
    rows = [{"alcohol": 9 + k % 7, "tint": ["dark", "pale"][k % 2]} for k in range(first, first + count)]
    path = folder / f"{first}.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def test_kafka_to_rows_and_predictions_back(
    kafka: RunningKafka, shell: Shell, client: Client, tmp_path: Path
) -> None:
    def said(words: str) -> str:
        return printed(words).replace("broker:9092", kafka.address)

    def produce(first: int, count: int) -> None:
        shell.run(f"kcat -b {kafka.address} -P -t bottles -l {written(tmp_path, first, count)}")

    produce(0, ROWS)
    shell.start(said("-G quercus"))
    until(lambda: client.get_model("wine").instance_count >= ROWS)
    produce(ROWS, ROWS)
    until(lambda: client.get_model("wine").instance_count >= ROWS + 1)
    shell.kill()
    produce(2 * ROWS, ROWS)
    shell.run(said("-o beginning"))
    assert client.get_model("wine").instance_count == 3 * ROWS

    shell.start(said("quercus classify"))
    path = tmp_path / "predictions.jsonl"
    every = f"kcat -b {kafka.address} -C -t predictions -q -c {ROWS} > {path}"
    shell.run(f"until {every}; do sleep .1; done")  # the topic comes with its first message
    predictions = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(predictions) == ROWS  # kcat holds the last few back until more come
    assert all(each["classes"] for each in predictions)


def test_mqtt_to_rows(shell: Shell, client: Client, tmp_path: Path) -> None:
    program("mosquitto_sub", "mosquitto-clients")
    broker = RunningBroker(tmp_path)
    at = f"-h 127.0.0.1 -p {broker.port}"
    try:
        shell.run(
            f"mosquitto_sub {at} -t 'plant/+/bottles' -q 1 -c -i quercus -E"
        )  # from now on it keeps messages
        shell.run(f"mosquitto_pub {at} -t plant/1/bottles -q 1 -l < {written(tmp_path, 0, ROWS)}")
        shell.start(printed("mosquitto_sub").replace("-h broker", at))
        until(lambda: client.get_model("wine").instance_count >= ROWS)
        shell.kill()
        assert client.get_model("wine").instance_count == ROWS
    finally:
        broker.close()
