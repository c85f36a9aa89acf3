"""The screen of a labeller, narrow and wide, for small and for very large models."""

import io
from dataclasses import replace

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from rich.console import Console

from quercus.cli.label_person import parse_plausibilities
from quercus.cli.terminal import BACKSPACE, ENTER, Keys
from quercus.client import (
    Answer,
    AttributeView,
    Fact,
    MediaItem,
    MediaTemplate,
    Model,
    Nominal,
    Numeric,
    Presentation,
    Query,
    Reason,
    Rival,
    SeriesItem,
    SeriesView,
    Specification,
    TextItem,
)
from quercus.client.keys import KEY_RULE
from quercus.client.reading import to_datetime
from quercus.view.bars import bar
from quercus.view.queries import describe_query
from quercus.view.terminal.queries import (
    _evidence_parts,
    answer_list,
    answer_screen,
    help_text,
    print_parts,
    prompt_line,
    query_screen,
    set_line,
)


def model(attributes: list[Nominal | Numeric], classes: tuple[str, ...]) -> Model:
    specification = Specification(attributes, classes, budget=9)
    return Model("m", specification, to_datetime(Timestamp()), 5, 5, 2, 5, 3, 1, 0, 4, 0)


def query(values: dict[str, str | float | None], classes: tuple[str, ...], reason: Reason) -> Query:
    contour = (1.0,) * len(classes)
    return Query(
        "models/m/queries/4", "m", 4, "leased", "row-7", values, contour, classes, reason, 2, "ann", None, "t"
    )


def screen(asked: Query, of: Model, width: int = 110) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    print_parts(console, query_screen(asked, of, width))
    print_parts(
        console, [prompt_line(asked.classes, width), set_line(asked.classes, asked.classes[:1], width)]
    )
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_paragraphs_of_the_help_wrap_where_the_terminal_ends() -> None:
    assert "\n" not in help_text(("yes", "no")).rsplit("\n\n", 1)[1]


def test_the_help_lists_every_class_and_command_with_its_key() -> None:
    shown = help_text(("skunk", "4", "black"))
    assert [line.split() for line in shown.splitlines()[2:5]] == [["s", "skunk"], ["4", "4"], ["b", "black"]]
    assert "\n  +   It is one of several classes" in shown
    assert "\n  z   Go back to your last answer" in shown
    assert KEY_RULE in shown


def test_plausibilities_of_some_of_many_classes_are_typed_by_key() -> None:
    classes = (*map(str, range(63)), "=")
    expected = [0.0] * 64
    expected[5], expected[10], expected[63] = 1.0, 0.5, 0.25
    assert parse_plausibilities("5=1 e=.5 ==.25", classes) == expected  # as on the screen: 5 is the key of 5
    assert parse_plausibilities("5=1 10=.5 ==.25", classes) == expected


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("o=1 4=.5", "'4=.5' is not a class key with a number, as in o=0.5"),
        ("o=1 .5", "'.5' is not a class key with a number, as in o=0.5"),
        ("o=1 r=.5 O=.2", "'O=.2' is a second number for o"),
        ("o=", "'' is not a number"),
        ("o=nan", "nan is not between 0 and 1"),
        ("o=0_1", "'0_1' is not a number"),
        (
            "o=0",
            "all are 0, but at least one class must be possible; press / (after Escape) if nobody can tell",
        ),
        ("", "3 numbers are needed, there are 0"),
    ],
)
def test_plausibilities_that_cannot_be_meant_are_named(line: str, fault: str) -> None:
    assert parse_plausibilities(line, ("o", "red", "x")) == fault


def test_a_query_deep_in_the_tree() -> None:
    rivals = (Rival("hue", 0.1, 0.5), Rival("wind", 0.2, 0.4 + 1e-12))
    reason = Reason(
        (("hue", "< 0.9"), ("ash", "[1, 2)")),
        rivals,
        "wind",
        "weak",
        0.25,
        1234,
        sentence="It splits them best.",
    )
    attributes: list[Nominal | Numeric] = [Nominal("wind"), Numeric("hue"), Numeric("ash")]
    shown = screen(
        query({"hue": 0.123456789, "wind": "[bold]weak", "ash": None}, ("yes", "no"), reason),
        model(attributes, ("yes", "no")),
    )
    assert "instance row-7  ·  query 4  ·  answer 4 of 9" in shown
    row = shown.partition("instance ─")[2]
    assert row.index("wind") < row.index("hue") < row.index("ash")
    assert "[bold]weak" in shown  # text is shown as it is, never read as markup
    assert "0.123457" in shown
    assert "missing" in shown
    assert "2 tests compete to split its node: hue, wind." in shown
    assert "It splits them best." in shown
    assert "The tree is undecided where hue < 0.9 and 1 ≤ ash < 2 (1,234 rows)." in shown
    assert "No label of this row yet." in shown
    assert "plausibility" not in shown  # ignorance is not a bar
    assert "[x] y yes   [ ] n no" in shown


