import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.beliefs import contours, labels

from quercus.belief.codec import decode, decode_contours, encode, encode_contours, encode_sets
from quercus.belief.contour import check_contour, check_contours, is_precise, is_vacuous
from quercus.belief.errors import InvalidInput
from quercus.belief.evidence import update
from quercus.belief.label import ClassSet, Label, Plausibilities, check_label, contour, set_contours

SIZES = st.integers(2, 64)


def decoded(data: bytes, size: int) -> Label | InvalidInput:
    try:
        return decode(data, size)
    except InvalidInput as error:
        return error


@given(SIZES.flatmap(lambda size: st.tuples(st.just(size), labels(size))))
def test_codec_round_trip_is_exact(case: tuple[int, Label]) -> None:
    size, label = case
    assert decode(encode(label), size) == label
    assert encode(decode(encode(label), size)) == encode(label)


@st.composite
def altered(draw: st.DrawFn, size: int) -> bytes:
    """The bytes of a label, one of them another."""
    data = bytearray(encode(draw(labels(size))))
    data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data)


def with_bytes(size: int) -> st.SearchStrategy[tuple[int, bytes]]:
    return st.tuples(st.just(size), st.one_of(st.binary(max_size=80), altered(size)))


@given(SIZES.flatmap(with_bytes))
def test_any_bytes_decode_to_a_fitting_label_or_a_clear_error(case: tuple[int, bytes]) -> None:
    size, data = case
    result = decoded(data, size)
    if isinstance(result, InvalidInput):
        assert result.field
        assert result.reason
    else:
        assert check_label(result, size) is result
        assert 0.0 < contour(result, size).max() <= 1.0


def with_mask(size: int) -> st.SearchStrategy[tuple[int, int]]:
    return st.tuples(st.just(size), st.one_of(st.integers(0, 2**size - 1), st.integers(0, 2**64 - 1)))


@given(SIZES.flatmap(with_mask))
def test_a_mask_decodes_where_it_fits_the_frame(case: tuple[int, int]) -> None:
    size, mask = case
    result = decoded(struct.pack("<BQ", 0x11, mask), size)
    if 0 < mask < 2**size:
        assert result == ClassSet(mask)
    else:
        assert isinstance(result, InvalidInput)
        assert result.reason


def with_numbers(size: int) -> st.SearchStrategy[tuple[int, list[float]]]:
    return st.tuples(st.just(size), st.one_of(contours(size), st.lists(st.floats(), max_size=size + 1)))


@given(SIZES.flatmap(with_numbers))
def test_plausibilities_decode_where_they_are_a_contour(case: tuple[int, list[float]]) -> None:
    size, values = case
    result = decoded(struct.pack(f"<B{len(values)}d", 0x12, *values), size)
    if len(values) == size and all(0 <= value <= 1 for value in values) and any(values):
        assert result == Plausibilities(tuple(values))
    else:
        assert isinstance(result, InvalidInput)
        assert result.reason


@given(SIZES.flatmap(lambda size: st.tuples(st.just(size), labels(size))))
def test_the_contour_of_a_label_is_a_contour(case: tuple[int, Label]) -> None:
    size, label = case
    values = contour(label, size)
    assert check_contour(values, size).tolist() == values.tolist()
    if isinstance(label, ClassSet):
        assert bool(is_precise(values)) == (label.mask.bit_count() == 1)
        assert bool(is_vacuous(values)) == (label.mask == 2**size - 1)


@given(SIZES.flatmap(lambda size: st.tuples(st.just(size), st.lists(labels(size), max_size=5))))
def test_bulk_decoding_equals_one_by_one(case: tuple[int, list[Label]]) -> None:
    size, many = case
    bulk = decode_contours([encode(label) for label in many], size)
    assert bulk.shape == (len(many), size)
    assert bulk.tolist() == [contour(label, size).tolist() for label in many]


@given(
    SIZES.flatmap(lambda size: st.tuples(st.just(size), st.lists(st.integers(1, 2**size - 1), max_size=9)))
)
def test_bulk_sets_equal_one_by_one(case: tuple[int, list[int]]) -> None:
    size, masks = case
    words = np.array(masks, dtype=np.uint64)
    assert encode_sets(words) == [encode(ClassSet(mask)) for mask in masks]
    assert set_contours(words, size).tolist() == [contour(ClassSet(mask), size).tolist() for mask in masks]


@given(SIZES.flatmap(lambda size: st.tuples(st.just(size), st.lists(contours(size), max_size=6))))
def test_bulk_contours_equal_one_by_one(case: tuple[int, list[list[float]]]) -> None:
    size, rows = case
    table = np.array(rows, dtype=np.float64).reshape(len(rows), size)
    assert encode_contours(table) == [encode(Plausibilities(tuple(row))) for row in rows]


@given(SIZES.flatmap(lambda size: st.tuples(st.just(size), st.lists(contours(size), min_size=1, max_size=6))))
def test_questions_about_many_contours_equal_one_by_one(case: tuple[int, list[list[float]]]) -> None:
    size, rows = case
    table = check_contours(rows, size)
    assert is_precise(table).tolist() == [sum(v > 0 for v in row) == 1 for row in rows]
    assert is_vacuous(table).tolist() == [len(set(row)) == 1 for row in rows]


def known_or_precise(size: int) -> st.SearchStrategy[list[float]]:
    precise = st.integers(0, size - 1).map(lambda klass: [float(c == klass) for c in range(size)])
    return st.one_of(contours(size), precise)


@given(
    st.integers(2, 6).flatmap(lambda size: st.tuples(known_or_precise(size), known_or_precise(size))),
    st.one_of(st.just(1.0), st.floats(0, 1)),
)
def test_an_answer_combines_as_the_product_of_discounted_contours(
    pair: tuple[list[float], list[float]], reliability: float
) -> None:
    known, answer = np.array(pair[0]), np.array(pair[1])
    updated = update(known, answer, reliability)
    assert updated.contour.max() == 1.0
    assert updated.contour.min() >= 0.0
    if updated.conflict or (is_precise(answer) and reliability == 1.0):
        said = reliability * answer + (1.0 - reliability)
        assert updated.contour == pytest.approx(said / said.max(), abs=1e-9)
        return
    discounted = reliability * answer + (1.0 - reliability)
    expected = [(k / known.max()) * (d / discounted.max()) for k, d in zip(known, discounted, strict=True)]
    assert updated.contour * max(expected) == pytest.approx(np.array(expected), abs=1e-9)


@given(st.integers(2, 6).flatmap(contours))
def test_an_answer_of_reliability_zero_changes_nothing_but_the_scale(values: list[float]) -> None:
    known = np.array(values)
    updated = update(known, np.eye(len(known))[0], 0.0)
    assert not updated.conflict
    assert updated.contour == pytest.approx(known / known.max(), abs=1e-12)
