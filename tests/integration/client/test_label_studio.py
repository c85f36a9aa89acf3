"""The backend for Label Studio over real HTTP, with the requests that Label Studio 1.23.2 was seen to send."""

import copy
import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from integration.client.serving import START_S, STOP_S, Serving
from support import command_line
from support.consoles import Response, Visitor
from support.forked import ForkedProcess

from quercus.client import Client, Nominal, Presentation, Specification
from quercus.client.bridges.label_studio import MAX_BODY_BYTES

CONFIG = """<View>
  <Text name="row" value="$id"/>
  <Choices name="wine" toName="row" choice="single">
    <Choice value="oak"/><Choice value="beech tree" alias="beech"/><Choice value="unsure"/>
  </Choices>
</View>"""
PROJECT = {"id": 1, "title": "trees", "label_config": CONFIG}
SECRET = "4f6c1c0d9e8b7a6f5e4d3c2b1a09f8e7"


class Backend:
    """``quercus bridge label-studio`` beside a server, and what Label Studio sends to it."""

    def __init__(self, server: str, model: str, *flags: str) -> None:
        self.process = ForkedProcess(
            command_line.run,
            *("bridge", "label-studio", "--model", model, "--server", server, "--port", "0", *flags),
        )
        line = self.process.readline(START_S)
        if not line.startswith("backend at "):
            raise AssertionError(
                f"the backend did not start: {line!r} {self.process.communicate(STOP_S)[1]!r}"
            )
        self._visitor = Visitor(int(line.strip().rpartition(":")[2]))

    def ask(self, method: str, path: str, body: str | bytes | None = None, **headers: str) -> Response:
        return self._visitor.ask(method, path, body, **({"content_type": "application/json"} | headers))

    def post(self, path: str, value: Any, **headers: str) -> Response:
        return self.ask("POST", path, json.dumps(value), **headers)

    def predict(self, *tasks: dict[str, Any], config: str = CONFIG) -> list[dict[str, Any]]:
        answer = self.post("/predict", {"tasks": tasks, "label_config": config, "project": "1.1764000000"})
        assert answer.status == 200, answer.text
        found: list[dict[str, Any]] = answer.json["results"]
        return found

    def stop(self) -> str:
        self.process.send_signal(signal.SIGTERM)
        return self.process.communicate(STOP_S)[1]


Start = Callable[..., Backend]


@pytest.fixture
def start() -> Iterator[Start]:
    running: list[Backend] = []

    def started(*arguments: str) -> Backend:
        running.append(Backend(*arguments))
        return running[-1]

    yield started
    for each in running:
        if each.process.poll() is None:
            each.stop()


