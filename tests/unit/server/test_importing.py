"""Logs that `quercus import` accepts can be grown; errors in others name line, field, value and bound."""

import base64
import io
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import words
from support.published import published_message

from quercus.belief.codec import encode
from quercus.belief.errors import InvalidInput
from quercus.belief.label import ClassSet
from quercus.server.growth.grower import Grower
from quercus.server.transfer.stored_contents import StoredModel
from quercus.server.wire.models import complete_specification
from quercus.storage import NewValue, NotFound, Policy
from quercus.storage.admin import transfer_lines
from quercus.storage.store import Store
from quercus.v1 import display_pb2, model_pb2

SPECIFICATION = complete_specification(
    published_message(
        attributes=[
            model_pb2.Attribute(name="X", nominal=model_pb2.NominalAttribute(values=["a", "b"])),
            model_pb2.Attribute(name="Y", numeric=model_pb2.NumericAttribute(bins=2)),
        ],
        classes=["p", "q"],
        budget=9,
        warmup_rows=2,
        strategy="published",
    )
)
ROWS = 12
Lines = list[str]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{tmp_path / 'store.db'}") as opened:
        yield opened


@pytest.fixture
def lines(store: Store) -> Lines:
    """A log with every kind of event: 12 rows, an answer, a refusal, an opinion, a correction, a specification."""
    store.create_model("m", SPECIFICATION.SerializeToString(deterministic=True), budget=9)
    chance = np.random.default_rng(1)
    values = np.column_stack([np.arange(ROWS) % 3, chance.normal(size=ROWS)])
    values[3, 1] = np.nan
    labels = [encode(ClassSet(3 if k % 2 else 1 + k // 2 % 2)) for k in range(ROWS)]
    store.append_instances("m", [f"i{k}" for k in range(ROWS)], values, labels, [NewValue(0, 0, "c")])
    rounds(store)
    first, second, third = store.lease("m", "ann", 3, 60.0).queries
    words.answer(store, "m", first.number, first.token, encode(ClassSet(1)), 0.9, comment="sure")
    words.refuse(store, "m", second.number, second.token)
    store.set_policy("m", Policy(answers_per_query=2))
    words.answer(store, "m", third.number, third.token, encode(ClassSet(2)))
    store.set_policy("m", Policy())
    words.amend(store, "m", first.number, "ann", encode(ClassSet(2)))
    later = model_pb2.Specification()
    later.CopyFrom(SPECIFICATION)
    later.alpha = 0.5
    store.respecify("m", later.SerializeToString(deterministic=True), budget=9)
    found = list(store.dump("m"))
    kinds = [json.loads(line)["kind"] for line in found[1:]]
    assert kinds == [1] * ROWS + [2, 3, 6, 5, 4]
    return found


def rounds(store: Store) -> None:
    grower = Grower(store, interval_s=0.0)
    while grower.run_round():
        pass


def grown(store: Store, model: str) -> bytes:
    rounds(store)
    record = store.get_model(model)
    assert record.sequence_grown == record.sequence_committed, "it cannot be grown"
    return bytes(store.snapshot(model).data)


def test_what_is_right_comes_in_and_grows_the_same_tree(store: Store, lines: Lines) -> None:
    assert store.load(lines, "copy", StoredModel()) == ("copy", ROWS + 5)
    assert grown(store, "copy") == grown(store, "m")


def changed(line: str, **cells: object) -> str:
    content = json.loads(line) | cells
    return json.dumps({key: value for key, value in content.items() if value is not None})


def text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def at(number: int, **cells: object) -> Callable[[Lines], Lines]:
    """Return a function that changes cells of a line; None removes them."""
    return lambda lines: [
        changed(line, **cells) if place == number - 1 else line for place, line in enumerate(lines)
    ]


def specification(**changes: Any) -> str:
    other = model_pb2.Specification()
    other.CopyFrom(SPECIFICATION)
    for name, value in changes.items():
        if isinstance(value, list):
            other.ClearField(name)  # type: ignore[arg-type]  # the names are fields
            getattr(other, name).extend(value)
        else:
            setattr(other, name, value)
    return text(other.SerializeToString())


ANSWER, REFUSAL, CORRECTION, LAST = ROWS + 2, ROWS + 3, ROWS + 5, ROWS + 6
SPOILT: dict[str, tuple[Callable[[Lines], Lines], str]] = {
    "no specification": (at(1, specification=text(b"\xff")), "line 1: specification: is not a serialised"),
    "a specification out of bounds": (
        at(1, specification=specification(alpha=7.0)),
        "line 1: specification.alpha: is 7.0, must",
    ),
    "another frame": (
        at(LAST, specification=specification(classes=["p", "r"])),
        f"line {LAST}: specification: has other frame than the first one",
    ),
    "budget": (at(1, budget=10**7), r"line 1: budget: is 10000000, must be a whole number in \[0, 1000000\]"),
    "a negative budget": (at(1, budget=-1), "line 1: has budget -1, must lie in \\[0, "),
    "too small a budget": (at(1, budget=0), "line 1: has budget 0, but 2 answers are in the file"),
    "budget that is not a number": (at(1, budget=True), "line 1: has budget True, must be a whole number"),
    "time": (at(1, created_at=1e300), "line 1: has created_at 1e\\+300, must lie in \\[0, 253402300799\\]"),
    "a word of a number": (at(1, vocabulary=[[1, "c"]]), "line 1: vocabulary: has 'c' of attribute 1, which is no"),
    "a word that was declared": (at(1, vocabulary=[[0, "a"]]), "line 1: vocabulary: has 'a' of attribute 0"),
    "a word twice": (at(1, vocabulary=[[0, "c"], [0, "c"]]), "line 1: has value 'c' of attribute 0 .* twice"),
    "no such word": (at(1, vocabulary=[]), "line 4: values: have number 2 of attribute 'X', which has 2 values"),
    "policy": (at(1, policy={"max_held": 0}), "line 1: has a policy whose max_held: is 0, must lie in \\[1, 100\\]"),
    "width": (at(3, values=text(b"\0" * 8)), "line 3: has values of 8 bytes, must be 16 as those before"),
    "width of the first": (at(2, values=text(b"\0" * 24)), "line 2: values: have shape \\(1, 3\\)"),
    "half a number": (at(2, values=text(b"\0" * 9)), "line 2: has values of 9 bytes, must be 8 each"),
    "a value": (
        at(3, values=text(np.array([0.0, np.inf]).tobytes())),
        "line 3: values\\[0\\].Y: is inf, must be finite",
    ),
    "label": (at(3, label=text(b"\x99")), "line 3: label: has kind byte 0x99"),
    "label of another frame": (at(3, label=text(encode(ClassSet(4)))), "line 3: label: .*"),
    "display": (at(3, display=text(b"\xff")), "line 3: display: is not a serialised quercus.v1.Display"),
    "an item without content": (
        at(3, display=text(display_pb2.Display(items=[{"title": "t"}]).SerializeToString())),
        r"line 3: displays\[0\].items\[0\].content: is missing",
    ),
    "id twice": (at(3, id="i0"), "line 3: has id 'i0', which an earlier instance has"),
    "empty id": (at(3, id=""), "line 3: id: has 0 characters, must have 1 to 200"),
    "instance of the future": (at(ANSWER, instance=99), f"line {ANSWER}: has instance 99, which is not an instance"),
    "instance that is an answer": (
        at(CORRECTION, instance=ROWS + 1), f"line {CORRECTION}: has instance {ROWS + 1}, which is not an instance",
    ),
    "instance of another query": (
        at(CORRECTION, instance=1), f"line {CORRECTION}: has instance 1, but query 1 was about instance",
    ),
    "query": (at(ANSWER, query=0), f"line {ANSWER}: has query 0, must lie in \\[1, "),
    "a huge query": (at(ANSWER, query=10**30), f"line {ANSWER}: has query 1000000000000000000"),
    "sequence": (at(3, sequence=True), "line 3: has sequence True, must be a whole number"),
    "kind": (at(3, kind=[]), "line 3: has kind \\[\\], must be a whole number"),
    "answer without label": (at(ANSWER, label=None), f"line {ANSWER}: lacks label, which an event of kind 2 has"),
    "refusal with label": (
        at(REFUSAL, label=text(b"")), f"line {REFUSAL}: has label, which an event of kind 3 has not",
    ),
    "reliability": (at(ANSWER, reliability=1.5), f"line {ANSWER}: reliability: is 1.5, must be above 0 and at most 1"),
    "no number": (at(ANSWER, reliability=float("nan")), f"line {ANSWER}: reliability: is nan, must"),
    "conflict": (at(ANSWER, conflict=1), f"line {ANSWER}: has conflict 1, must be true or false"),
    "comment": (at(ANSWER, comment="x" * 3000), f"line {ANSWER}: comment: has 3000 characters, must have at most 2000"),
    "shown": (at(ANSWER, shown="x" * 201), f"line {ANSWER}: shown: has 201 characters, must have at most 200"),
    "took": (at(ANSWER, took_s=-1.0), f"line {ANSWER}: took: is -1.0 s, must lie in"),
    "author": (at(ANSWER, author=""), f"line {ANSWER}: has author of length 0, must lie in \\[1, 200\\]"),
    "an author that PostgreSQL would not take": (
        at(ANSWER, author="x" * 201), f"line {ANSWER}: has author of length 201, must lie in \\[1, 200\\]",
    ),
    "author that is not text": (at(ANSWER, author="\ud800"), f"line {ANSWER}: author: .* is not valid Unicode"),
    "place": (at(ANSWER, asked=text(b"[1]")), f"line {ANSWER}: asked: is not the position of a query"),
    "place in UTF-16": (
        at(ANSWER, asked=text("[[[5,0]],null,null,[]]".encode("utf-16"))), f"line {ANSWER}: asked: is not the position",
    ),
    "place with rivals that are not a list": (
        at(ANSWER, asked=text(b"[[],[],1,{}]")), f"line {ANSWER}: asked: .*, which is no place in a tree",
    ),
    "place in another tree": (
        at(ANSWER, asked=text(b"[[[5,0]],null,null,[]]")), f"line {ANSWER}: asked: .*, which is no place in a tree",
    ),
    "a long number": (lambda lines: ["9" * 9999, *lines[1:]], "line 1: is not JSON"),
}  # fmt: skip


@pytest.mark.parametrize("what", SPOILT)
def test_what_is_wrong_is_named_and_nothing_is_stored(store: Store, lines: Lines, what: str) -> None:
    spoil, said = SPOILT[what]
    with pytest.raises(InvalidInput, match=said):
        store.load(spoil(lines), "copy", StoredModel())
    with pytest.raises(NotFound):
        store.get_model("copy")


def test_whatever_comes_in_can_be_grown(store: Store, lines: Lines) -> None:
    """Random changes of cells and bytes are refused, or are harmless: nothing comes in that stops a grower."""
    chance = random.Random(0)  # noqa: S311
    cells = [
        0,
        1,
        2,
        3,
        -1,
        7,
        2**70,
        0.5,
        "",
        "i1",
        "x",
        None,
        True,
        [],
        {},
        text(b"\1" * 16),
        text(encode(ClassSet(1))),
    ]
    taken = 0
    for number in range(250):
        spoilt = list(lines)
        for _ in range(chance.choice((1, 1, 2))):
            place = chance.randrange(len(spoilt))
            content = json.loads(spoilt[place])
            name = chance.choice(sorted(content))
            value = chance.choice(cells)
            if (
                isinstance(content[name], str) and content[name] and chance.random() < 0.5
            ):  # most of these are bytes
                data = bytearray(content[name].encode())
                data[chance.randrange(len(data))] = chance.choice(b"AQgw/+=9z")
                value = data.decode()
            content[name] = value
            spoilt[place] = json.dumps(content)
        try:
            store.load(spoilt, f"m{number}", StoredModel())
        except InvalidInput:
            continue
        else:
            taken += 1
            grown(store, f"m{number}")
            assert list(store.dump(f"m{number}"))[1:]
            store.delete_model(f"m{number}")
    assert taken >= 20, "hardly anything was right"


def test_a_line_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer_lines, "MAX_LINE_CHARACTERS", 10)
    assert list(transfer_lines.lines_of(io.StringIO("123456789\n{}\n"))) == ["123456789\n", "{}\n"]
    endless = Endless()
    lines = transfer_lines.lines_of(endless)
    with pytest.raises(InvalidInput, match=r"line 2: has more than 10 characters"):
        list(lines)
    assert endless.read == 13


class Endless(io.StringIO):
    """A file whose second line never ends; tells how much of it was read."""

    read = 0

    def readline(self, size: int | None = -1, /) -> str:
        assert size is not None
        assert size >= 0
        line = "1\n" if not self.read else "1" * size
        self.read += len(line)
        return line
