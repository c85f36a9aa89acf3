import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris

from quercus.belief.errors import InvalidInput
from quercus.belief.frame import Frame
from quercus.specification.attributes import Nominal, Numeric
from quercus.specification.model import Specification
from quercus.trees.tree.encoding import (
    UNKNOWN,
    Encoder,
    branch_names,
    check_values,
    edges_in_force,
    equal_width_edges,
)

NAN = float("nan")
COLOUR = Nominal("colour", ("red", "blue"))
STRICT = Nominal("shape", ("round",), "reject")


def spec(*attributes: object, **more: object) -> Specification:
    return Specification(attributes, Frame(("yes", "no")), **more)


def codes(attribute: object, column: list[float], warmup: list[float] | None = None) -> list[int]:
    values = np.array(column)[:, np.newaxis]
    seen = np.array(column if warmup is None else warmup)[:, np.newaxis]
    model = spec(attribute, warmup_rows=1000)
    return Encoder(model.attributes, edges_in_force(model, seen)).codes(values)[:, 0].tolist()


def test_a_value_at_an_edge_belongs_to_the_bin_above() -> None:
    assert codes(Numeric("x"), [0, 1, 2, 3, 4]) == [0, 1, 2, 3, 3]


@pytest.mark.parametrize("number", [-858.0, 887e-5, -325.0, 0.0, 1e300])
@pytest.mark.parametrize("bins", [4, 5, 7, 9])
def test_a_constant_column_is_at_every_edge(number: float, bins: int) -> None:
    assert codes(Numeric("x", bins), [number, number]) == [bins - 1, bins - 1]


def test_dust_below_an_edge_is_at_the_edge() -> None:
    # the range is 4, so an edge reaches 4e-9 down
    assert codes(Numeric("x"), [0, 4, 1 - 3e-9, 1 - 5e-9]) == [0, 3, 1, 0]


def test_outside_values_are_clamped() -> None:
    assert codes(Numeric("x"), [-100, 100], warmup=[0, 4]) == [0, 3]


def test_iris_values_on_edges() -> None:
    """Sepal length runs from 4.3 to 7.9: edges 5.2, 6.1, 7.0, each of them a value of the data, in tenths."""
    column = load_iris().data[:, 0]
    tenths = np.rint(column * 10).astype(int)
    exact = np.minimum((tenths - 43) * 4 // 36, 3)
    assert codes(Numeric("x"), column.tolist()) == exact.tolist()
    assert np.isin(tenths, (52, 61, 70)).any()


@given(
    st.lists(st.integers(-1000, 1000), min_size=1, max_size=40),
    st.integers(2, 9),
    st.sampled_from([0.1, 1.0, 1e-5, 3e6]),
)
def test_bins_are_those_of_exact_arithmetic(numbers: list[int], bins: int, unit: float) -> None:
    lo, hi = min(numbers), max(numbers)
    exact = [bins - 1 if lo == hi else min((x - lo) * bins // (hi - lo), bins - 1) for x in numbers]
    assert codes(Numeric("x", bins), [x * unit for x in numbers]) == exact


def test_huge_ranges_do_not_overflow() -> None:
    edges = equal_width_edges(np.array([-1.7e308, 1.7e308]), 4)
    assert np.isfinite(edges).all()
    assert codes(Numeric("x"), [-1.7e308, 0, 1.7e308]) == [0, 2, 3]


def test_declared_edges_are_exact() -> None:
    assert codes(Numeric("x", edges=(1.0, 2.0)), [1 - 1e-12, 1, 2, NAN]) == [0, 1, 2, 3]


def test_only_the_first_rows_set_the_edges() -> None:
    model = spec(Numeric("x"), warmup_rows=2)
    short = edges_in_force(model, np.array([[0.0], [4.0]]))
    assert edges_in_force(model, np.array([[0.0], [4.0], [400.0]])) == short


def test_a_column_without_numbers() -> None:
    assert edges_in_force(spec(Numeric("x"), COLOUR), np.full((3, 2), NAN)) == ((0.0, 0.0, 0.0), ())


def test_missing_and_learned_values_have_codes_that_never_move() -> None:
    assert codes(COLOUR, [0, 1, NAN, 2, 3]) == [0, 1, 2, 3, 4]
    assert codes(STRICT, [0, NAN, 1, 2]) == [0, UNKNOWN, 1, 2]
    assert codes(Numeric("x", missing="reject"), [0, 4, NAN]) == [0, 3, UNKNOWN]
    names = branch_names([COLOUR, STRICT], ((), ()), {0: ("green",), 1: ("oval",)})
    assert names == (("red", "blue", "?", "green"), ("round", "oval"))


def test_bin_names_tell_the_edges_apart() -> None:
    close = Numeric("x", edges=(1000.001, 1000.002))
    assert branch_names([close], (close.edges or (),)) == (
        ("< 1000.001", "[1000.001, 1000.002)", "≥ 1000.002", "?"),
    )


def test_bin_names_hide_the_dust_on_computed_edges() -> None:
    edges = equal_width_edges(np.array([0.0, 1.0]), 4)
    assert edges[0] < 0.25
    assert branch_names([Numeric("x")], (edges,))[0][:2] == ("< 0.25", "[0.25, 0.5)")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([1.0, 0.0], "values: have shape (1, 2), must be (rows, 3)"),
        ([float("inf"), 0, 0], "values[0].x: is inf, must be finite"),
        ([1, -1, 0], "values[0].colour: is -1.0, must be a whole number in [0, 1001)"),
        ([1, 0.5, 0], "values[0].colour: is 0.5, must be a whole number in [0, 1001)"),
        ([1, 1001, 0], "values[0].colour: is 1001.0, must be a whole number in [0, 1001)"),
        ([1, float("inf"), 0], "values[0].colour: is inf, must be a whole number in [0, 1001)"),
        ([1, 0, NAN], "values[0].shape: is nan, must not be missing"),
    ],
)
def test_bad_values(row: list[float], message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_values(spec(Numeric("x"), COLOUR, STRICT), np.array([row]))
    assert str(caught.value) == message


def test_good_values() -> None:
    row = np.array([[NAN, NAN, 7.0]])
    assert check_values(spec(Numeric("x"), COLOUR, STRICT), row) is row


def test_a_row_alone_has_the_codes_it_has_among_many() -> None:
    attributes = (
        Nominal("a", ("x", "y", "z")),
        Nominal("b", ("x", "y"), missing="reject"),
        Numeric("c", edges=(-1.0, 0.0, 0.5)),
        Numeric("d", cuts=3, missing="reject"),
        Numeric("e"),
    )
    edges = ((), (), (-1.0, 0.0, 0.5), (0.25, 0.5), ())
    encoder = Encoder(attributes, edges)
    special = [np.nan, np.inf, -np.inf, -0.0, -1.0, 0.5, 1e300, 2.0, 3.0, 999.0, 1000.0, 1001.0]
    values = np.random.default_rng(0).choice([*special, 0.0, 1.0, 0.25], (500, 5))
    many = encoder.codes(values)
    for row, expected in zip(values, many, strict=True):
        alone = encoder.codes(row[None])
        assert alone.dtype == many.dtype
        assert alone.flags.f_contiguous
        assert alone[0].tolist() == expected.tolist(), row
    assert encoder.codes(values[:0]).shape == (0, 5)
