"""What a labeller sees, on a narrow and on a wide screen, for small and for very large models."""

import io

from google.protobuf.timestamp_pb2 import Timestamp
from rich.console import Console

from quercus.client import Model, Nominal, Numeric, Query, Reason, Rival, Specification
from quercus.client.commands.common import bar
from quercus.client.commands.label_screen import prompt, query_screen, set_line, show
from quercus.client.convert import moment


def model(attributes: list[Nominal | Numeric], classes: tuple[str, ...]) -> Model:
    specification = Specification(attributes, classes, budget=9)
    return Model("m", specification, moment(Timestamp()), 5, 5, 2, 5, 3, 1, 0, 4, 0)


def query(values: dict[str, str | float | None], classes: tuple[str, ...], reason: Reason) -> Query:
    contour = (1.0,) * len(classes)
    return Query(
        "models/m/queries/4", "m", 4, "leased", "row-7", values, contour, classes, reason, 2, "ann", None, "t"
    )


def screen(asked: Query, of: Model, width: int = 110) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    show(console, [*query_screen(asked, of), prompt(asked), set_line(asked, asked.classes[:1])])
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_a_query_deep_in_the_tree() -> None:
    rivals = (Rival("hue", 0.1, 0.5), Rival("wind", 0.2, 0.4 + 1e-12))
    reason = Reason((("hue", "< 0.9"), ("ash", "[1, 2)")), rivals, "wind", "weak", 0.25, 1234)
    attributes: list[Nominal | Numeric] = [Nominal("wind"), Numeric("hue"), Numeric("ash")]
    shown = screen(
        query({"hue": 0.123456789, "wind": "[bold]weak", "ash": None}, ("yes", "no"), reason),
        model(attributes, ("yes", "no")),
    )
    assert "instance row-7  ·  query 4  ·  answer 4 of 9" in shown
    assert shown.index("wind") < shown.index("hue") < shown.index("ash")
    assert "[bold]weak" in shown  # text is shown as it is, never read as markup
    assert "0.123457" in shown
    assert "missing" in shown
    assert "undecided where hue < 0.9 and ash in [1, 2) (1,234 rows)" in shown
    assert "most about wind = weak (score 0.250 bits)" in shown
    assert "hue stands in meanwhile" in shown  # the mid-values are tied: the earlier attribute
    assert "nothing is known" in shown
    assert "[x] 1 yes   [ ] 2 no" in shown


def test_the_largest_model_still_fits() -> None:
    names = [f"attribute {k}" for k in range(1000)]
    classes = tuple(f"class {c}" for c in range(64))
    reason = Reason((), tuple(Rival(name, -1.0, 1.0) for name in names), names[0], "≥ 3", 1.0, 10)
    asked = query(dict.fromkeys(names, 1.0), classes, reason)
    shown = screen(asked, model([Numeric(name) for name in names], classes))
    assert "and 910 more attributes" in shown
    assert "and 985 more" in shown
    assert "attribute 0 ≥ 3" in shown
    assert "class 63" in shown
    assert len(shown.splitlines()) < 200


def test_nothing_breaks_on_a_narrow_screen() -> None:
    reason = Reason((), (Rival("a", 0.0, 0.0),), "a", "x", 0.0, 1)
    shown = screen(
        query({"a": "x"}, ("yes", "no"), reason), model([Nominal("a", "x")], ("yes", "no")), width=30
    )
    assert max(len(line) for line in shown.splitlines()) <= 30


def test_bars() -> None:
    assert [bar(x, 4) for x in (0.0, 1.0, 0.5, 0.03, 2.0)] == ["", "████", "██", "▏", "████"]
