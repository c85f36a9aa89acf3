"""The items that a labeller sees beside the values, and those withheld."""

import re
from collections.abc import Iterator

import pytest
from integration.client.serving import Serving
from support.consoles import ConsoleProcess, Visitor

from quercus.client import Client, Nominal, Numeric, Specification
from quercus.specification.display import LinkItem, MediaItem, SeriesItem, TextItem
from quercus.specification.presentation import AttributeView, MediaTemplate, Presentation, SeriesView
from quercus.specification.reasons import Shares

GIF = b"GIF89a\x01\x00\x01\x00\x00\x00\x00;"
ATTRIBUTES = [
    Numeric("t0"),
    Numeric("t1"),
    Numeric("t2"),
    Numeric("speed"),
    Nominal("line", ["a", "b"]),
    Nominal("key", ["x"]),
]
LOOK = Presentation(
    [
        AttributeView("speed", "Speed", "mm/s", "of the belt", ".1f", "belt"),
        AttributeView("key", hidden=True),
    ],
    [SeriesView("vibration", ("t0", "t1", "t2"), unit="g", step_unit="s")],
    [
        MediaTemplate("image", "camera", "https://cam.example/{id}.jpg?line={line}"),
        MediaTemplate("image", "elsewhere", "https://other.example/{id}.jpg"),
    ],
)


@pytest.fixture(scope="module")
def client(shared_server: Serving) -> Iterator[Client]:
    with Client(shared_server.address) as client:
        yield client


@pytest.fixture(scope="module")
def visitor(shared_server: Serving) -> Iterator[Visitor]:
    console = ConsoleProcess(shared_server.address, 0, "--media", "https://cam.example")
    visitor = Visitor(console.port)
    visitor.sign_in(name="ann")
    yield visitor
    console.stop()


def make(client: Client, name: str, look: Presentation) -> None:
    client.create_model(name, Specification(ATTRIBUTES, ["yes", "no"], budget=9, presentation=look))
    beside = [
        TextItem("note", "<b>bold</b>"),
        SeriesItem("sound", [0.0, 2.0, 1.0], unit="Pa"),
        MediaItem("image", "thumb", data=GIF, alt="a dot"),
        LinkItem("manual", "https://m.example/x"),
    ]
    rows = [[0.1, 0.2, k / 10, k / 3, "ab"[k % 2], "x"] for k in range(8)]
    client.push(name, rows, ids=[f"r{k}" for k in range(8)], displays=[beside] * 8)
    client.wait_grown(name)


def test_a_row_is_shown_as_the_model_presents_it(client: Client, visitor: Visitor) -> None:
    make(client, "c-display", LOOK)
    answer = visitor.get("/m/c-display/label")
    page = answer.text
    assert re.search(r"Speed<span[^>]*>of the belt</span></dt><dd[^>]*>\d\.\d mm/s<", page)
    assert '<h2 class="part">belt</h2>' in page
    assert ">key<" not in page
    assert ">t0<" not in page
    assert 'aria-label="vibration: ' in page
    assert 'aria-label="sound: 0 to 2 Pa"' in page
    assert re.search(
        r'<img src="https://cam.example/r\d.jpg\?line=[ab]" alt="camera" referrerpolicy="no-referrer">', page
    )
    assert 'src="https://other.example' not in page
    assert "https://other.example/r" in page  # as text
    assert "&lt;b&gt;bold&lt;/b&gt;" in page
    assert '<a href="https://m.example/x" target="_blank" rel="noopener noreferrer">manual</a>' in page
    assert "img-src 'self' https://cam.example;" in answer.headers["content-security-policy"]
    found = re.search(r'<img src="(/m/c-display/label/beside/[^"]+)" alt="a dot"', page)
    assert found is not None
    picture = visitor.get(found[1])
    assert (picture.status, picture.headers["content-type"]) == (200, "image/gif")
    assert picture.headers["content-security-policy"] == "sandbox; default-src 'none'"
    assert visitor.get(found[1] + "9").status == 404
    assert (
        '<legend>Speed <span class="unit">mm/s</span></legend>' in visitor.get("/m/c-display/classify").text
    )
    other = Visitor(visitor.port)
    other.sign_in(name="bob")
    assert other.get(found[1]).status == 404  # it holds another query


def test_neighbours_are_shown_to_the_holder(client: Client, visitor: Visitor) -> None:
    make(client, "c-near", LOOK)
    query = client.lease("c-near", "tom").queries[0]
    client.answer(query, "yes")
    client.wait_grown("c-near")
    page = visitor.get("/m/c-near/label").text
    found = re.search(r'data-url="(/m/c-near/label/neighbours/c-near/\d+)"', page)
    assert found is not None
    rows = visitor.get(found[1]).text
    assert re.search(r"<b class=\"mark mark-\d\">yes</b>", rows)
    assert query.instance in rows


def test_what_may_bias_is_withheld(client: Client, visitor: Visitor) -> None:
    make(client, "c-withheld", Presentation(withheld=("reason", "belief", "neighbours")))
    page = visitor.get("/m/c-withheld/label").text
    assert "Why this one" not in page
    assert "Known so far" not in page
    assert "Rows like it" not in page
    number = re.search(r"models/c-withheld/queries/(\d+)", page)
    assert number is not None
    assert visitor.get(f"/m/c-withheld/label/neighbours/c-withheld/{number[1]}").status >= 400


def test_the_guess_is_withheld_by_the_server(client: Client) -> None:
    """The estimates go, the rest of the reason stays; whoever holds the query cannot get them either."""
    make(client, "c-guess", Presentation(withheld=("guess",)))
    for _ in range(4):
        client.answer(client.lease("c-guess", "tom", wait_s=30.0).queries[0], "yes")
    client.wait_grown("c-guess")
    held = client.lease("c-guess", "ann", wait_s=30.0).queries[0]
    assert not any(isinstance(fact.value, Shares) for fact in held.reason.facts)
    assert held.reason.node_count > 0
    (listed,) = [each for each in client.list_queries("c-guess", ["leased"]) if each.name == held.name]
    assert any(isinstance(fact.value, Shares) for fact in listed.reason.facts)  # a reader sees them