def test_a_query_that_stands_for_a_leaf() -> None:
    facts = (Fact("disagreement", 0.25), Fact("similar rows", 3))
    reason = Reason((("hue", "< 0.9"),), (), "", "", 0.875, 12, "covering-committee", facts=facts)
    shown = screen(query({"hue": 0.5}, ("yes", "no"), reason), model([Numeric("hue")], ("yes", "no")))
    assert "It ends where hue < 0.9 (a leaf of 12 rows)." in shown
    assert "Its label is worth most by the strategy covering-committee." in shown
    assert "disagreement 0.25 · similar rows 3" in shown
    assert "undecided" not in shown


def test_the_largest_model_still_fits() -> None:
    names = [f"attribute {k}" for k in range(1000)]
    classes = tuple(f"class {c}" for c in range(64))
    rivals = tuple(Rival(name, -1.0, 1.0) for name in names)
    reason = Reason((), rivals, names[0], "≥ 3", 1.0, 10, sentence="Indeed.")
    asked = query(dict.fromkeys(names, 1.0), classes, reason)
    shown = screen(asked, model([Numeric(name) for name in names], classes))
    assert "and 910 more attributes" in shown
    assert "and 992 more" in shown
    assert (
        "1000 tests compete to split its node: attribute 0, attribute 1, attribute 2 and 997 more." in shown
    )
    assert "Indeed." in shown
    assert "class 63" in shown
    assert len(shown.splitlines()) < 200


def test_nothing_breaks_on_a_narrow_screen() -> None:
    reason = Reason((), (Rival("a", 0.0, 0.0),), "a", "x", 0.0, 1)
    shown = screen(
        query({"a": "x"}, ("yes", "no"), reason), model([Nominal("a", "x")], ("yes", "no")), width=30
    )
    assert max(len(line) for line in shown.splitlines()) <= 30


def test_known_evidence_comes_first_and_is_drawn_hollow() -> None:
    names = ("Barolo", "Grignolino", "Barbera")
    console = Console(file=io.StringIO(), width=80, force_terminal=False)
    asked = replace(query({}, names, Reason((), (), "", "", 0.5, 9)), contour=(1.0, 0.4, 0.0))
    print_parts(console, _evidence_parts(asked, describe_query(asked, model([Numeric("hue")], names))))
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    known = "By the labels so far it is most likely Barolo; less likely: Grignolino; ruled out: Barbera."
    assert " ".join(line.strip() for line in lines[:2]) == known
    assert "plausibility" in lines[2]
    assert [line.count("▯") for line in lines[3:]] == [20, 8, 0]


def test_own_answers_are_listed_and_one_is_shown() -> None:
    given = Answer(
        *(12, "row-7", "ann", to_datetime(Timestamp()), "answered", "counts", "yes", "yes", 1.0, "", 3.0, 4),
        *(None, None, "", None, False, {"yes": 1.0, "no": 0.0}, "yes", {"hue": 0.5}),
    )
    console = Console(file=io.StringIO(), width=80, force_terminal=False)
    print_parts(
        console, [answer_list([given]), *answer_screen(given, model([Numeric("hue")], ("yes", "no")), 80)]
    )
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "1  row-7     yes" in shown
    assert "your answer" in shown.partition("instance row-7")[2]
    assert "0.5" in shown


