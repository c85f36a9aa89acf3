"""Reasons of queries in plain sentences."""

import re
from dataclasses import replace
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from quercus.client import Fact, Model, Numeric, Query, Reason, Rival, Shares, Specification
from quercus.client.guess import guess_of
from quercus.client.reading import to_datetime
from quercus.client.shown import guess_in, shown_text
from quercus.view.queries import facts_text, place_text, why_text
from quercus.view.words import TERMS, known_text

CLASSES = ("Barolo", "Grignolino", "Barbera")
RIVALS = (Rival("hue", 0.1, 0.5), Rival("alcohol", 0.2, 0.4, 13.3))


def query(strategy: str, **fields: Any) -> Query:
    values: dict[str, Any] = {
        "path": (),
        "rivals": (),
        "attribute": "",
        "value": "",
        "score": 0.5,
        "node_count": 9,
    }
    reason = Reason(**(values | fields), strategy=strategy)
    return Query(
        *(
            "models/m/queries/4",
            "m",
            4,
            "leased",
            "row-7",
            {},
            (1.0,) * 3,
            CLASSES,
            reason,
            2,
            "ann",
            None,
            "t",
        )
    )


def said(strategy: str, **fields: Any) -> str:
    return why_text(query(strategy, **fields))


def guess(theta: tuple[float, ...], who: str = "The model") -> Fact:
    return Fact("estimate", Shares(theta, who))


WAITS = "Your answer also tells it about 14 similar rows."


def test_what_the_strategy_says_follows_what_was_found() -> None:
    found = said(
        "covering-committee", facts=(guess((0.44, 0.55, 0.01), "The committee of trees"),), sentence=WAITS
    )
    assert (
        found
        == f"The committee of trees guesses Grignolino (55 %), but it may be Barolo (44 %) or Barbera (1 %). {WAITS}"
    )
    silent = guess((0.98, 0.01, 0.01), "")
    assert said("covering-committee", facts=(silent,), sentence=f"It is unlike the known rows. {WAITS}") == (
        f"It is unlike the known rows. {WAITS}"
    )
    child = {"rivals": RIVALS, "attribute": "alcohol", "value": "< 13.3"}
    assert said("of-tomorrow", **child, sentence="It separates them.") == (
        "2 tests compete to split its node: hue, alcohol < 13.3. It separates them."
    )
    assert said("of-tomorrow", **child | {"rivals": RIVALS[:1]}, sentence="It separates them.") == (
        "A test of hue may still gain more than by chance. It separates them."
    )
    assert said("of-tomorrow") == "Its label is worth most by the strategy of-tomorrow."


def test_a_class_that_is_clear_is_not_doubted() -> None:
    """A row may be asked about for the rows that it stands for, or because no other row is left."""
    clear = (guess((0.997, 0.002, 0.001)),)
    assert said("margin", facts=clear, sentence=WAITS) == (
        f"The model guesses Barolo (over 99 %); your answer checks that. {WAITS}"
    )
    certain = (guess((1.0, 0.0, 0.0)),)
    assert said("margin", facts=certain) == "The model guesses Barolo (100 %); your answer checks that."
    assert "cannot tell the classes apart" in said("margin", facts=(guess((1 / 3,) * 3),))


def test_what_is_not_offered_as_a_guess_is_not_called_one() -> None:
    """The reason and the mark on the page follow one rule."""
    even = (guess((0.48, 0.45, 0.07)),)
    assert said("margin", facts=even, sentence=WAITS) == (
        f"The model wavers between Barolo (48 %) and Grignolino (45 %). {WAITS}"
    )
    three = (guess((0.36, 0.33, 0.31)),)
    assert "wavers between Barolo (36 %), Grignolino (33 %) and Barbera (31 %)." in said(
        "margin", facts=three
    )
    ahead = (guess((0.49, 0.21, 0.3)),)
    assert "wavers between Barolo (49 %) and Barbera (30 %)." in said("margin", facts=ahead)
    alone = query("margin", facts=(Fact("estimate", Shares((0.4, 0.16, 0.15, 0.15, 0.14), "The model")),))
    alone = replace(alone, classes=("a", "b", "c", "d", "e"), contour=(1.0,) * 5)
    assert why_text(alone) == "The model leans towards a (40 %), but it may be b (16 %) or c (15 %)."
    one_waits = query("margin", facts=(Fact("similar rows", 1),), sentence="1 similar row waits; it helps.")
    assert facts_text(one_waits) == ""


