"""Fields of requests in a user's words."""

import re
from pathlib import Path

import pytest

from quercus.belief.errors import InvalidInput
from quercus.client import Nominal, Numeric, Specification
from quercus.client.errors import invalid
from quercus.client.places import naming_places, place_of, plain_text
from quercus.files import FileError, open_table
from quercus.files.faults import naming_columns, naming_lines

SPECIFICATION = Specification([Numeric("x"), Nominal("says", ["hi\nthere", "b"])], ["p", "q\nr"])
WIRE = re.compile(r"specification|\w+\[\d+\]|nominal\.|numeric\.|model_id|update_mask")


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("specification.attributes[1].nominal.values[0]", r"attribute 'says', value 'hi\nthere'"),
        ("specification.attributes[1].name", "attribute 'says'"),
        ("specification.attributes[0].numeric.edges[2]", "attribute 'x', edge 3"),
        ("specification.attributes[9]", "attribute 10"),
        ("attributes[0].bins", "attribute 'x', bins"),
        ("specification.classes[1]", r"class 'q\nr'"),
        ("specification.learner.name", "learner"),
        ("specification.learner.trees", "trees"),
        ("specification.presentation.series[0].attributes[1]", "series 1, attribute 2"),
        ("rows[3].skin.colour [cm]", "row 3, attribute 'skin.colour [cm]'"),
        ("rows[3]", "row 3"),
        ("labels[4]", "row 4, label"),
        ("ids[5]", "row 5, id"),
        ("displays[2].items[0].url", "row 2, item 1, url"),
        ("statements[2].labeller", "row 2, labeller"),
        ("model_id", "the model's name"),
        ("max_conflict", "max conflict"),
        ("the file of 3 rows", "the file of 3 rows"),
        ("QUERCUS_TOKEN_FILE", "QUERCUS_TOKEN_FILE"),  # a variable of the environment
    ],
)
def test_a_field_is_what_its_user_calls_it(field: str, words: str) -> None:
    assert place_of(field, SPECIFICATION).text == words
    assert not WIRE.search(place_of(field, SPECIFICATION).text)
    assert not WIRE.search(place_of(field).text), "also where the specification is not known"


def test_a_message_has_no_path_of_the_protocol() -> None:
    error = invalid("specification.attributes[1]", "is 'says', the same as number 1; must be distinct")
    assert plain_text(error) == "attribute 2: is 'says', the same as number 1; must be distinct"
    with pytest.raises(type(error)) as caught, naming_places(SPECIFICATION):
        raise error
    assert str(caught.value) == "attribute 'says': is 'says', the same as number 1; must be distinct"
    assert caught.value.violations[0].field == "specification.attributes[1]", "for programs"


@pytest.mark.parametrize(
    ("field", "words"),
    [
        (
            "specification.attributes[1].nominal.values[0]",
            "line 5, column 2 (says): a name is bad; leave the column out with --ignore says; quercus push --beside",
        ),
        (
            "specification.attributes[0].name",
            "column 1 ('x'): the name is bad; rename the column, or leave it out with --ignore x",
        ),
        ("specification.classes[1]", "line 3, column 3 (class): a name is bad; change it in the file"),
    ],
)
def test_a_refused_model_is_told_by_column_and_line(tmp_path: Path, field: str, words: str) -> None:
    file = tmp_path / "t.csv"
    file.write_text('x,says,class\n1,b,p\n2,b,"q\nr"\n3,"hi\nthere",p\n')
    specification = Specification([Numeric("x"), Nominal("says", ["hi\nthere", "b"])], ["p", "q\nr"])
    with pytest.raises(FileError) as caught, naming_columns(open_table(file), specification, "class"):
        raise invalid(field, "is bad")
    assert words in str(caught.value)
    with pytest.raises(InvalidInput, match="alpha"), naming_columns(open_table(file), specification, "class"):
        raise InvalidInput("specification.alpha", "is 7")


def test_a_refused_row_is_told_by_its_line(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text('x,y\n1,"a\nb"\n2,c\n')
    table = open_table(file)
    with (
        pytest.raises(FileError, match=r"t.csv: line 4, column 2 \(y\): is bad"),
        naming_lines(table, list(table)),
    ):
        raise invalid("rows[1].y", "is bad")
