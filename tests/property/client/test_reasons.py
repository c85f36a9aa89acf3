"""Sentences about queries agree with themselves, whatever the numbers are."""

import re

from hypothesis import given
from hypothesis import strategies as st

from quercus.client import Fact, Query, Reason, Rival, Shares
from quercus.specification.shares import decimal_text, percent_text
from quercus.specification.strategies import strategies
from quercus.trees.ask.reasons import similar_rows
from quercus.view.queries import facts_text, place_text, why_text

CLASSES = ("edible", "poisonous", "unknown")
RIVALS = (Rival("odour", -0.2, 0.3), Rival("cap", 0.0, 0.2))
UNIT = st.floats(0.0, 1.0)
NEARLY = st.sampled_from(
    [0.0, 1e-17, 1e-9, 1e-3, 0.0049, 0.005, 0.0051, 0.9949, 0.995, 0.9951, 0.999, 1 - 1e-9, 1.0]
)
SHARES = UNIT | NEARLY
DOUBT = re.compile(r"doubt|unsure|uncertain|disagree|cannot tell|undecided|contested", re.IGNORECASE)


@st.composite
def estimates(draw: st.DrawFn) -> tuple[float, ...]:
    """A class first, with any share, and what is left for the others."""
    first, split = draw(SHARES), draw(SHARES)
    return tuple(draw(st.permutations([first, (1 - first) * split, (1 - first) * (1 - split)])))


CONTOURS = st.just((1.0,) * 3) | st.just(()) | st.tuples(SHARES, SHARES, SHARES).filter(any)


@st.composite
def queries(draw: st.DrawFn) -> tuple[Query, tuple[float, ...]]:
    """A query of any strategy, and the estimate in its reason."""
    strategy = draw(st.sampled_from([*strategies("tree"), *strategies("forest"), "of-tomorrow"]))
    theta, stands_for = draw(estimates()), draw(st.sampled_from([0, 1, 113]))
    who = draw(st.sampled_from(["The model", "The committee of trees", "", None]))
    sentence, facts = similar_rows(stands_for)
    if who is not None:
        facts = (Fact("estimate", Shares(theta, who)), Fact("disagreement", draw(SHARES)), *facts)
    rivals = draw(st.sampled_from([(), RIVALS[:1], RIVALS]))
    attribute = "" if who is not None else draw(st.sampled_from(["", "cap"]))
    reason = Reason((("cap", "flat"),), rivals, attribute, "flat", 0.5, 9, strategy, sentence, facts)
    made = Query(
        "models/m/queries/4", "m", 4, "leased", "r", {}, draw(CONTOURS), CLASSES, reason, 2, "ann", None, "t"
    )
    return made, theta


@given(queries())
def test_no_sentence_doubts_what_it_shows_as_certain(given: tuple[Query, tuple[float, ...]]) -> None:
    query, theta = given
    text = why_text(query)
    shown = re.findall(r"(over |under |)([\d.]+) %", text)
    certain = [share for word, share in shown if share == "100" or (word, share) == ("over ", "99")]
    assert not (certain and DOUBT.search(text)), text
    assert "(0 %)" not in text
    if not query.contour or set(query.contour) == {1.0}:
        assert ("100 %" in text) <= (max(theta) >= 1.0 - 1e-15), (text, theta)
    assert place_text(query.reason)
    assert text.endswith(".")
    assert ("disagreement" in facts_text(query)) == any(
        each.name == "disagreement" for each in query.reason.facts
    )


@given(SHARES, st.sampled_from([0, 1, 3]))
def test_only_what_is_certain_is_shown_so(share: float, digits: int) -> None:
    percent, decimal = percent_text(share, digits), decimal_text(share, digits + 1)
    numbers = [float(re.findall(r"[\d.]+", text)[0]) for text in (percent, decimal)]
    rounds = [
        word in text for text, word in ((percent, "over"), (percent, "under"), (decimal, ">"), (decimal, "<"))
    ]
    assert (numbers[0] == 100 or numbers[1] == 1) == (share == 1)
    assert (numbers[0] == 0 or numbers[1] == 0) == (share == 0)
    assert abs(numbers[0] - 100 * share) <= 10.0**-digits
    assert abs(numbers[1] - share) <= 10.0 ** -(digits + 1)
    assert any(rounds) <= (0 < min(share, 1 - share) < 10.0**-digits)
