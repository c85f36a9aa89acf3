"""A model is replaced between any two statements that read a page: the page is of one of the models, or of none."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import event
from support import words

from quercus.belief.codec import encode_sets
from quercus.server.config import Config
from quercus.server.core.row_index import Found, RowIndex
from quercus.server.labelling import answer_pages, disputes
from quercus.server.labelling.answer_pages import AnswerSelection
from quercus.server.services import instances
from quercus.server.transfer.exporting import export_table
from quercus.server.wire.errors import Unavailable
from quercus.server.wire.models import extension_of
from quercus.server.wire.row_filter import read_selection
from quercus.server.wire.schema import ModelSchema
from quercus.storage import (
    AgendaEntry,
    EventSelection,
    FailedPrecondition,
    KnownModel,
    NotFound,
    Statement,
    StatementBatch,
    Store,
)
from quercus.v1 import model_pb2

MOST_STATEMENTS = 100
GONE = {"model m", "model m was deleted, and another has its name: start again"}


def lines_of(store: Store, attributes: int, classes: list[str], rows: int) -> list[str]:
    """A model with so many attributes and rows, some of them answered, as it is exported."""
    declared = [
        model_pb2.Attribute(name=f"X{k}", nominal=model_pb2.NominalAttribute(values=["a"]))
        for k in range(attributes)
    ]
    message = model_pb2.Specification(attributes=declared, classes=classes, budget=9)
    store.create_model("m", message.SerializeToString(), budget=9)
    everything = encode_sets(np.full(rows, 2 ** len(classes) - 1, np.uint64))
    store.append_instances("m", [f"i{i}" for i in range(rows)], np.zeros((rows, attributes)), everything)
    agenda = [AgendaEntry(i, b"asked", b"") for i in range(1, 4)]
    store.publish("m", as_of=rows, snapshot=b"tree", agenda=agenda)
    (label,) = encode_sets(np.array([2 ** (len(classes) - 1)], np.uint64))
    for query in store.lease("m", "ann", 3, 60.0).queries:
        words.answer(store, "m", query.number, query.token, label, 1.0)
    found = list(store.dump("m"))
    store.delete_model("m")
    return found


class Replacing:
    """A store, and another process's view of it, which replaces the model between two statements of the store.

    Parameters
    ----------
    store : reads the pages.
    other : the same store.
    models : two models of one name, as they are exported.
    """

    def __init__(self, store: Store, other: Store, models: list[list[str]]) -> None:
        self.store, self._other, self._models = store, other, models
        self._left: int | None = None
        event.listen(store._database._engine, "after_cursor_execute", self._count)
        other.load(models[0])

    def after(self, statements: int) -> None:
        """Replace the first model by the second when so many statements have been executed from now on."""
        self._left = None
        self._put(0)
        if statements:
            self._left = statements
        else:
            self._put(1)

    @property
    def is_done(self) -> bool:
        """True if the model was replaced."""
        return self._left is None

    def _put(self, number: int) -> None:
        self._other.delete_model("m")
        while self._other.remove_deleted():
            pass
        self._other.load(self._models[number])

    def _count(self, *_: object) -> None:
        if self._left == 1:
            self._left = None
            self._put(1)
        elif self._left is not None:
            self._left -= 1


@pytest.fixture
def replacing(tmp_path: Path) -> Iterator[Replacing]:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    with Store.open(url) as store, Store.open(url) as other:
        both = [lines_of(other, 3, ["p", "q", "r"], 9), lines_of(other, 1, ["s", "t"], 4)]
        yield Replacing(store, other, both)


def page(store: Store) -> set[tuple[int, int]]:
    """Return the numbers of values and of classes of each row of a page; so do those below."""
    found = instances._list_page(store, "m", 0, 20).instances
    assert len(found) in {9, 4}
    return {(len(row.values.values), len(row.contour.plausibilities)) for row in found}


def one_row(store: Store) -> set[tuple[int, int]]:
    row = instances._read_instance(store, "m", "i0")
    return {(len(row.values.values), len(row.contour.plausibilities))}


def answers(store: Store) -> set[tuple[int, int]]:
    schema = ModelSchema.read(store, "m")
    found, _ = answer_pages._read_page(
        store, schema, AnswerSelection(), EventSelection(), with_values=True, only=None
    )
    return {(len(row.values.values), len(row.contour.plausibilities)) for row in found}


def table(store: Store) -> set[tuple[int, int]]:
    found = export_table(store, "m")
    return {(len(found.header), len(row)) for row in found.rows}


@pytest.mark.parametrize(
    ("read", "first", "second"),
    [(page, (3, 3), (1, 2)), (one_row, (3, 3), (1, 2)), (answers, (3, 3), (1, 2)), (table, (10, 10), (7, 7))],
)
def test_a_page_is_of_one_model(
    replacing: Replacing, read: Callable[[Store], set[tuple[int, int]]], first: object, second: object
) -> None:
    """Whenever the model is replaced, a page is of one of the models, or the error says that the model is gone."""
    seen: list[object] = []
    said: set[str] = set()
    for statements in range(MOST_STATEMENTS):
        replacing.after(statements)
        try:
            (found,) = read(replacing.store)
            seen.append(found)
        except (NotFound, FailedPrecondition) as error:
            said.add(str(error).partition(" does")[0])
        if not replacing.is_done:
            break
    else:
        raise AssertionError(f"more than {MOST_STATEMENTS} statements")
    assert said <= GONE
    assert set(seen) == {first, second}
    assert seen[-1] == first  # nobody replaced it


def rows_found(store: Store, schema: ModelSchema) -> object:
    return instances._found_page(store, schema, Found([1, 4], [], None, 2), "", None)


def page_of_disputes(store: Store, schema: ModelSchema) -> object:
    return disputes._read_page(store, schema, 0, 5, frozenset(), frozenset(), None)


def agreement(store: Store, schema: ModelSchema) -> object:
    return disputes._read_agreement(store, schema)


@pytest.mark.parametrize("read", [rows_found, page_of_disputes, agreement])
def test_what_was_looked_up_in_the_model_before_is_not_read_from_the_next(
    replacing: Replacing, read: Callable[[Store, ModelSchema], object]
) -> None:
    replacing.after(MOST_STATEMENTS)
    schema = ModelSchema.read(replacing.store, "m")
    read(replacing.store, schema)
    replacing.after(0)
    with pytest.raises(NotFound, match="model m does not exist any more: another has its name"):
        read(replacing.store, schema)


class JustExtended:
    """A model that gets a class, and labels with it, after somebody has read its schema."""

    def __init__(self, store: Store) -> None:
        self.store = store
        store.load(lines_of(store, 1, ["p", "q"], 4))
        self.schema = ModelSchema.read(store, "m")
        self.index = RowIndex(store, self.schema)
        wanted = model_pb2.ExtendModelRequest(classes=["new"])
        limits = Config().message_limits
        store.extend_model("m", lambda data: extension_of(data, wanted, limits), "r", lambda *_: True)
        (label,) = encode_sets(np.array([4], np.uint64))
        said = [Statement(f"i{k}", name, label) for k in range(2) for name in ("ann", "bob")]
        store.state("m", StatementBatch("s", said), KnownModel(3, self.schema.key, extensions=1))


@pytest.mark.parametrize("read", [page_of_disputes, agreement])
def test_a_class_that_has_just_come_is_no_damage(
    tmp_path: Path, read: Callable[[Store, ModelSchema], object]
) -> None:
    with Store.open(f"sqlite:///{tmp_path / 'store.db'}") as store:
        made = JustExtended(store)
        with pytest.raises(Unavailable, match="model m was just extended: send it again"):
            read(store, made.schema)
        read(store, ModelSchema.read(store, "m"))


def test_an_index_that_meets_a_class_that_has_just_come_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model is extended between the look at it and the look at its log."""
    with Store.open(f"sqlite:///{tmp_path / 'store.db'}") as store:
        made = JustExtended(store)
        looks = iter([replace(store.get_model("m"), shapes=made.schema.shapes)])
        look = store.get_model
        monkeypatch.setattr(store, "get_model", lambda name: next(looks, None) or look(name))
        everything = read_selection("labelled", "", ("p", "q"))
        with pytest.raises(Unavailable, match="model m was just extended: send it again"):
            made.index.find(everything, made.schema, None, None, 5)
