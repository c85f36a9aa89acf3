"""A model whose world changes says so: to clients, at the terminal, in metrics."""

import re

import numpy as np
from integration.client.serving import Serving
from support.command_line import quercus

from quercus.client import Client, Numeric, Specification


def test_a_fall_of_the_accuracy_and_the_attribute_that_changed_are_told(shared_server: Serving) -> None:
    rng = np.random.default_rng(2)
    values = rng.random((1_600, 2))
    klass = values[:, 0] > 0.5
    klass[1_200:] = ~klass[1_200:]
    values[1_200:, 1] += 0.5
    labels = np.where(klass, "yes", "no").tolist()
    with Client(shared_server.address) as client:
        forest = {"name": "active-forest", "trees": 12}
        client.create_model(
            "drifts", Specification([Numeric("x"), Numeric("y")], ["no", "yes"], learner=forest)
        )
        client.push("drifts", values[:1_100], labels[:1_100])
        assert client.wait_grown("drifts").drift is None
        client.push("drifts", values[1_100:], labels[1_100:])
        drift = client.wait_grown("drifts").drift
    assert drift is not None
    assert drift.accuracy is not None
    assert drift.accuracy.before > 0.9 > drift.accuracy.since + 0.1
    assert 300 <= drift.accuracy.labels <= 450
    assert [each.name for each in drift.attributes] == ["y"]
    shown = " ".join(quercus("models", "show", "drifts", server=shared_server.address).stdout.split())
    assert re.search(
        r"changed the accuracy fell from \d\d\.\d % to \d\d\.\d % over the last \d+ labels", shown
    )
    assert "values of y moved: " in shown
