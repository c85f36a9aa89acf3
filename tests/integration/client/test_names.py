"""Names of classes, attributes and values have no control characters, as ids have none."""

from collections.abc import Callable

import pytest

from quercus.client import Client, InvalidArgument, Nominal, Numeric, Specification

EVIL = "a\x1b[2J"


@pytest.mark.parametrize(
    ("specification", "field"),
    [
        (lambda name: Specification([Numeric("x")], ["p", name]), "specification.classes[1]"),
        (lambda name: Specification([Numeric(name)], ["p", "q"]), "specification.attributes[0].name"),
        (
            lambda name: Specification([Nominal("c", ["u", name])], ["p", "q"]),
            "specification.attributes[0].nominal.values[1]",
        ),
    ],
)
@pytest.mark.parametrize(
    ("name", "character"), [(EVIL, "U+001B"), ("a\0", "U+0000"), ("a\u202e", "U+202E"), ("a\nb", "U+000A")]
)
def test_a_model_has_no_control_characters(
    client: Client, name: str, character: str, specification: Callable[[str], Specification], field: str
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        client.create_model("evil-names", specification(name))
    kind = "line end" if character == "U+000A" else "control character"
    assert f"{field}: has the {kind} {character} at position 2" in str(caught.value)


def test_a_row_brings_no_control_characters(client: Client) -> None:
    client.create_model("evil-values", Specification([Nominal("c", ["u"])], ["p", "q"]))
    with pytest.raises(InvalidArgument, match=r"has the control character U\+001B at position 2"):
        client.push("evil-values", [["u"], [EVIL]])
    assert client.get_model("evil-values").instance_count == 0
    client.push("evil-values", [["naïve 観 \u200d"]])