@pytest.fixture
def trees(client: Client, name: str) -> str:
    """Rows whose X tells the class, labels of all but the last four."""
    client.create_model(
        name, Specification([Nominal("X", "ab"), Nominal("Y", "cd")], ["oak", "beech"], budget=9)
    )
    rows = [{"X": "ab"[k % 2], "Y": "cd"[k // 2 % 2]} for k in range(24)]
    labels = [["oak", "beech"][k % 2] if k < 20 else None for k in range(24)]
    client.push(name, rows, labels, ids=[f"row {k}" for k in range(24)])
    client.wait_grown(name)
    return name


def task(number: int, row: str) -> dict[str, Any]:
    """A task as Label Studio serialises it."""
    return {
        "id": number,
        "data": {"id": row},
        "meta": {},
        "project": 1,
        "is_labeled": False,
        "predictions": [],
    }


def annotated(action: str, row: str, *choices: str, by: Any = 7, **fields: Any) -> dict[str, Any]:
    """An event about an annotation."""
    result = {"from_name": "wine", "to_name": "row", "type": "choices", "value": {"choices": list(choices)}}
    annotation = {
        "id": 12,
        "completed_by": by,
        "task": 1,
        "was_cancelled": False,
        "lead_time": 3.1,
        "result": [result] if choices else [],
    }
    return {"action": action, "annotation": annotation | fields, "task": task(1, row), "project": PROJECT}


def stated(client: Client, model: str) -> list[tuple[str, str, Any, str]]:
    return [
        (each.instance, each.labeller, each.label, each.state)
        for each in client.answers(model)
        if each.kind == "stated"
    ]


def test_it_is_connected_and_predicts(serving: Serving, client: Client, trees: str, start: Start) -> None:
    backend = start(serving.address, trees)
    model = client.get_model(trees)
    version = f"{trees}-{model.tree_version}"
    assert backend.ask("GET", "/health").json["status"] == "UP"
    setup = {"project": "1.1764000000", "schema": CONFIG, "hostname": "http://ls", "access_token": "x"}
    assert backend.post("/setup", setup | {"extra_params": None}).json == {"model_version": version}
    queries = {each.instance: each for each in client.list_queries(trees, ["open", "leased"])}
    rows = [f"row {k}" for k in range(24)]
    found = backend.predict(*(task(k, row) for k, row in enumerate(rows)), task(99, "no such row"))
    classified = client.classify(trees, [client.get_instance(trees, row).values for row in rows])
    for k, row in enumerate(rows):
        labels = classified.label_set(k)
        assert [each["value"]["choices"] for each in found[k]["result"]] == (
            [list(labels)] if len(labels) == 1 else []
        )
        assert {each["from_name"] for each in found[k]["result"]} <= {"wine"}
        place = queries[row].place if row in queries else None
        assert found[k]["score"] == (1.0 if place is None else place / (len(queries) + 1))
    assert any(each["result"] for each in found[:24])
    assert sorted(each.place or 0 for each in queries.values()) == list(range(1, len(queries) + 1))
    assert {each["model_version"] for each in found} == {version}
    assert (found[24]["result"], found[24]["score"]) == ([], 1.0)


def test_a_row_with_a_missing_value_is_predicted(
    serving: Serving, client: Client, trees: str, start: Start
) -> None:
    client.push(trees, [{"X": "a", "Y": None}], ["oak"], ids=["half"])
    backend = start(serving.address, trees)
    (found,) = backend.predict(task(1, "half"))
    labels = client.classify(trees, [["a", None]]).label_set(0)
    assert [each["value"]["choices"] for each in found["result"]] == (
        [list(labels)] if len(labels) == 1 else []
    )


def test_what_is_asked_first_has_the_lowest_score(
    serving: Serving, client: Client, trees: str, start: Start
) -> None:
    backend = start(serving.address, trees)
    found = backend.predict(*(task(k, f"row {k}") for k in range(24)))
    first = min(range(24), key=lambda k: float(found[k]["score"]))
    (query,) = client.lease(trees, "ann").queries
    assert (query.instance, query.place) == (f"row {first}", 1)


def test_what_people_choose_is_stated_once_and_corrected(
    serving: Serving, client: Client, trees: str, start: Start
) -> None:
    backend = start(serving.address, trees)
    event = annotated("ANNOTATION_CREATED", "row 20", "beech")
    assert backend.post("/webhook", event).json == {"stated": 1}
    assert backend.post("/webhook", event).json == {"stated": 0}
    assert stated(client, trees) == [("row 20", "7", "beech", "counts")]
    assert backend.post("/webhook", annotated("ANNOTATION_UPDATED", "row 20", "oak")).json == {"stated": 1}
    several = annotated(
        "ANNOTATION_CREATED", "row 21", "oak", "beech", by={"id": 8, "email": "bob@x.example"}
    )
    assert backend.post("/webhook", several).json == {"stated": 1}
    assert [each[:3] for each in stated(client, trees)][1:] == [
        ("row 20", "7", "oak"),
        ("row 21", "bob@x.example", None),  # one of both: nothing is known
    ]
    assert backend.post("/webhook", annotated("ANNOTATION_UPDATED", "row 20")).json == {
        "stated": 1
    }  # emptied
    assert client.get_model(trees).queries_answered == 0  # no budget is spent


def test_several_annotations_of_one_event(serving: Serving, client: Client, trees: str, start: Start) -> None:
    backend = start(serving.address, trees, "--labeller", "studio")
    event = annotated("ANNOTATIONS_CREATED", "row 20", "oak")
    other = copy.deepcopy(event["annotation"]) | {"id": 13, "task": 2}
    event |= {"annotation": [event["annotation"], other], "task": [task(2, "row 22"), task(1, "row 20")]}
    assert backend.post("/webhook", event).json == {"stated": 2}
    assert {each[:3] for each in stated(client, trees)} == {
        ("row 20", "studio", "oak"),
        ("row 22", "studio", "oak"),
    }


def test_events_that_say_nothing_state_nothing(
    serving: Serving, client: Client, trees: str, start: Start
) -> None:
    backend = start(serving.address, trees)
    events: list[dict[str, Any]] = [
        annotated("ANNOTATION_CREATED", "row 20", "oak", was_cancelled=True),
        annotated("ANNOTATION_CREATED", "row 20"),
        {"action": "ANNOTATIONS_DELETED", "annotations": [{"id": 12}], "project": PROJECT},
        {"action": "START_TRAINING", "project": PROJECT},
        {"action": "PROJECT_UPDATED", "project": PROJECT},
        {},
    ]
    assert [backend.post("/webhook", event).json for event in events] == [{"stated": 0}] * len(events)
    assert stated(client, trees) == []


def test_wrong_requests_are_named(serving: Serving, client: Client, trees: str, start: Start) -> None:
    backend = start(serving.address, trees)

    def refused(path: str, value: Any, status: int, *words: str, **headers: str) -> None:
        answer = backend.post(path, value, **headers)
        assert answer.status == status, answer.text
        assert all(word in answer.json["error"] for word in words), answer.text

    refused("/setup", {"schema": CONFIG.replace("beech", "elm")}, 400, "wine lacks beech")
    refused("/setup", {"schema": "<View/>"}, 400, "no Choices")
    refused("/setup", {"schema": "<View>"}, 400, "not XML")
    refused("/setup", {"schema": '<!DOCTYPE x [<!ENTITY a "b">]><View>&a;</View>'}, 400, "document type")
    refused("/setup", {"schema": " " * (1 << 18) + "<View/>"}, 400, "262,144")
    refused("/setup", {}, 400, "schema: must be a text")
    refused("/predict", {"label_config": CONFIG}, 400, "tasks: must be a list")
    refused("/predict", {"tasks": [{}] * 2001, "label_config": CONFIG}, 400, "2,001", "2,000")
    refused("/predict", [], 400, "JSON object")
    refused("/webhook", annotated("ANNOTATION_CREATED", "row 20", "unsure"), 400, "unsure")
    refused("/webhook", annotated("ANNOTATION_CREATED", "row 99", "oak"), 404, "row 99")
    refused("/webhook", annotated("ANNOTATION_CREATED", "row 20", "oak", by=None), 400, "--labeller")
    refused("/webhook", {"x": 1}, 415, "application/json", content_type="text/plain")
    refused("/webhook", {"x": 1}, 421, "localhost", host="evil.example")
    assert backend.ask("POST", "/webhook", "[" * 100_000).status == 400
    assert backend.ask("POST", "/webhook", b" " * (MAX_BODY_BYTES + 1)).status == 413
    assert backend.ask("GET", "/webhook").status == 405
    assert stated(client, trees) == []


def test_values_of_the_wrong_kind_are_refused(
    serving: Serving, client: Client, trees: str, start: Start
) -> None:
    backend = start(serving.address, trees)
    created = "ANNOTATION_CREATED"
    several = annotated(created, "row 20", "oak") | {"task": [{"id": {}}, {"id": [1]}]}
    events: list[dict[str, Any]] = [
        {"action": []},
        several,
        annotated(created, "row 20", "oak", task=[1], result=[{"type": "choices", "from_name": []}]),
        annotated(created, "row 20", "oak", result=[{"type": "choices", "value": {"choices": [["oak"]]}}]),
        annotated(created, "row \ud800", "oak"),
        annotated(created, "row 20", "\ud800"),
        annotated(created, "row 20", "oak", by="\ud800"),
        annotated(created, "row 20", "oak", by={"email": ["ann"]}),
    ]
    answers = [backend.post("/webhook", event) for event in events]
    assert [answer.status for answer in answers] == [200] + [400] * (len(events) - 1)
    answer = backend.post("/predict", {"tasks": [task(1, "row \ud800")], "label_config": CONFIG})
    assert answer.status in {200, 400}
    assert stated(client, trees) == []


def test_a_model_that_withholds_what_it_believes_chooses_nothing(
    serving: Serving, client: Client, trees: str, start: Start
) -> None:
    client.update_model(trees, presentation=Presentation(withheld=("belief",)))
    assert not any(each["result"] for each in start(serving.address, trees).predict(task(1, "row 20")))


def test_a_secret_keeps_strangers_out_and_stands_in_no_output(
    serving: Serving, client: Client, trees: str, start: Start, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text(SECRET + "\n")
    backend = start(
        serving.address,
        trees,
        *("--host", "0.0.0.0", "--plaintext", "--secret-file", str(tmp_path / "secret")),
    )
    event = annotated("ANNOTATION_CREATED", "row 20", "oak")
    assert backend.ask("GET", f"/{SECRET}/health", host="studio.example").status == 200
    for path in ("/webhook", f"/{SECRET[:-1]}x/webhook", "//webhook", f"/{SECRET}%00/webhook"):
        assert backend.post(path, event).status == 404
    assert stated(client, trees) == []
    assert backend.post(f"/{SECRET}/webhook", event, host="studio.example").status == 200
    assert SECRET not in backend.stop()


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--host", "0.0.0.0"], "--secret-file"),
        (["--host", "0.0.0.0", "--secret-file", "SECRET"], "--plaintext"),
        (["--secret-file", "SHORT"], "at least 22"),
        (["--secret-file", "nowhere"], "cannot read"),
        (["--secret-file", "EMPTY", "--port", "0"], "EMPTY is empty"),
        (["--tls-cert", "x.pem"], "go together"),
        (["--model", "nothing"], "nothing"),
    ],
)
def test_a_backend_that_must_not_run_does_not(
    flags: list[str],
    words: str,
    serving: Serving,
    trees: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "SECRET").write_text(SECRET)
    (tmp_path / "SHORT").write_text("short")
    (tmp_path / "EMPTY").write_text("\n")
    monkeypatch.chdir(tmp_path)
    done = command_line.quercus("bridge", "label-studio", "-m", trees, *flags, server=serving.address)
    assert done.returncode in {1, 2}
    assert words in " ".join(done.stderr.replace("│", " ").split())
    assert SECRET not in done.stderr


def test_a_statement_waits_for_a_server_that_is_away(tmp_path: Path, start: Start) -> None:
    """Label Studio sends an answer once, so the bridge keeps it until the server is back."""
    serving = Serving(tmp_path, grower=False)
    try:
        with Client(serving.address) as client:
            client.create_model("m", Specification([Nominal("X", "ab")], ["oak", "beech"]))
            client.push("m", [{"X": "a"}], ids=["1"])
        backend = start(serving.address, "m")
        port = serving.port
        assert backend.ask("GET", "/health").status == 200
        serving.kill()
        assert backend.ask("GET", "/health").status == 503
        sent = subprocess.Popen(
            ["python3", "-c", _POST, str(backend._visitor.port)], stdin=subprocess.PIPE, text=True
        )
        assert sent.stdin is not None
        sent.stdin.write(json.dumps(annotated("ANNOTATION_CREATED", "1", "oak")))
        sent.stdin.close()
        assert sent.wait(60) == 0  # it gave up after a second, as Label Studio does
        serving = Serving(tmp_path, port, grower=False)
        with Client(serving.address) as client:
            client.wait_ready(60)
            for event in client.watch_events("m", kinds=["statement"], timeout_s=60):
                assert (event.instance, event.evidence.label) == ("1", "oak")
                break
    finally:
        serving.stop()


_POST = """
import http.client, sys
connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=1)
connection.request("POST", "/webhook", sys.stdin.read(), {"content-type": "application/json"})
try:
    connection.getresponse()
except TimeoutError:
    sys.exit(0)
sys.exit("it was answered")
"""
