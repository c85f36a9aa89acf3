"""What a client remembers of a model between classifications."""

import numpy as np

from quercus.client import Nominal, Numeric, Specification
from quercus.client.classifying import FRESH_S, Forms
from quercus.proto.v1 import values_pb2

SPECIFICATION = Specification([Numeric("x"), Nominal("y", ("a", "b"))], ["yes", "no"])


def test_a_form_is_good_for_a_second() -> None:
    now = [100.0]
    forms = Forms(lambda: now[0])
    assert forms.fresh("m") is None
    form = forms.learn("m", SPECIFICATION)
    now[0] += 0.9 * FRESH_S
    assert forms.fresh("m") is form
    assert forms.fresh("other") is None
    now[0] += 0.2 * FRESH_S
    assert forms.fresh("m") is None


def test_a_form_is_forgotten_on_demand() -> None:
    forms = Forms()
    forms.learn("m", SPECIFICATION)
    forms.forget("m")
    forms.forget("m")
    assert forms.fresh("m") is None


def test_values_that_the_form_does_not_know_travel_by_name() -> None:
    form = Forms().learn("m", SPECIFICATION)
    (known,) = form.requests("m", [[1.0, "b"]], 7, False)
    assert list(known.rows.packed.values) == [1.0, 1.0]
    assert (known.model, known.min_sequence) == ("models/m", 7)
    (learned,) = form.requests("m", [[1.0, "c"]], 0, True)
    assert learned.rows.named.rows[0].values["y"] == values_pb2.NamedValue(nominal="c")
    assert learned.want_paths


def test_many_rows_take_several_requests_and_none_takes_no_request() -> None:
    form = Forms().learn("m", SPECIFICATION)
    rows = np.zeros((50_000, 2))
    sizes = [len(request.rows.packed.values) // 2 for request in form.requests("m", rows, 0, False)]
    assert sum(sizes) == 50_000
    assert len(sizes) > 1
    assert not list(form.requests("m", [], 0, False))
    assert form.result([], False).classes == ("yes", "no")
