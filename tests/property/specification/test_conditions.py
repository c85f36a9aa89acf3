"""Merged conditions hold for a row exactly when its path does."""

from hypothesis import given
from hypothesis import strategies as st

from quercus.specification.conditions import condition_of, merge_conditions

NUMBERS = st.sampled_from([-1.5, 0.0, 0.25, 1.0, 2.5, 1e6])
BRANCHES_OF_NUMBERS = st.one_of(
    NUMBERS.map(lambda x: f"< {x:.6g}"),
    NUMBERS.map(lambda x: f"≥ {x:.6g}"),
    st.tuples(NUMBERS, NUMBERS)
    .filter(lambda ends: ends[0] < ends[1])
    .map(lambda e: f"[{e[0]:.6g}, {e[1]:.6g})"),
    st.just("?"),
)
BRANCHES_OF_NAMES = st.sampled_from(["red", "blue", "< 1", "[0, 1)", "?"])
NOMINAL = frozenset({"a", "b"})
STEPS = st.one_of(
    st.tuples(st.sampled_from(["x", "y"]), BRANCHES_OF_NUMBERS),
    st.tuples(st.sampled_from(["a", "b"]), BRANCHES_OF_NAMES),
)
ROWS = st.fixed_dictionaries(
    {name: st.one_of(st.none(), NUMBERS, st.floats(-3, 3)) for name in ("x", "y")}
    | {name: st.sampled_from([None, "red", "blue", "< 1", "[0, 1)"]) for name in ("a", "b")}
)


def passes(attribute: str, branch: str, value: str | float | None) -> bool:
    """Return whether a value passes the branch, computed independently of the module under test."""
    if branch == "?" or value is None:
        return branch == "?" and value is None
    if isinstance(value, str):
        return branch == value
    if branch[0] == "[":
        low, high = branch[1:-1].split(", ")
        return float(low) <= value < float(high)
    return value < float(branch[2:]) if branch[0] == "<" else value >= float(branch[2:])


@given(st.lists(STEPS, max_size=8), ROWS)
def test_merged_conditions_hold_exactly_when_the_path_does(
    path: list[tuple[str, str]], row: dict[str, str | float | None]
) -> None:
    merged = merge_conditions(path, NOMINAL)
    assert len({condition.attribute for condition in merged}) == len(merged)
    assert {condition.attribute for condition in merged} == {attribute for attribute, _ in path}
    wanted = all(passes(attribute, branch, row[attribute]) for attribute, branch in path)
    assert all(condition.holds(row[condition.attribute]) for condition in merged) == wanted


def test_names_that_look_like_branches_of_numbers_stay_names() -> None:
    assert condition_of("size", "< 3", is_nominal=True).holds("< 3")
    assert condition_of("size", "< 3").holds(2.0)