def test_a_guess_is_among_the_classes_that_labels_leave() -> None:
    found = replace(query("margin", facts=(guess((0.8, 0.15, 0.05)),)), contour=(0.0, 1.0, 1.0))
    assert why_text(found) == "The model guesses Grignolino (75 %), but it may be Barbera (25 %)."
    alike = replace(query("margin", facts=(guess((0.8, 0.1, 0.1)),)), contour=(0.0, 1.0, 1.0))
    assert why_text(alike) == "The model cannot tell Grignolino and Barbera apart here."
    withheld = replace(query("margin", facts=(guess((0.8, 0.15, 0.05)),)), contour=())
    assert why_text(withheld).startswith("The model guesses Barolo (80 %)")


def test_facts_of_every_kind_are_told() -> None:
    facts = (
        guess((0.8, 0.15, 0.05)),
        guess((0.9, 0.1, 0.0), ""),
        Fact("disagreement", 0.25),
        Fact("similar rows", 1_400),
        Fact("entropy, in bits", (0.25, 1.5)),
        Fact("beside", "row 7"),
    )
    assert facts_text(query("of-tomorrow", facts=facts)) == (
        "estimate Barolo (90 %), or Grignolino (10 %) · disagreement 0.25 · similar rows 1,400 · "
        "entropy, in bits 0.25 to 1.50 · beside row 7"
    )
    said_already = query("of-tomorrow", facts=facts[2:4], sentence="It is odd: 1,400 similar rows wait.")
    assert facts_text(said_already) == "disagreement 0.25"
    assert query("of-tomorrow", facts=facts).reason.fact("similar rows") == 1_400
    assert query("of-tomorrow").reason.fact("similar rows") is None


def test_the_place_has_one_condition_per_attribute() -> None:
    path = (("alcohol", "< 13.38"), ("hue", "< 0.9"), ("alcohol", "≥ 13.26"))
    assert place_text(query("committee", path=path).reason) == (
        "It ends where 13.26 ≤ alcohol < 13.38 and hue < 0.9 (a leaf of 9 rows)."
    )
    assert place_text(query("committee").reason) == "The tree is a single leaf of 9 rows."
    contested = query("published", path=path[:1], rivals=RIVALS, attribute="hue", value="< 1").reason
    assert place_text(contested) == "The tree is undecided where alcohol < 13.38 (9 rows)."


def test_withheld_parts_are_not_spoken_of() -> None:
    withheld = query("published", node_count=0)
    assert why_text(withheld) == ""
    assert place_text(withheld.reason) == ""
    assert known_text(CLASSES, ()) == ""


def test_terms_are_explained_in_at_most_two_sentences() -> None:
    for term, text in TERMS.items():
        assert 1 <= len(re.findall(r"\.(?: |$)", text)) <= 2, term
        assert text.endswith(".")


@pytest.mark.parametrize(
    ("theta", "offered"),
    [
        ((0.50, 0.50, 0.00), None),
        ((0.26, 0.24, 0.50), 2),
        ((0.49, 0.30, 0.21), None),
        ((0.53, 0.47, 0.00), None),
        ((0.56, 0.44, 0.00), 0),
        ((1 / 3, 1 / 3, 1 / 3), None),
    ],
)
def test_a_coin_toss_is_offered_as_no_guess(theta: tuple[float, ...], offered: int | None) -> None:
    asked, start = query("margin", facts=(guess(theta),)), to_datetime(Timestamp())
    of = Model("m", Specification([Numeric("x")], CLASSES), start, 5, 5, 2, 5, 3, 1, 0, 4, 0)
    found = guess_of(asked, of)
    assert (None if found is None else found[0]) == offered
    assert guess_in(shown_text(asked, of)) == offered
