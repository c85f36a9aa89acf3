"""The pipes of docs/howto/pipes.md that read from brokers: as printed there, from a real broker to rows, and back."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration.client.serving import Serving
from support.broker import RunningBroker, RunningKafka, program
from support.doc_blocks import DOCS, blocks

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


def run(code: str, server: Serving, *, waits: bool = False) -> subprocess.Popen[bytes]:
    """Start a command, as a terminal would; wait until it ends, unless `waits` is false."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "QUERCUS_SERVER": server.address}
    process = subprocess.Popen(
        ["bash", "-euo", "pipefail", "-c", code],
        env=environment,
        start_new_session=True,
        stderr=subprocess.DEVNULL if not waits else None,
    )
    if waits:
        assert process.wait(timeout=WAIT_S) == 0
    return process


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a command with all its processes."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=WAIT_S)


def until_pushed(client: Client, rows: int) -> None:
    until = time.monotonic() + WAIT_S
    while client.get_model("wine").instance_count < rows:
        assert time.monotonic() < until, client.get_model("wine").instance_count
        time.sleep(0.05)


def written(folder: Path, first: int, count: int) -> Path:
    """Write bottles to a file, one JSON object a line."""
    rows = [{"alcohol": 9 + k % 7, "tint": ["dark", "pale"][k % 2]} for k in range(first, first + count)]
    path = folder / f"{first}.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def test_kafka_to_rows_and_predictions_back(
    kafka: RunningKafka, server: Serving, client: Client, tmp_path: Path
) -> None:
    def said(words: str) -> str:
        return printed(words).replace("broker:9092", kafka.address)

    def produce(first: int, count: int) -> None:
        run(f"kcat -b {kafka.address} -P -t bottles -l {written(tmp_path, first, count)}", server, waits=True)

    produce(0, ROWS)
    group = run(said("-G quercus"), server)
    until_pushed(client, ROWS)
    produce(ROWS, ROWS)
    until_pushed(client, ROWS + 1)
    end(group)
    produce(2 * ROWS, ROWS)
    run(said("-o beginning"), server, waits=True)
    assert client.get_model("wine").instance_count == 3 * ROWS

    back = run(said("quercus classify"), server)
    every = f"kcat -b {kafka.address} -C -t predictions -q -c {ROWS} > {tmp_path}/predictions.jsonl"
    run(f"until {every}; do sleep .1; done", server, waits=True)  # the topic comes with its first message
    end(back)
    predictions = [json.loads(line) for line in (tmp_path / "predictions.jsonl").read_text().splitlines()]
    assert len(predictions) == ROWS  # kcat holds the last few back until more come
    assert all(each["classes"] for each in predictions)


def test_mqtt_to_rows(server: Serving, client: Client, tmp_path: Path) -> None:
    broker = RunningBroker(tmp_path)
    at = f"-h 127.0.0.1 -p {broker.port}"
    program("mosquitto_sub", "mosquitto-clients")
    publish = f"mosquitto_pub {at} -t plant/1/bottles -q 1 -l < {written(tmp_path, 0, ROWS)}"
    subscription = printed("mosquitto_sub").replace("-h broker", at)
    end_of_session = f"mosquitto_sub {at} -t 'plant/+/bottles' -q 1 -c -i quercus -E"
    run(end_of_session, server, waits=True)  # the broker keeps messages from now on
    run(publish, server, waits=True)
    pipe = run(subscription, server)
    until_pushed(client, ROWS)
    end(pipe)
    broker.close()
