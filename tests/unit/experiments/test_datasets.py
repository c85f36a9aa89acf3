"""Data sets: built in, made by rules, or read from a folder."""

import gzip
import json

import numpy as np
import pytest

from quercus.belief.errors import InvalidInput
from quercus.experiments.datasets import BUILT_IN, built_in, files_in, in_folder
from quercus.experiments.restaurant import ATTRIBUTES, restaurants, waits
from quercus.files import FileError
from quercus.specification.attributes import Nominal, Numeric

MIXED = "id,colour,size,day,class\n1,red,1.5,1,b\n2,blue,,2,a\n3,?,2,1,b\n"
KINDS = {
    "mixed.csv": {"id": "id", "colour": "nominal", "size": "numeric", "day": "nominal", "class": "nominal"}
}
TEXTBOOK = """
Alternate Bar Fri/Sat Hungry Patrons Price Raining Reservation Type WaitEstimate class
Yes No No Yes Some $$$ No Yes French 0-10 Yes
Yes No No Yes Full $ No No Thai 30-60 No
No Yes No No Some $ No No Burger 0-10 Yes
Yes No Yes Yes Full $ Yes No Thai 10-30 Yes
Yes No Yes No Full $$$ No Yes French >60 No
No Yes No Yes Some $$ Yes Yes Italian 0-10 Yes
No Yes No No None $ Yes No Burger 0-10 No
No No No Yes Some $$ Yes Yes Thai 0-10 Yes
No Yes Yes No Full $ Yes No Burger >60 No
Yes Yes Yes Yes Full $$$ No Yes Italian 10-30 No
No No No No None $ No No Thai 0-10 No
Yes Yes Yes Yes Full $ No No Burger 30-60 Yes
"""  # Russell and Norvig, figure 18.3


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mixed.csv").write_text(MIXED)
    (tmp_path / "other.csv.gz").write_bytes(gzip.compress(b"x,y\n1,p\n2,q\n"))
    (tmp_path / "mixed_answers.csv").write_text("row,user\n0,u\n")
    (tmp_path / "KINDS.json").write_text(json.dumps(KINDS))
    return tmp_path


def test_the_built_in_sets_are_those_of_the_papers():
    shapes = {
        data.name: data.values.shape for data in built_in(["iris", "wine", "breast_cancer", "balance_scale"])
    }
    assert shapes == {
        "iris": (150, 4),
        "wine": (178, 13),
        "breast_cancer": (569, 30),
        "balance_scale": (625, 4),
    }
    with pytest.raises(InvalidInput, match=f"sets: has no 'irises'; .*{', '.join(BUILT_IN)}"):
        built_in(["iris", "irises"])


def test_kinds_say_what_columns_are(folder):
    (data,) = in_folder(folder, ["mixed"], folder / "KINDS.json")
    assert data.attributes == (
        Nominal("colour", ("blue", "red")),
        Numeric("size"),
        Nominal("day", ("1", "2")),
    )
    assert data.classes == ("a", "b")
    assert data.targets.tolist() == [1, 0, 1]
    np.testing.assert_equal(data.values, [[1, 1.5, 0], [0, np.nan, 1], [np.nan, 2, 0]])


def test_without_kinds_numbers_are_numbers_and_the_last_column_is_the_class(folder):
    assert list(files_in(folder)) == ["mixed", "other"]
    mixed, other = in_folder(folder, None, None)
    assert [a.name for a in mixed.attributes if isinstance(a, Numeric)] == ["id", "size", "day"]
    assert other.classes == ("p", "q")


def test_mistakes_are_reported(folder):
    with pytest.raises(InvalidInput, match=r"sets: has no 'wine'; .* holds mixed, other"):
        in_folder(folder, ["wine"], None)
    (folder / "KINDS.json").write_text('{"mixed.csv": {"size": "big"}}')
    with pytest.raises(FileError, match="size: 'big' is not a kind; they are numeric, nominal, id"):
        in_folder(folder, None, folder / "KINDS.json")
    (folder / "KINDS.json").write_text("{")
    with pytest.raises(FileError, match="is not JSON"):
        in_folder(folder, None, folder / "KINDS.json")
    (folder / "mixed.csv").write_text("x,class\n1,a\n2,\n3,b\n")
    with pytest.raises(FileError, match="row 2 of the data has no class, or several"):
        in_folder(folder, ["mixed"], None)


def test_masses_beside_a_file_are_its_labels(folder):
    masses = "a,b,a|b,class\n.5,0,.5,b\n0,1,0,a\n0,0,1,b\n"
    (folder / "mixed_masses.csv").write_text(masses)
    (data,) = in_folder(folder, ["mixed"], folder / "KINDS.json")
    assert data.masses is not None
    assert [mass.focal for mass in data.masses] == [((1, 0.5), (3, 0.5)), ((2, 1.0),), ((3, 1.0),)]
    assert data.targets.tolist() == [1, 0, 1]
    (folder / "mixed_masses.csv").write_text("a,b\n1,0\n0,1\n1,1\n")
    with pytest.raises(FileError, match="holds no mass functions"):
        in_folder(folder, ["mixed"], folder / "KINDS.json")


def test_the_rule_agrees_with_the_textbooks_twelve_examples():
    names, *rows = (line.split() for line in TEXTBOOK.strip().splitlines())
    assert len(rows) == 12
    for row in rows:
        example = dict(zip(names, row, strict=True))
        assert waits(example) == (example["class"] == "Yes")


def test_restaurants_are_drawn_from_all_there_can_be():
    data = restaurants(500, np.random.SeedSequence(0))
    for k, attribute in enumerate(ATTRIBUTES):
        assert set(data.values[:, k]) == set(range(len(attribute.values)))
    assert 0.3 < data.targets.mean() < 0.7
