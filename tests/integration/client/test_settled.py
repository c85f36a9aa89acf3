"""A model that asks while a split is contested tells a settled tree from one without rows to ask about."""

from integration.client.serving import Serving

from quercus.client import Client, Nominal, Specification
from quercus.view.models import why_it_stopped


def test_settled_and_without_rows(shared_server: Serving) -> None:
    attributes = [Nominal("colour", ["red", "blue"])]
    with Client(shared_server.address) as client:
        for name in ("settled", "no-rows"):
            client.create_model(
                name, Specification(attributes, ["no", "yes"], budget=9, ask="while-contested")
            )
        client.push("no-rows", [["red"]] * 2, ["no", "no"])
        none_left = client.wait_grown("no-rows")
        assert none_left.settled is False  # of one class nothing is known: it would ask, if it had a row
        assert why_it_stopped(none_left) == "it asks nothing now: no row that it may ask about is left"

        client.push("settled", [["red"]] * 20 + [["blue"]] * 20, ["no"] * 19 + [None] + ["yes"] * 19 + [None])
        settled = client.wait_grown("settled")
        assert settled.settled is True
        assert "no split is contested and every leaf has a label; --ask" in why_it_stopped(settled)

        client.create_model("to-the-budget", Specification(attributes, ["no", "yes"], ask="to-the-budget"))
        client.push("to-the-budget", [["red"]], ["no"])
        assert client.wait_grown("to-the-budget").settled is None
