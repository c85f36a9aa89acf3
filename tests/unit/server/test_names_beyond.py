"""Names beyond the bound of an attribute: which get a value, what the others become, and how they are counted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quercus.belief.errors import InvalidInput
from quercus.belief.frame import Frame
from quercus.server.labelling.leasing import QueryFilter
from quercus.server.wire.rows import MAX_EXAMPLES, decode_rows, encode_row
from quercus.server.wire.schema import AttributeColumn, ModelSchema
from quercus.specification.attributes import Nominal
from quercus.trees import branch_names
from quercus.trees.tree.encoding import Encoder
from quercus.v1 import values_pb2

FRAME = Frame(("p", "q"))
MOST = 4


def schema(*values: str, most: int = MOST, bucket: bool = True) -> ModelSchema:
    return ModelSchema("m", 1, (AttributeColumn("A", values, 1, True, most, bucket),), FRAME)


def named(*names: str) -> values_pb2.Rows:
    rows = [values_pb2.NamedRow(values={"A": values_pb2.NamedValue(nominal=name)}) for name in names]
    return values_pb2.Rows(named=values_pb2.NamedRows(rows=rows))


def packed(*indices: float) -> values_pb2.Rows:
    return values_pb2.Rows(packed=values_pb2.PackedRows(values=indices))


names_of_rows = st.lists(st.sampled_from(["d", *"efghijk", "(other names)", "((other names))"]), max_size=30)


@given(names_of_rows, st.data())
def test_which_names_are_values_does_not_depend_on_messages(names: list[str], data: st.DataObject) -> None:
    """The first names in the order of the rows are values, and stay it; beside it a plain computation."""
    values, indices, rest = ("d",), list[float](), names
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        decoded = decode_rows(named(*rest[:size]), schema(*values), learn=True)
        assert [new.index for new in decoded.new_values] == list(
            range(len(values) - 1, len(values) - 1 + len(decoded.new_values))
        )
        values += tuple(new.value for new in decoded.new_values)
        indices += decoded.values[:, 0].tolist()
        rest = rest[size:]
    kept = list(dict.fromkeys(["d", *names]))[:MOST]
    assert list(values) == kept
    assert indices == [kept.index(name) if name in kept else MOST for name in names]


def test_a_row_of_the_bucket_reads_as_no_name() -> None:
    full = schema("a", "(other names)", "c", "d")
    shown = [encode_row(np.array([index]), full).values["A"] for index in (1.0, 4.0)]
    assert (shown[0].WhichOneof("kind"), shown[0].nominal) == ("nominal", "(other names)")
    assert (shown[1].WhichOneof("kind"), shown[1].other) == ("other", "((other names))")
    column = full.columns[0]
    assert [column.index_of(text) for text in ("(other names)", "((other names))", "e")] == [1, 4, None]


def test_rows_that_were_stored_after_the_names_were_read_are_not_shown_as_those_of_the_bucket() -> None:
    with pytest.raises(IndexError):
        encode_row(np.array([2.0]), schema("a", "b"))


def test_labellers_may_ask_for_rows_of_the_bucket() -> None:
    wanted = QueryFilter(values={"A": "(other names)"})
    wanted.check_names(schema(*"abcd"))
    for short in (schema(*"abc"), schema(*"abcd", bucket=False)):
        with pytest.raises(InvalidInput, match="other names"):
            wanted.check_names(short)


def test_the_index_of_the_bucket_is_taken_once_the_attribute_is_full() -> None:
    full, other = schema(*"abcd"), values_pb2.NamedRow(values={"A": values_pb2.NamedValue(other="any")})
    by_name = values_pb2.Rows(named=values_pb2.NamedRows(rows=[other]))
    for learn in (True, False):
        assert decode_rows(packed(3, 4), full, learn=learn).values[:, 0].tolist() == [3, 4]
        assert decode_rows(by_name, full, learn=learn).values[:, 0].tolist() == [4]
    for short in (schema(*"abc"), schema(*"abcd", bucket=False)):
        with pytest.raises(InvalidInput, match=r"must be an index into its [34] values, 0 to [23]"):
            decode_rows(packed(4), short, learn=True)
        with pytest.raises(InvalidInput, match="is one of the names beyond the bound, but"):
            decode_rows(by_name, short, learn=True)
    assert decode_rows(by_name, schema(*"abc"), learn=False).values[:, 0].tolist() == [MOST]


def test_an_attribute_may_refuse() -> None:
    full = schema(*"abcd", bucket=False)
    with pytest.raises(InvalidInput) as caught:
        decode_rows(named("a", "e"), full, learn=True)
    assert caught.value.field == "rows[1].A"
    assert caught.value.reason == (
        "is 'e', but the attribute has 4 values, the most it may (max_values), and refuses others (overflow)"
    )
    decoded = decode_rows(named("a", "e"), full, learn=False)
    assert [(each.rows, each.names, each.rows_beyond) for each in decoded.unseen] == [(1, 1, 0)]


def test_names_of_the_bucket_keep_the_rules_of_names() -> None:
    with pytest.raises(InvalidInput, match=r"U[+]000A"):
        decode_rows(named("e\nf"), schema(*"abcd"), learn=True)


def test_unseen_names_are_counted() -> None:
    decoded = decode_rows(named("a", "x", "y", "x", "b", "z", "w"), schema("a"), learn=True)
    assert decoded.values[:, 0].tolist() == [0, 1, 2, 1, 3, 4, 4]
    assert list(decoded.unseen) == [
        values_pb2.UnseenNames(
            attribute="A", rows=6, names=5, examples=["x", "y", "b", "z", "w"], rows_beyond=2
        )
    ]
    sets = values_pb2.NamedRow(
        values={"A": values_pb2.NamedValue(nominals=values_pb2.NominalSet(values=["a", "v", "w"]))}
    )
    uncertain = values_pb2.Rows(named=values_pb2.NamedRows(rows=[sets, *named("a", "v").named.rows]))
    for known, beyond in (("abc", 0), ("abcd", 2)):
        decoded = decode_rows(uncertain, schema(*known), learn=False)
        (said,) = decoded.unseen
        assert (said.rows, said.names, list(said.examples), said.rows_beyond) == (2, 2, ["v", "w"], beyond)
        assert decoded.values[:, 0].tolist()[1:] == [0, MOST]
        assert decoded.parts == {(0, 0): ((0.0, 0.0), (4.0, 4.0))}
    many = decode_rows(named(*(f"n{i}" for i in range(500))), schema("a"), learn=False).unseen
    assert [(each.names, len(each.examples)) for each in many] == [(500, MAX_EXAMPLES)]
    assert decode_rows(named("a", "a"), schema("a"), learn=True).unseen == []


@pytest.mark.parametrize("missing", ["branch", "reject"])
def test_the_bucket_is_a_branch_with_a_name_that_no_value_has(missing: str) -> None:
    attribute = Nominal("A", ("a",), missing, 3)  # type: ignore[arg-type]
    codes = Encoder((attribute,), ((),)).codes(np.arange(4.0)[:, np.newaxis])[:, 0]
    for learned, label in ((("b", "c"), "(other names)"), (("(other names)", "c"), "((other names))")):
        (names,) = branch_names((attribute,), ((),), {0: learned})
        assert [names[code] for code in codes] == ["a", *learned, label]
    assert branch_names((attribute,), ((),), {0: ("b",)})[0][-1] == "b"
    refusing = Nominal("A", ("a",), missing, 3, "refuse")  # type: ignore[arg-type]
    assert branch_names((refusing,), ((),), {0: ("b", "c")})[0][-1] == "c"
