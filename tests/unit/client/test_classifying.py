"""The memory of a client about a model between classifications."""

import numpy as np
import pytest

from quercus.client import Between, InvalidArgument, Nominal, Numeric, Specification
from quercus.client.classifications import merged
from quercus.client.memory import FRESH_S, RowFormats
from quercus.client.rows import RowEncoder, row_chunks
from quercus.v1 import values_pb2

SPECIFICATION = Specification([Numeric("x"), Nominal("y", ("a", "b"))], ["yes", "no"])


def test_a_form_is_good_for_a_second() -> None:
    now = [100.0]
    forms = RowFormats(lambda: now[0])
    assert forms.get_fresh("m") is None
    form = forms.remember_format("m", SPECIFICATION)
    now[0] += 0.9 * FRESH_S
    assert forms.get_fresh("m") is form
    assert forms.get_fresh("other") is None
    now[0] += 0.2 * FRESH_S
    assert forms.get_fresh("m") is None


def test_a_form_is_forgotten_on_demand() -> None:
    forms = RowFormats()
    forms.remember_format("m", SPECIFICATION)
    forms.forget_format("m")
    forms.forget_format("m")
    assert forms.get_fresh("m") is None


def test_values_that_the_form_does_not_know_travel_by_name() -> None:
    form = RowFormats().remember_format("m", SPECIFICATION)
    (known,) = form.classify_requests("m", [[1.0, "b"]], 7)
    assert list(known.rows.packed.values) == [1.0, 1.0]
    assert (known.model, known.min_sequence) == ("models/m", 7)
    (learned,) = form.classify_requests("m", [[1.0, "c"]], want_paths=True)
    assert learned.rows.named.rows[0].values["y"] == values_pb2.NamedValue(nominal="c")
    assert learned.want_paths


def test_many_rows_take_several_requests_and_none_takes_no_request() -> None:
    form = RowFormats().remember_format("m", SPECIFICATION)
    rows = np.zeros((50_000, 2))
    sizes = [len(request.rows.packed.values) // 2 for request in form.classify_requests("m", rows)]
    assert sum(sizes) == 50_000
    assert len(sizes) > 1
    assert not list(form.classify_requests("m", []))
    assert merged([], ("yes", "no"), False).classes == ("yes", "no")


def test_uncertain_values_travel_by_name() -> None:
    form = RowFormats().remember_format("m", SPECIFICATION)
    rows = [[Between(1.0, 2.5), {"b", "a"}], [None, "a"]]
    (request,) = form.classify_requests("m", rows, want_masses=True)
    first, second = (row.values for row in request.rows.named.rows)
    assert (first["x"].range.low, first["x"].range.high) == (1.0, 2.5)
    assert list(first["y"].nominals.values) == ["a", "b"]
    assert dict(second) == {"y": values_pb2.NamedValue(nominal="a")}
    assert request.want_masses
    for row, wrong in (([{"a"}, "a"], "x"), ([1.0, Between(0.0, 1.0)], "y"), ([Between("a", 1.0), "a"], "x")):
        with pytest.raises(InvalidArgument, match=wrong):
            list(form.classify_requests("m", [row]))
    pushed, is_new = RowEncoder(SPECIFICATION).encode(next(row_chunks(rows, 10)))
    assert pushed == request.rows
    assert not is_new
    assert RowEncoder(SPECIFICATION).encode(next(row_chunks([[1.0, {"a", "zz"}]], 10)))[1]
