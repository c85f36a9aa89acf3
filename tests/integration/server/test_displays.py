"""Displays of rows: their readers, the independence of trees from them, and their end with the model."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from support.published import published_model

from quercus.client import (
    AttributeView,
    Client,
    InvalidArgument,
    LinkItem,
    MediaItem,
    MediaTemplate,
    Nominal,
    Numeric,
    PermissionDenied,
    Presentation,
    SeriesItem,
    SeriesView,
    TextItem,
)
from quercus.server.gate import access, rpcs
from quercus.v1 import display_pb2, instance_pb2

ITEMS = (
    TextItem("note", "<b>as it is</b>"),
    SeriesItem("vibration", (0.0, 0.5, 1.0), 2.0, 0.25, "mm/s", "s"),
    MediaItem("image", "camera", data=b"\x89PNG\r\n\x1a\n" + bytes(100), alt="the line"),
    MediaItem("audio", "noise", "https://cam.example/7.ogg"),
    LinkItem("ticket", "https://tickets.example/7"),
)
ATTRIBUTES = [Nominal("line", ["A", "B"]), Numeric("x"), Numeric("y")]
SPECIFICATION = published_model(ATTRIBUTES, ["ok", "broken"], budget=10, strategy="committee")


def made(client: Client, model: str) -> None:
    client.create_model(model, SPECIFICATION)
    rows = [["A", k, k] for k in range(6)]
    displays = [ITEMS, None, *[[TextItem("n", "x")]] * 4]
    client.push(model, rows, ids=[f"r{k}" for k in range(6)], displays=displays)


def test_the_holder_gets_what_was_pushed_beside_the_row(live: Any) -> None:
    with Client(live.server.address) as client:
        made(client, "seen")
        found = {}
        for query in client.queries("seen", "ann", idle_s=5.0):
            found[query.instance] = query.display
            client.refuse(query)
            if len(found) == 6:
                break
        assert (found["r0"], found["r1"]) == (ITEMS, ())
        assert all(found[f"r{k}"] == (TextItem("n", "x"),) for k in range(2, 6))
        assert client.get_instance("seen", "r0").display == ITEMS
        assert client.get_instance("seen", "r1").display == ()


def test_a_row_that_comes_again_keeps_its_display(live: Any) -> None:
    """It is not part of the evidence, so a row with another one is the same row."""
    with Client(live.server.address) as client:
        made(client, "again")
        report = client.push("again", [["A", 0, 0]], ids=["r0"], displays=[[TextItem("n", "another")]])
        assert (report.stored, report.known) == (0, 1)
        assert client.get_instance("again", "r0").display == ITEMS


def test_only_who_holds_or_may_read_a_row_sees_it(start_live: Callable[..., Any], tmp_path: Path) -> None:
    live = start_live(tmp_path / "store.db", access="tokens")
    tokens = live.server.core.store.access
    issued = {role: access.issue_token(tokens, f"the-{role}", [role])[0] for role in rpcs.ROLES}
    address = live.server.address
    with Client(address, token=issued["operator"]) as operator:
        made(operator, "m")
        assert operator.get_instance("m", "r0").display == ITEMS
    with Client(address, token=issued["reader"]) as reader:
        assert reader.get_instance("m", "r0").display == ITEMS
    for role in ("labeller", "sensor", "corrector"):
        with Client(address, token=issued[role]) as other, pytest.raises(PermissionDenied):
            other.get_instance("m", "r0")
    with Client(address, token=issued["labeller"]) as labeller:
        query = next(labeller.queries("m", "", idle_s=20.0))
        assert query.display or query.instance == "r1"
        listed = list(labeller.list_queries("m"))
        assert listed
        assert all(each.display == () for each in listed)


def test_it_goes_with_its_model(live: Any) -> None:
    with Client(live.server.address) as client:
        made(client, "shown-and-gone")
        assert len(live.server.core.store.displays("shown-and-gone", range(1, 7))) == 5
        client.delete_model("shown-and-gone")
        client.create_model("shown-and-gone", SPECIFICATION)
        client.push("shown-and-gone", [["A", k, k] for k in range(6)], ids=[f"r{k}" for k in range(6)])
        assert client.get_instance("shown-and-gone", "r0").display == ()


def item(**content: Any) -> display_pb2.Display:
    return display_pb2.Display(items=[display_pb2.DisplayItem(title="t", **content)])


def test_displays_that_cannot_be_accepted(api: Any, tools: Any) -> None:
    api.create("refused-display")
    many = display_pb2.Display(items=[display_pb2.DisplayItem(title="t", text="x")] * 17)
    large = display_pb2.Display(items=[display_pb2.DisplayItem(title="t", text="x" * 10_000)] * 7)
    svg = display_pb2.DisplayMedia(data=b"<svg>")
    steep = display_pb2.DisplaySeries(values=[1, 2], start=-1e308)
    for displays, field, said in (
        ([display_pb2.Display()] * 2, "displays", "must have one for each of 1 rows"),
        ([many], "displays[0].items", "at most 16"),
        ([large], "displays[0].items", "at most 65,536"),
        ([item()], "displays[0].items[0].content", "say text, series, image, audio or link"),
        ([item(link="javascript:alert(1)")], "displays[0].items[0].url", "https://"),
        ([item(image=svg)], "displays[0].items[0].data", "PNG"),
        ([item(series=steep)], "displays[0].items[0].start", "leads to 1e+308, must lead to numbers in"),
    ):
        request = instance_pb2.PushBatchRequest(
            model="models/refused-display", rows=tools.packed([[0, 0]]), ids=["a"], displays=displays
        )
        with tools.refused(grpc.StatusCode.INVALID_ARGUMENT, said, field=field):
            api.instances.PushBatch(request, timeout=60)
    assert api.get("refused-display").instance_count == 0


def test_the_presentation_is_kept_changed_and_ignored_by_the_tree(live: Any) -> None:
    look = Presentation(
        (AttributeView("x", "Width", "mm", "of the part", ".2f", "size"), AttributeView("line", hidden=True)),
        (SeriesView("curve", ("x", "y"), 1.0, 0.5, "mm", "s", "p"),),
        (MediaTemplate("image", "camera", "https://cam.example/{id}.jpg?line={line}"),),
    )
    with Client(live.server.address) as client:
        made(client, "look")
        assert client.get_model("look").specification.presentation is None
        before = next(each.tree for each in client.watch("look") if each.tree.as_of >= 6)
        changed = client.update_model("look", presentation=look)
        assert changed.specification.presentation == look
        with pytest.raises(InvalidArgument, match=r"presentation\.attributes\[0\]\.attribute.*does not have"):
            client.update_model("look", presentation=Presentation((AttributeView("z"),)))
        wanted = changed.sequence_committed
        after = next(each.tree for each in client.watch("look") if each.tree.as_of >= wanted)
        assert [node.theta for node in after.nodes] == [node.theta for node in before.nodes]
        assert client.update_model("look", presentation=None).specification.presentation is None
        wrong = published_model(
            ATTRIBUTES, ["a", "b"], presentation=Presentation(series=(SeriesView("c", ("x", "line")),))
        )
        with pytest.raises(InvalidArgument, match="not numeric"):
            client.create_model("look-wrong", wrong)
        steep = Presentation(series=(SeriesView("c", ("x", "y"), step=1e101),))
        too_large = (
            r"specification\.presentation\.series\[0\]\.step: leads to 1e\+101, must lead to numbers in"
        )
        with pytest.raises(InvalidArgument, match=too_large):
            client.create_model("look-steep", published_model(ATTRIBUTES, ["a", "b"], presentation=steep))
        with pytest.raises(InvalidArgument, match=too_large):
            client.update_model("look", presentation=steep)
