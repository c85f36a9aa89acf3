"""Guidelines and examples: what a lead writes, who reads it, and what is refused."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from quercus.belief.errors import InvalidInput
from quercus.client import (
    ClassExample,
    Client,
    Guidance,
    InvalidArgument,
    Nominal,
    NotFound,
    Numeric,
    PermissionDenied,
    Specification,
)
from quercus.server.gate.access import issue_token
from quercus.specification.display import TextItem
from quercus.storage import Store

GUIDANCE = Guidance(
    "Bottles of the valley",
    "Look at the hue.\n\nSee https://a.example/x",
    (ClassExample("red", "b/1", "dark"),),
)


@pytest.fixture
def live(start_live: Callable[..., Any], tmp_path: Path) -> Any:
    return start_live(tmp_path / "store.db", access="tokens", grower=False)


@pytest.fixture
def people(live: Any) -> Iterator[dict[str, Client]]:
    """An operator, a labeller, a lead (an operator of this model alone) and a sensor."""
    access = live.server.core.store.access
    roles = {
        "olga": ("operator", None),
        "ann": ("labeller", None),
        "lead": ("operator", ["m"]),
        "press": ("sensor", None),
    }
    made = {
        name: Client(live.server.address, token=issue_token(access, name, [role], models)[0])
        for name, (role, models) in roles.items()
    }
    made["olga"].create_model(
        "m", Specification([Numeric("x"), Nominal("soil", ("clay",))], ("red", "white"), budget=9)
    )
    made["olga"].push(
        "m", [[1.5, "clay"], [2.5, "lime"]], ids=["b/1", "b2"], displays=[[TextItem("note", "old")], None]
    )
    yield made
    for each in made.values():
        each.close()


def test_a_lead_writes_what_labellers_read_with_the_values_of_the_examples(people: dict[str, Client]) -> None:
    before = people["olga"].get_model("m").sequence_committed
    model = people["lead"].update_model("m", guidance=GUIDANCE)
    assert model.specification.guidance == GUIDANCE
    assert model.name == "m"  # the resource name stays
    assert model.sequence_committed == before + 1  # an event of the log
    assert people["ann"].get_model("m").specification.guidance == GUIDANCE
    (example,) = people["ann"].examples("m")
    assert (example.class_name, example.instance, example.remark) == ("red", "b/1", "dark")
    assert dict(example.values) == {"x": 1.5, "soil": "clay"}
    assert example.display == (TextItem("note", "old"),)
    assert people["lead"].update_model("m", guidance=None).specification.guidance is None
    assert people["ann"].examples("m") == ()
    with pytest.raises(NotFound):
        people["ann"].examples("nothing")


def test_only_whoever_may_change_the_model_writes_it(people: dict[str, Client]) -> None:
    for name in ("ann", "press"):
        with pytest.raises(PermissionDenied, match="needs operator"):
            people[name].update_model("m", guidance=GUIDANCE)
    with pytest.raises(PermissionDenied, match="needs"):
        people["press"].examples("m")
    people["olga"].create_model("other", Specification([Numeric("x")], ("a", "b")))
    with pytest.raises(PermissionDenied, match="is not for the model other"):
        people["lead"].update_model("other", guidance=Guidance("mine"))
    with pytest.raises(PermissionDenied, match="is not for the model other"):
        people["lead"].examples("other")


REFUSED: tuple[tuple[Callable[[], Guidance], str], ...] = (
    (lambda: Guidance("t" * 101), "title: has 101 characters, at most 100"),
    (lambda: Guidance("a\nb"), "and has a character that cannot be seen"),
    (lambda: Guidance("", "x" * 20_001), "text: has 20001 characters, at most 20,000"),
    (lambda: Guidance("", "", (example("x" * 501),)), "remark: has 501 characters, at most 500"),
    (lambda: Guidance("", "", (example(of="r" * 201),)), "must be an id of 1 to 200 characters"),
    (
        lambda: Guidance("", "", tuple(example(of=f"r{k}") for k in range(101))),
        "examples: are 101, at most 100",
    ),
    (lambda: Guidance("", "", (example(), example())), "examples[1].instance: is 'b2', which is one already"),
    (lambda: Guidance("", "", (example(name="blue"),)), "class_name: is 'blue', must be one of red, white"),
    (lambda: Guidance("", "", (example(of="b3"),)), "examples[0].instance: is 'b3', which is not a row of m"),
)


def example(remark: str = "", name: str = "red", of: str = "b2") -> ClassExample:
    return ClassExample(name, of, remark)


def test_what_cannot_be_shown_is_refused_and_changes_nothing(people: dict[str, Client]) -> None:
    people["lead"].update_model("m", guidance=GUIDANCE)
    for given, said in REFUSED:
        with pytest.raises((InvalidArgument, InvalidInput)) as caught:
            people["lead"].update_model("m", guidance=given())
        assert said in str(caught.value)
    assert people["ann"].get_model("m").specification.guidance == GUIDANCE


def test_guidance_changes_no_tree_and_survives_export(people: dict[str, Client], live: Any) -> None:
    people["lead"].update_model("m", guidance=GUIDANCE)
    store: Store = live.server.core.store
    from quercus.server.wire.models import specification_of

    record = store.get_model("m")
    assert specification_of(record.initial_specification) == specification_of(record.specification)
    people["lead"].update_model("m", budget=20)
    assert people["ann"].get_model("m").specification.guidance == GUIDANCE
