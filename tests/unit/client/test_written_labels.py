"""Labels as text: what is written is read as the same label, whatever the classes are called."""

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quercus.belief.frame import Frame
from quercus.belief.given import LabelReader
from quercus.files import open_table
from quercus.files.answers import AnswerColumns, AnswerFile
from quercus.files.words import typed_classes
from quercus.server.wire.labels import label_text
from quercus.specification.written_labels import Label, read_label, write_label, write_name

SIGNS = st.sampled_from(list("ab|?{}\\:# ,\"'=;1.\n\t\r\u00a0\u3000\u2028u0"))
NAMES = st.text(
    SIGNS | st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=6
)
SHARES = st.floats(0.125, 1)


@st.composite
def labels(draw: st.DrawFn) -> tuple[list[str], Label]:
    """Classes of arbitrary names, and a label over them in one of its forms."""
    classes = draw(st.lists(NAMES.filter(str.strip), min_size=2, max_size=5, unique=True))
    names = st.sampled_from(classes)
    sets = st.sets(names, min_size=1).map(frozenset)
    several = st.sets(names, min_size=2).map(frozenset)
    forms = st.one_of(
        st.none(), names, several, st.dictionaries(names, SHARES, min_size=1),
        st.dictionaries(sets, SHARES, min_size=1, max_size=3),
    )  # fmt: skip
    return classes, draw(forms)


@settings(max_examples=150, deadline=None)
@given(labels())
def test_a_label_is_read_as_it_was_written(case: tuple[list[str], Label]) -> None:
    classes, label = case
    text = write_label(label)  # type: ignore[arg-type]  # a dict of sets is a mapping of collections
    assert read_label(text, classes) == label
    assert text == text.strip()
    assert not set(text) & set("\n\r\t\u2028")


@settings(max_examples=40, deadline=None)
@given(st.lists(NAMES.filter(str.strip), min_size=2, max_size=6, unique=True), st.data())
def test_answers_written_by_the_service_are_read_from_a_file(
    tmp_path_factory: pytest.TempPathFactory, classes: list[str], data: st.DataObject
) -> None:
    frame, reader = Frame(tuple(classes)), LabelReader(classes)
    sets = st.sets(st.sampled_from(classes), min_size=1, max_size=len(classes) - 1).map(frozenset)
    said = data.draw(
        st.lists(sets | st.dictionaries(st.sampled_from(classes), st.just(1.0)), min_size=1, max_size=4)
    )
    stated = [reader.read_label(each) for each in said if each]
    text = io.StringIO()
    csv.writer(text).writerows(
        [["item", "answer"], *([k, label_text(x, frame)] for k, x in enumerate(stated))]
    )
    path: Path = tmp_path_factory.mktemp("answers") / "said.csv"
    path.write_text(text.getvalue(), newline="")
    read = AnswerFile(open_table(path), classes, AnswerColumns())
    assert [reader.read_label(each.label) for each in read] == stated


def test_a_class_and_a_set_differ() -> None:
    classes = ("R|B", "R", "B", "?")
    assert read_label(write_label("R|B"), classes) == "R|B"
    assert read_label(write_label(["R", "B"]), classes) == {"R", "B"}
    assert read_label(write_label("?"), classes) == "?"
    assert read_label("?", classes) is None
    assert write_name("plain, 'name' = 1; #2") == "plain, 'name' = 1; #2"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("cat#dog", r"'cat#dog' is not a class; .*; one of several classes is written cat\|dog"),
        ("cat:1 cat:0.5", "has two plausibilities for cat"),
        ("{cat}:0.5 {cat}:0.5", "has two masses for {cat}"),
        ("{cat:0.5", r"is not of the form {a\|b}:0.7 {a}:0.3$"),
        ("{cat, dog}", r"is not of the form .*; without masses it is written cat\|dog$"),
        ("{cat|dog}", r"; without masses it is written cat\|dog$"),
        ("{cat}", "; without masses it is written cat$"),
        ("{cat;dog}:1", r"; one of several classes is written cat\|dog$"),
        ("cat|cow", r"in 'cat\|cow': 'cow' is not a class; the classes are cat, dog"),
    ],
)
def test_a_text_that_is_no_label(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_label(text, ("cat", "dog"))


def test_typed_classes_may_be_escaped() -> None:
    assert typed_classes(r"R\|B, G|H, \?") == ("R|B", "G|H", "?")
