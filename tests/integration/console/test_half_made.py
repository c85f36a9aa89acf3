"""The server goes away while the console makes a model from a file: what is left, and how it is finished."""

from collections.abc import Iterator
from contextlib import suppress
from html import unescape

import grpc
import pytest
from integration.client.serving import Serving
from support.consoles import ConsoleProcess, Response, Visitor
from support.proxy import Proxy, running_proxy

from quercus.client import Client, Nominal, NotFound, Specification
from quercus.client.retrying import MAX_ATTEMPTS

AWAY = grpc.StatusCode.UNAVAILABLE
ROWS = 5_000
TABLE = "a,kind\n" + "1,x\n2,y\n" * (ROWS // 2)
FIELDS = {"budget": "5", "cuts": "8", "class": "kind", "id": "", "labels": "ask", "kind-0": "number",
          "kind-1": "names"}  # fmt: skip


@pytest.fixture
def client(shared_server: Serving) -> Iterator[Client]:
    with Client(shared_server.address) as connected:
        yield connected


@pytest.fixture(scope="module")
def line(shared_server: Serving, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Proxy, Visitor]]:
    """Return a proxy before the server, and somebody at a console behind it."""
    with pytest.MonkeyPatch.context() as environment, running_proxy(shared_server.address) as proxy:
        # other tests count the files in /tmp
        environment.setenv("TMPDIR", str(tmp_path_factory.mktemp("uploads")))
        console = ConsoleProcess(proxy.address)
        try:
            ann = Visitor(console.port)
            assert ann.sign_in(name="ann").status == 303
            yield proxy, ann
        finally:
            assert "Traceback" not in console.stop()


@pytest.fixture
def left(line: tuple[Proxy, Visitor], client: Client) -> Iterator[tuple[Proxy, Visitor]]:
    """Return the proxy, and somebody for whom the model half is left half made; nothing is broken any more."""
    proxy, ann = line
    assert ann.upload("rows.csv", TABLE.encode()).status == 200
    proxy.concerns, proxy.broken = "/Push|/DeleteModel", AWAY
    says(make(ann, "half"), 503, "The model half got only a part of its rows")
    proxy.broken = None
    assert client.get_model("half").instance_count == 0
    yield proxy, ann
    proxy.broken = None
    for name in ("half", "other"):
        with suppress(NotFound):
            client.delete_model(name)


def make(ann: Visitor, name: str, **fields: str) -> Response:
    return ann.form("/create", FIELDS | {"model": name} | fields)


def says(answer: Response, status: int, words: str) -> None:
    assert (answer.status, words in unescape(answer.text)) == (status, True), answer.text


def test_the_next_attempt_makes_the_model_anew(left: tuple[Proxy, Visitor], client: Client) -> None:
    proxy, ann = left
    says(ann.get("/create"), 200, "Or remove it: quercus models delete half")
    before = client.get_model("half").uid
    proxy.broken = AWAY
    says(make(ann, "half"), 503, "create half from the file again: the rest is removed first")
    proxy.broken = None
    assert make(ann, "half", budget="7").headers["location"] == "/m/half"
    after = client.get_model("half")
    assert (after.instance_count, after.budget) == (ROWS, 7)
    assert after.uid != before
    assert "half" not in ann.get("/create").text


def test_a_model_that_took_the_name_meanwhile_stays(left: tuple[Proxy, Visitor], client: Client) -> None:
    _, ann = left
    client.delete_model("half")
    other = client.create_model("half", Specification([Nominal("X", "ab")], ["o", "s"]))
    says(make(ann, "half"), 409, "half")
    assert client.get_model("half").uid == other.uid


def test_another_name_is_free(left: tuple[Proxy, Visitor], client: Client) -> None:
    _, ann = left
    assert make(ann, "other").headers["location"] == "/m/other"
    assert client.get_model("other").instance_count == ROWS
    says(ann.get("/create"), 200, "The model half got only a part of its rows")


def test_a_removal_that_was_not_confirmed_is_no_obstacle(line: tuple[Proxy, Visitor], client: Client) -> None:
    proxy, ann = line
    ann.upload("rows.csv", TABLE.encode())
    proxy.concerns, proxy.loses = (
        "/Push|/DeleteModel",
        MAX_ATTEMPTS + 1,
    )  # of the push all, and of the removal one
    says(make(ann, "part"), 503, "The model part got only a part of its rows, and the server did not confirm")
    assert proxy.loses == 0
    with pytest.raises(NotFound):
        client.get_model("part")
    assert make(ann, "part").headers["location"] == "/m/part"
    assert client.get_model("part").instance_count == ROWS
    client.delete_model("part")


def test_a_model_whose_creation_was_not_confirmed_gets_its_rows(
    line: tuple[Proxy, Visitor], client: Client
) -> None:
    proxy, ann = line
    ann.upload("rows.csv", TABLE.encode())
    proxy.concerns, proxy.loses = "/CreateModel", 1
    answer = make(ann, "unsure")
    says(answer, 503, "It is not known whether the model unsure was created; if so, it has no rows.")
    before = client.get_model("unsure")
    says(make(ann, "unsure", budget="7"), 409, "budget")
    assert make(ann, "unsure").headers["location"] == "/m/unsure"
    after = client.get_model("unsure")
    assert (after.uid, after.instance_count) == (before.uid, ROWS)
    client.delete_model("unsure")
