"""The rule of what a value is."""

import datetime
import itertools
import unicodedata
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quercus.belief.missing import is_missing
from quercus.specification.values import (
    Spellings,
    canonical_cell,
    canonical_names,
    canonical_text,
    number_of,
    seconds_of,
)

NAMES = st.text(max_size=12).map(canonical_text).filter(bool)


@given(st.text(max_size=20))
def test_the_canonical_text_is_its_own(text: str) -> None:
    assert canonical_text(canonical_text(text)) == canonical_text(text)


@given(NAMES, st.sampled_from(["", " ", "\t", "\u00a0", "\u3000"]), st.sampled_from(["NFC", "NFD"]))
def test_space_at_the_ends_and_the_form_of_unicode_do_not_count(name: str, space: str, form: Any) -> None:
    assert canonical_text(space + unicodedata.normalize(form, name) + space) == name


@given(st.integers(-(2**53), 2**53), st.integers(1, 5))
def test_a_whole_number_has_one_name(number: int, zeros: int) -> None:
    forms = [number, float(number), np.int64(number), np.float64(number), Decimal(number), str(number)]
    forms.append(f"{number}.{'0' * zeros}")
    if abs(number) < 1e16:  # larger floats are written in powers of ten
        assert {canonical_cell(form) for form in forms} == {str(number)}


@pytest.mark.parametrize("cell", [True, np.True_, "true", "True", "TRUE", " true "])
@pytest.mark.parametrize("names", [["true", "false"], ["True", "False"], ["FALSE", "TRUE"], ["true"]])
def test_truth_is_found_in_any_spelling(cell: object, names: list[str]) -> None:
    text = canonical_cell(cell)
    assert text is not None
    assert Spellings(names).of(text) == next(name for name in names if name.lower() == "true")


@given(st.lists(NAMES, max_size=6, unique=True))
def test_a_name_is_found_as_it_is_spelled(names: list[str]) -> None:
    spellings = Spellings(names)
    assert [spellings.of(name) for name in names] == names
    assert [spellings.name(name) for name in names] == names


@given(NAMES)
def test_a_model_that_learns_a_name_finds_it_again(name: str) -> None:
    learned = Spellings([]).name(name)
    assert Spellings([learned]).of(name) == learned


def test_a_truth_value_is_one_value_whatever_else_a_stream_brings() -> None:
    names: list[str] = []
    for text in ("True", "maybe", "TRUE", "False"):
        name = Spellings(names).name(text)
        names += [name] * (name not in names)
    assert names == ["true", "maybe", "False"]


def test_case_counts_where_a_name_is_no_truth_value() -> None:
    assert Spellings(["Red"]).of("red") is None
    assert Spellings(["True", "true", "maybe"]).of("TRUE") is None
    assert Spellings(["maybe", "true"]).of("True") is None
    assert canonical_names(["True", "False", "maybe"]) == ("True", "False", "maybe")


@pytest.mark.parametrize("names", [("True", "true"), ("101", "101.0"), ("a", " a"), ("\u00e9", "e\u0301")])
def test_names_of_one_value_are_refused(names: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match="are one value"):
        canonical_names(names)


@pytest.mark.parametrize(
    "cell", [None, float("nan"), np.float32("nan"), pd.NA, pd.NaT, Decimal("NaN"), "", " "]
)
def test_nothing_is_missing(cell: object) -> None:
    assert canonical_cell(cell) is None
    assert is_missing(cell) or cell in {"", " "}


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (float("inf"), "inf is not a name"),
        (b"red", "bytes"),
        (["red"], "list"),
        (datetime.date(2026, 1, 1), "is a moment"),
        (pd.Timestamp("2026-01-01"), "is a moment"),
        (np.datetime64("2026-01-01"), "is a moment"),
        (datetime.timedelta(1), "is a time"),
        (np.timedelta64(1, "s"), "is a time"),
        (datetime.time(1), "is a time"),
    ],
)
def test_what_names_nothing_is_refused_in_words(cell: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        canonical_cell(cell)


MOMENT = 1_767_225_600.5  # 2026-01-01T00:00:00.5Z


@pytest.mark.parametrize(
    "cell",
    [
        "2026-01-01T00:00:00.5Z",
        "2026-01-01 01:00:00.500 +01:00",
        "2026-01-01 00:00:00.500000",
        datetime.datetime(2026, 1, 1, 0, 0, 0, 500_000),
        datetime.datetime(
            2026, 1, 1, 2, 0, 0, 500_000, tzinfo=datetime.timezone(datetime.timedelta(hours=2))
        ),
        pd.Timestamp("2026-01-01 00:00:00.5"),
        np.datetime64("2026-01-01T00:00:00.5"),
        np.datetime64("2026-01-01T00:00:00.500000000"),
    ],
)
def test_a_moment_is_seconds_since_1970(cell: object) -> None:
    assert seconds_of(cell) == MOMENT


@pytest.mark.parametrize(
    "cell", ["2026", "20260101", "2026-02-30", "", 5, 2.5, None, pd.NaT, np.datetime64("NaT")]
)
def test_what_is_no_moment_has_no_seconds(cell: object) -> None:
    assert seconds_of(cell) is None


def test_dates_are_midnights() -> None:
    days = [datetime.date(2026, 1, 1), "2026-01-01", np.datetime64("2026-01-01")]
    assert {seconds_of(day) for day in days} == {1_767_225_600.0}


def test_moments_of_numpy_are_exact_to_the_microsecond() -> None:
    for year, nanoseconds in itertools.product((1678, 1969, 2026, 2261), (0, 1_000, 999_999_000)):
        moment = np.datetime64(f"{year}-10-01T00:00:00", "ns") + np.timedelta64(nanoseconds, "ns")
        python = datetime.datetime(year, 10, 1, microsecond=nanoseconds // 1000, tzinfo=datetime.UTC)
        assert seconds_of(moment) == pytest.approx(python.timestamp(), abs=1e-6)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_the_same_as_text(number: float) -> None:
    assert number_of(repr(number)) == number_of(number) == number_of(np.float64(number)) == number


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        (np.datetime64("1970-01-02"), 86400.0),
        ("1970-01-01T00:01:00Z", 60.0),
        (pa.scalar(datetime.datetime(1970, 1, 1, 0, 1)), 60.0),
        (pd.Timedelta("90s"), 90.0),
        (np.timedelta64(1500, "ms"), 1.5),
        (Decimal("2.50"), 2.5),
        (" 2.50 ", 2.5),
        (True, 1.0),
        ("?", None),
        ("", None),
        (pd.NaT, None),
        (pa.scalar(None), None),
    ],
)
def test_what_a_numeric_attribute_takes(cell: object, number: float | None) -> None:
    assert number_of(cell) == number


@pytest.mark.parametrize(
    "cell", ["2,5", "12 %", "1_000", "inf", "true", "nan", b"2", [1], datetime.time(1), 10**400]
)
def test_what_a_numeric_attribute_refuses(cell: object) -> None:
    with pytest.raises(ValueError, match="is not a number"):
        number_of(cell)
