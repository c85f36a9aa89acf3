"""Reasons of queries in plain sentences."""

import re
from dataclasses import replace
from typing import Any

import pytest

from quercus.client import CommitteeReason, ForestReason, Query, Reason, Rival
from quercus.client.reasons import place_text, why_text
from quercus.client.words import TERMS, known_text
from quercus.specification.strategies import STRATEGIES

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


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_has_a_plain_sentence(strategy: str) -> None:
    kinds: dict[str, Any] = {"rivals": RIVALS, "attribute": "alcohol", "value": "< 13.3"}
    if "committee" in strategy:
        kinds = {"committee": CommitteeReason((0.44, 0.55, 0.01), 0.7, 14, by_cover=False)}
    elif strategy in {"leaf-width", "prediction-change"}:
        kinds = {}
    text = said(strategy, **kinds)
    assert re.fullmatch(r"[A-Z0-9].*\.", text)
    assert f"strategy {strategy}" not in text  # its name explains nothing
    assert "score" not in text


def test_a_committee_says_what_it_thinks_and_what_a_row_stands_for() -> None:
    found = said("covering-committee", committee=CommitteeReason((0.44, 0.55, 0.01), 0.7, 14, by_cover=False))
    assert found == (
        "The committee of trees guesses Grignolino (55 %), then Barolo (44 %) and Barbera (1 %). "
        "14 similar rows wait; your answer helps with all."
    )
    by_cover = CommitteeReason((0.98, 0.01, 0.01), 0.1, 1, by_cover=True)
    assert said("covering-committee", committee=by_cover) == (
        "It is unlike the rows that are known. 1 similar row waits; your answer helps with that too."
    )
    assert said("covering-committee", committee=CommitteeReason((), 0.0, 30, by_cover=True)) == (
        "30 similar rows wait; your answer helps with all."
    )
    assert "by lot" in said("committee", committee=CommitteeReason((), 0.0, 0, by_cover=False))


def test_a_forest_says_what_it_thinks() -> None:
    assert said("margin", forest=ForestReason((0.5, 0.45, 0.05), 0.3, 7, None)) == (
        "The model guesses Barolo (50 %), then Grignolino (45 %) and Barbera (5 %). "
        "7 similar rows wait; your answer helps with all."
    )
    assert "cannot tell the classes apart" in said("margin", forest=ForestReason((1 / 3,) * 3, 0.0, 7, None))
    disagreeing = ForestReason((0.5, 0.45, 0.05), 0.3, 7, None)
    assert said("memory-disagreement", forest=disagreeing) == (
        "What was learned lately and what was learned before disagree about it: together they guess "
        "Barolo (50 %), then Grignolino (45 %) and Barbera (5 %). "
        "7 similar rows wait; your answer helps with all."
    )
    agreeing = ForestReason((0.98, 0.01, 0.01), 0.0, 7, None)
    assert said("memory-disagreement", forest=agreeing).startswith("The model guesses Barolo (98 %), then")


def test_a_class_that_is_clear_is_not_doubted() -> None:
    """A row may be asked about for the rows that it stands for, or because no other row is left."""
    clear = ForestReason((0.997, 0.002, 0.001), 0.0, 113, None)
    waits = "113 similar rows wait; your answer helps with all."
    assert said("margin", forest=clear) == f"The model guesses Barolo (over 99 %). {waits}"
    disagreeing = ForestReason((0.997, 0.002, 0.001), 0.2, 113, None)
    assert said("memory-disagreement", forest=disagreeing) == f"The model guesses Barolo (over 99 %). {waits}"
    certain = ForestReason((1.0, 0.0, 0.0), 0.0, 0, None)
    assert said("margin", forest=certain) == "The model guesses Barolo (100 %). Your answer checks that."


def test_a_guess_is_among_the_classes_that_labels_leave() -> None:
    found = replace(
        query("margin", forest=ForestReason((0.8, 0.15, 0.05), 0.0, 0, None)), contour=(0.0, 1.0, 1.0)
    )
    assert why_text(found) == "The model guesses Grignolino (75 %), then Barbera (25 %)."
    alike = replace(
        query("margin", forest=ForestReason((0.8, 0.1, 0.1), 0.0, 0, None)), contour=(0.0, 1.0, 1.0)
    )
    assert why_text(alike) == "The model cannot tell Grignolino and Barbera apart here."
    withheld = replace(query("margin", forest=ForestReason((0.8, 0.15, 0.05), 0.0, 0, None)), contour=())
    assert why_text(withheld).startswith("The model guesses Barolo (80 %)")


def test_the_place_has_one_condition_per_attribute() -> None:
    path = (("alcohol", "< 13.38"), ("hue", "< 0.9"), ("alcohol", "≥ 13.26"))
    assert place_text(query("committee", path=path).reason) == (
        "It ends where 13.26 ≤ alcohol < 13.38 and hue < 0.9 (a leaf of 9 rows)."
    )
    assert place_text(query("committee").reason) == "The tree is a single leaf of 9 rows."
    contested = query("published", path=path[:1], rivals=RIVALS, attribute="hue", value="< 1").reason
    assert place_text(contested) == "The tree is undecided where alcohol < 13.38 (9 rows)."


def test_withheld_parts_are_named() -> None:
    withheld = query("published", node_count=0)
    assert why_text(withheld) == "The reason is withheld."
    assert place_text(withheld.reason) == ""
    assert known_text(CLASSES, ()) == "What is known is withheld."


def test_terms_are_explained_in_at_most_two_sentences() -> None:
    for term, text in TERMS.items():
        assert 1 <= len(re.findall(r"\.(?: |$)", text)) <= 2, term
        assert text.endswith(".")
