"""Rows by filter and order, page by page, on a live server; beside a plain computation in Python."""

from collections.abc import Iterator

import pytest
from integration.client.serving import Serving

from quercus.client import Client, InvalidArgument, Nominal, Numeric, RowFilter, Specification
from quercus.client.answers import Statement
from quercus.client.results import Instance
from quercus.server.wire.names import make_page_token, read_row_token

CLASSES = ["red", "green", "blue"]
SOILS = ["clay", "Lime", 'a "b"']
COUNT = 230


def pushed(k: int) -> int:
    """The class of a row in the file; of every eleventh not the one of its neighbours."""
    return (k // 30 + (k % 11 == 0)) % 3


@pytest.fixture(scope="module")
def client(shared_server: Serving) -> Iterator[Client]:
    with Client(shared_server.address) as connected:
        yield connected


@pytest.fixture(scope="module")
def rows(client: Client) -> list[Instance]:
    """Rows of which two labellers label some, now and then against each other and against the file."""
    attributes = [Numeric("x", cuts=8), Numeric("y", cuts=8), Nominal("soil", SOILS)]
    client.create_model("listed", Specification(attributes, CLASSES, budget=0))
    labels = [CLASSES[pushed(k)] if k % 4 else None for k in range(COUNT)]
    values = [[k / 10, k % 7, SOILS[k % 3]] for k in range(COUNT)]
    for k in range(11, COUNT, 11):  # nothing but their labels tells these from the rows before them
        values[k] = values[k - 1]
    client.push("listed", values, labels, ids=[f"Row-{k}" for k in range(COUNT)])
    said = [Statement(f"Row-{k}", CLASSES[k % 3], "ann") for k in range(0, 60, 5)]
    said += [Statement(f"Row-{k}", {"red": 1.0, "green": 0.3}, "tom") for k in range(0, 60, 10)]
    said += [Statement(f"Row-{k}", "blue", "eve") for k in (7, 8)]
    client.state("listed", said)
    client.state("listed", [Statement("Row-7", labeller="eve", retract=True)])
    client.wait_grown("listed")
    return list(client.instances("listed", with_guesses=True))


def top(row: Instance) -> set[str]:
    highest = max(row.contour)
    found = {name for name, share in zip(CLASSES, row.contour, strict=True) if share == highest}
    return set() if len(found) == len(CLASSES) else found


def doubt(row: Instance) -> float:
    assert row.guess is not None
    return row.guess.doubt


def listed(client: Client, wanted: RowFilter, order: str = "pushed", size: int = 7) -> list[str]:
    """The ids of all pages, each as small as `size`; the total is the same on all."""
    ids: list[str] = []
    totals, page = set(), ""
    for _ in range(COUNT):
        found = client.row_page("listed", wanted, order, page=page, size=size)
        ids += [row.id for row in found.rows]
        totals.add(found.total)
        page = found.next_page
        if not page:
            break
    assert totals == {len(ids)}
    return ids


def test_filters_and_orders_are_those_of_a_plain_computation(client: Client, rows: list[Instance]) -> None:
    def ids(chosen: list[Instance]) -> list[str]:
        return [row.id for row in chosen]

    def labellers(row: Instance) -> set[str]:
        return {each.author for each in row.history if each.kind == "statement"}

    assert len(rows) == COUNT
    assert listed(client, RowFilter(class_name="green")) == ids([r for r in rows if "green" in top(r)])
    assert listed(client, RowFilter(labelled=False)) == ids([r for r in rows if not top(r)])
    assert listed(client, RowFilter(labeller="ann")) == ids([r for r in rows if "ann" in labellers(r)])
    assert listed(client, RowFilter(labeller="eve")) == ["Row-8"]  # what was taken back does not count
    assert listed(client, RowFilter(text="lime")) == ids([r for r in rows if r.values["soil"] == "Lime"])
    assert listed(client, RowFilter(text='A "')) == ids([r for r in rows if r.values["soil"] == SOILS[2]])
    assert listed(client, RowFilter(text="ROW-22")) == ["Row-22", *(f"Row-22{k}" for k in range(10))]
    assert listed(client, RowFilter(text="12.5")) == ["Row-125"]
    guessed = [r for r in rows if r.guess is not None and r.guess.class_name == "blue" and doubt(r) >= 0.05]
    assert listed(client, RowFilter(guess="blue", least_doubt=0.05)) == ids(guessed)
    odd = [r for r in rows if r.guess and top(r) and r.guess.class_name not in top(r)]
    assert listed(client, RowFilter(unexpected=True)) == ids(odd)
    assert len(odd) > 5
    doubtful = sorted(rows, key=lambda r: -doubt(r))
    assert listed(client, RowFilter(), "doubt desc") == ids(doubtful)
    assert listed(client, RowFilter(labelled=True), "pushed desc") == ids([r for r in rows if top(r)])[::-1]
    last = sorted(rows, key=lambda r: -max(each.sequence for each in r.history))
    assert listed(client, RowFilter(), "said desc") == ids(last)


def test_rows_are_disputed_where_labels_of_two_labellers_have_no_class_in_common(
    client: Client, rows: list[Instance]
) -> None:
    expected = []
    for k, row in enumerate(rows):
        said = [CLASSES[k % 3]] if k < 60 and k % 5 == 0 else []
        said += ["red"] if k < 60 and k % 10 == 0 else []
        said += ["blue"] if k == 8 else []
        if len(set(said)) > 1:
            expected.append(row.id)
    assert len(expected) > 3
    assert (
        listed(client, RowFilter(disputed=True)) == expected
    )  # the label that came with a row takes no part


def test_the_next_page_knows_what_was_said_since(client: Client, rows: list[Instance]) -> None:
    assert "Row-228" in listed(client, RowFilter(labelled=False))
    client.state("listed", [Statement("Row-228", "red", "zoe")])
    assert listed(client, RowFilter(labeller="zoe")) == ["Row-228"]
    assert "Row-228" not in listed(client, RowFilter(labelled=False))
    client.state("listed", [Statement("Row-228", labeller="zoe", retract=True)])
    assert listed(client, RowFilter(labeller="zoe")) == []


@pytest.mark.parametrize(
    ("filter_text", "reason"),
    [
        ("colour = 1", "'colour' is not a field of a filter; there are class"),
        ("class = pink", "class: 'pink' is not a class; there are red, green, blue"),
        ("class > red", "'> red' stands where = or != after class is expected"),
        ("doubt >= 1.5", "doubt: is '1.5', must be a number in [0, 1]"),
        ("doubt >= nan", "doubt: is 'nan', must be a number in [0, 1]"),
        ("labelled disputed", "'disputed' stands where AND is expected"),
        ("labelled AND", "nothing stands where a field is expected"),
        ('text : ""', "'\"\"' stands where a value after text : is expected"),
        ("a" * 2001, "has 2,001 characters, at most 2,000 are allowed"),
        (" AND ".join(["labelled"] * 21), "has 21 terms, at most 20 are allowed"),
    ],
)
def test_a_wrong_filter_is_answered_by_its_part_and_bound(
    client: Client, rows: list[Instance], filter_text: str, reason: str
) -> None:
    class Written(RowFilter):
        def __str__(self) -> str:
            return filter_text

    with pytest.raises(InvalidArgument) as caught:
        client.row_page("listed", Written())
    assert caught.value.violations[0].field == "filter"
    assert reason in str(caught.value)


def test_a_wrong_order_and_a_page_of_another_filter_are_refused(client: Client, rows: list[Instance]) -> None:
    with pytest.raises(InvalidArgument, match=r"order_by.*'size', must be one of pushed, said, doubt"):
        client.row_page("listed", order="size")
    page = client.row_page("listed", RowFilter(labelled=True), size=3).next_page
    with pytest.raises(
        InvalidArgument, match="was not made by a listing of rows of this model with this filter and order"
    ):
        client.row_page("listed", RowFilter(labelled=False), page=page)


def test_a_page_begins_behind_every_doubt_that_there_is() -> None:
    """1 − θ has up to 17 digits behind its zeros."""
    for doubt in (
        1 - 0.999,
        1 - (1 - 2**-53),
        1 - 0.98,
        0.00010000000000000009,
        0.1 + 0.2,
        -0.0010000000000000009,
        5e-324,
        0.0,
        1.0,
    ):
        assert read_row_token("rows-0", make_page_token("rows-0", f"{doubt!r}:7")) == (doubt, 7)


def test_a_page_of_another_model_is_refused(client: Client, rows: list[Instance]) -> None:
    """Also one of the same name, before it was made anew: its numbers are of other rows."""
    page = client.row_page("listed", RowFilter(labelled=True), size=3).next_page

    def make() -> str | None:
        client.create_model("other-listed", Specification([Numeric("x", cuts=8)], CLASSES, budget=0))
        client.push("other-listed", [[k] for k in range(20)], ["red"] * 20)
        with pytest.raises(
            InvalidArgument, match="was not made by a listing of rows of this model with this filter"
        ):
            client.row_page("other-listed", RowFilter(labelled=True), page=page)
        return client.row_page("other-listed", RowFilter(labelled=True), size=3).next_page

    page = make()
    client.delete_model("other-listed")
    make()
