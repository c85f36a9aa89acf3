"""Resource names and page tokens."""

import pytest

from quercus.belief.errors import InvalidInput
from quercus.server.wire import names


def test_names_come_back() -> None:
    assert names.parse_model(names.model_name("m-1_x")) == "m-1_x"
    assert names.parse_instance(names.instance_name("m", "a:b c.d/é%")) == ("m", "a:b c.d/é%")
    assert names.parse_query(names.query_name("m", 12)) == ("m", 12)
    assert names.parse_tree(names.tree_name("m", 3)) == ("m", 3)
    assert names.parse_tree("models/m/trees/latest") == ("m", None)


@pytest.mark.parametrize(
    "name", ["", "m", "model/m", "models/", "models/M", "models/m/", "/models/m", "models/m/x"]
)
def test_bad_model_names(name: str) -> None:
    with pytest.raises(InvalidInput):
        names.parse_model(name)


@pytest.mark.parametrize("name", ["models/m/instances/", "models/m/instances/a/b", "models/m/instances/50%"])
def test_bad_instance_names(name: str) -> None:
    with pytest.raises(InvalidInput, match="%2F"):
        names.parse_instance(name)


@pytest.mark.parametrize("after", ["m", "a-b_c", "9"])
def test_tokens_come_back(after: str) -> None:
    assert names.read_token("models", names.make_page_token("models", after)) == after


def test_first_page_has_no_token() -> None:
    assert names.read_token("models", "") == ""
    assert names.read_number_token("queries", "") == 0


@pytest.mark.parametrize(
    "token",
    ["x", "é", "====", names.make_page_token("models", "m"), names.make_page_token("queries", "-1"), "\0"],
)
def test_tokens_of_another_listing(token: str) -> None:
    with pytest.raises(InvalidInput, match="was not made by a listing of queries"):
        names.read_number_token("queries", token)


def test_page_sizes() -> None:
    assert [names.page_size(size) for size in (0, 1, 1000)] == [100, 1, 1000]
    for size in (-1, 1001):
        with pytest.raises(InvalidInput, match=f"page_size: {size} is not between 0 and 1000"):
            names.page_size(size)