def test_a_row_is_shown_as_its_model_presents_it() -> None:
    look = Presentation(
        (
            AttributeView("hue", "Hue", "nm", format=".2f", group="optics"),
            AttributeView("secret", hidden=True),
        ),
        (SeriesView("vibration", ("t0", "t1", "t2"), unit="mm/s"),),
        (MediaTemplate("image", "camera", "https://cam.example/{id}.jpg"),),
    )
    names = ["ash", "hue", "secret", "t0", "t1", "t2"]
    of = model([Numeric(name) for name in names], ("yes", "no"))
    of = replace(of, specification=replace(of.specification, presentation=look))
    values = {"ash": 1.0, "hue": 0.126, "secret": 77.0, "t0": 0.0, "t1": 4.0, "t2": None}
    asked = query(values, ("yes", "no"), Reason((), (), "", "", 0.5, 9))
    picture = MediaItem("image", "scan", data=b"GIF89a" + bytes(10), alt="a seam")
    beside = (TextItem("note", "[bold]as it is"), SeriesItem("noise", (1.0, 2.0)), picture)
    shown = screen(replace(asked, display=beside), of)
    assert "0.13 nm" in shown
    assert shown.index("ash") < shown.index("optics") < shown.index("Hue")
    assert "77" not in shown
    assert "t0" not in shown
    assert "vibration: 0 to 4 mm/s, 3 values" in shown.partition("instance ─")[2]  # next to the keys
    assert shown.index("camera") < shown.index("instance ─")
    assert "▁█" in shown
    assert "camera (image): https://cam.example/row-7.jpg" in shown
    assert "note: [bold]as it is" in shown
    assert "scan (image): a seam, image/gif, 16 bytes" in shown


def test_bars() -> None:
    assert [bar(x, 4) for x in (0.0, 1.0, 0.5, 0.03, 2.0)] == ["", "████", "██", "▏", "████"]


def wide_screen(names: list[str], size: int, width: int) -> str:
    classes = tuple(f"class-{c:02d}" for c in range(size))
    rivals = tuple(Rival(name, -1.0, 1.0) for name in names)
    reason = Reason((), rivals, names[0], "≥ 3", 1.0, 10, sentence="Indeed.")
    return screen(
        query(dict.fromkeys(names, 1.25), classes, reason), model([Numeric(n) for n in names], classes), width
    )


def test_names_are_whole_however_many_there_are() -> None:
    """Names that differ at their ends only, as sensors' do: cut off they would be the same."""
    names = [f"a_rather_long_name_of_sensor_{k}" for k in range(30)]
    shown = wide_screen(names, 3, 80)
    assert all(f" {name} " in shown for name in names)
    assert "…" not in shown  # the intervals are drawn as wide as there is room
    assert shown.count("┤  gain ratio at most 1.000") == 8  # how far below chance is for experts
    short = wide_screen([f"band_{k}" for k in range(60)], 3, 80)
    assert len(short.splitlines()) < 45  # side by side where there is room
    assert "band_0 " in short


def test_the_row_stands_next_to_the_keys() -> None:
    shown = wide_screen(["a", "b"], 3, 80)
    assert (
        shown.index("why this one")
        < shown.index("instance ─")
        < shown.index("known so far")
        < shown.index("class?")
    )


def test_keys_are_never_parted_from_their_names() -> None:
    names = [f"some kind of class {c}" for c in range(6)]
    asked = query({"a": 1.0}, tuple(names), Reason((), (), "a", "x", 0.0, 1))
    for width in (30, 50, 80):
        lines = prompt_line(asked.classes, width).plain.splitlines()
        assert max(map(len, (line.rstrip() for line in lines))) <= width
        for key, name in enumerate(names):
            assert any(f" {key}  {name}" in line for line in lines)
        assert any("q quit" in line for line in lines)


def test_many_classes_have_their_keys_in_the_list_alone() -> None:
    asked = query({"a": 1.0}, tuple(f"class-{c:02d}" for c in range(20)), Reason((), (), "a", "x", 0.0, 1))
    assert len(prompt_line(asked.classes, 80).plain.splitlines()) <= 3
    chosen = set_line(asked.classes, ["class-03", "class-19"], 80).plain
    assert (
        chosen.splitlines()[0].rstrip()
        == "one of:  [x] 3 class-03   [x] m class-19   · Enter sends, Escape goes back"
    )
    assert "m  class-19" in wide_screen(["a"], 20, 80)


class Typed(Keys):
    """A keyboard on which a text is typed."""

    def __init__(self, text: str) -> None:
        self._text = iter(text)

    def read_key(self, *, quietly: bool = False) -> str:
        return next(self._text)


def test_a_line_is_bounded_and_a_wide_character_is_erased_whole(capsys: pytest.CaptureFixture[str]) -> None:
    assert Typed(f"a観{BACKSPACE}b{ENTER}").read_line() == "ab"
    assert capsys.readouterr().out == "a観" + "\b \b" * 2 + "b\n"
    assert Typed(f"{BACKSPACE}abcd{BACKSPACE}e{ENTER}").read_line(most=3) == "abe"
    assert capsys.readouterr().out == "abc\b \be\n"
