"""A store that an earlier version wrote, opened by this one: nothing is lost, and leases live on."""

import sqlite3
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from support import words
from support.histories import check_history
from support.killed import survives

from quercus.belief.codec import encode
from quercus.belief.label import ClassSet
from quercus.server.growth.folding import LogFolder
from quercus.server.wire.models import decode_specification
from quercus.storage import (
    AgendaEntry,
    EventKind,
    FailedPrecondition,
    Policy,
    QueryState,
    Step,
    Store,
)
from quercus.storage.admin.verify import verify_store
from quercus.storage.schema import HEAD, REVISION_TABLE
from quercus.v1 import model_pb2

FIXTURE = Path(__file__).with_name("fixtures") / "store_0001.sql"
SAVED_AT = 1_700_000_050.0  # by its wall clock
ANN, BOB, CLEO = (
    (4, "117gK_9TuHJjFQF1IOIz4A"), (3, "0O-P5-4SXfidln2KgvmG6Q"), (5, "-_eS7gYSkuUN5UFTHcbtng"),
)  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "store.db"
    with sqlite3.connect(made) as raw:
        raw.executescript(FIXTURE.read_text())
    raw.close()
    return made


@pytest.fixture
def store(path: Path) -> Store:
    with Store.open(f"sqlite:///{path}", clock=lambda: SAVED_AT, steady=lambda: 77.0, boot="b") as opened:
        yield opened


def test_evidence_and_models_are_what_they_were(store, path):
    events = store.read_events("wine")
    assert [e.sequence for e in events] == list(range(1, 27))
    answer, refusal = events[24:]
    assert (answer.kind, answer.instance, answer.author, answer.query) == (EventKind.ANSWER, 4, "ann", 1)
    assert (refusal.kind, refusal.instance, refusal.query) == (EventKind.REFUSAL, 8, 2)
    assert (answer.comment, answer.took_s) == ("", None)
    model = store.get_model("wine")
    assert (model.queries_answered, model.queries_refused, model.queries_leased, model.queries_open) == (
        1,
        1,
        2,
        1,
    )
    assert store.vocabulary("wine") == {1: ("c",)}
    assert store.snapshot("wine").data == b"\0old" + bytes(16)
    assert [each.name for each in store.list_models()] == ["empty", "wine"]
    assert decode_specification(model_pb2.Specification.FromString(model.specification)).budget == 6


def test_leases_live_on_and_their_holders_are_known(store):
    assert {q.number: (q.state.name, q.labeller) for q in store.list_queries("wine")} == {
        1: ("ANSWERED", "ann"),
        2: ("REFUSED", "ann"),
        3: ("OPEN", ""),
        4: ("LEASED", "ann"),
        5: ("LEASED", "cleo"),
        6: ("WITHDRAWN", ""),
    }
    assert store.get_query("wine", 4).left_s == pytest.approx(10.0)
    assert store.get_query("wine", 5).left_s == pytest.approx(560.0)
    assert words.answer(store, "wine", *BOB, encode(ClassSet(1))).sequence == 27  # late, and nobody else's
    assert words.answer(store, "wine", *ANN, encode(ClassSet(1))).sequence == 28
    store.extend("wine", *CLEO, 60.0)
    with pytest.raises(FailedPrecondition, match="not one that was given"):
        store.release("wine", 5, "guess")


def test_the_history_begins_with_what_is_known(store):
    steps = [(row.query, row.step, row.labeller) for row in store.query_history("wine")]
    assert steps == [
        (1, Step.OPENED, ""), (1, Step.LEASED, "ann"), (1, Step.ANSWERED, "ann"),
        (2, Step.OPENED, ""), (2, Step.LEASED, "ann"), (2, Step.REFUSED, "ann"),
        (3, Step.OPENED, ""), (3, Step.LEASED, "ann"), (3, Step.RELEASED, "ann"), (3, Step.LEASED, "bob"),
        (4, Step.OPENED, ""), (4, Step.LEASED, "ann"),
        (5, Step.OPENED, ""), (5, Step.LEASED, "cleo"),
        (6, Step.OPENED, ""), (6, Step.WITHDRAWN, ""),
    ]  # fmt: skip
    (again,) = store.lease("wine", "dora", 1, 60.0, min_sequence=0).queries
    assert again.number == 3
    check_history(store.query_history("wine"))


def test_what_is_new_works_on_it(store):
    assert store.policy("wine") == Policy()
    store.set_policy("wine", Policy(per_hour=100))
    store.skip("wine", *CLEO)
    assert words.amend(store, "wine", 1, "ann", encode(ClassSet(4))).sequence == 27
    (ann, *_) = store.labellers("wine")
    assert (ann.labeller, ann.answered, ann.refused, ann.corrected, ann.held) == ("ann", 1, 1, 1, 1)


def test_growth_goes_on_from_it(store):
    words.answer(store, "wine", *ANN, encode(ClassSet(1)), 1.0)
    folding = LogFolder(store, store.get_model("wine"), keep=10, interval_s=0.0, agenda_share=1.0)
    while folding.run_step(store.get_model("wine")):
        pass
    model = store.get_model("wine")
    assert (model.sequence_grown, model.tree_version) == (27, 3)


def test_opened_twice_it_is_the_same(path):
    def look() -> object:
        with Store.open(f"sqlite:///{path}", clock=lambda: SAVED_AT, steady=lambda: 77.0, boot="b") as store:
            return store.list_queries("wine"), store.query_history("wine"), store.read_events("wine")

    assert look() == look()


def test_answers_that_were_taken_back_count_no_more(tmp_path):
    """An earlier version went on counting one of two, and counted refusals; its history said so all along."""
    url = f"sqlite:///{tmp_path / 'store.db'}"
    with Store.open(url) as store:
        store.create_model("m", b"", budget=9)
        store.append_instances("m", ["a", "b"], np.ones((2, 1)), [words.ANYTHING] * 2)
        store.publish("m", as_of=2, snapshot=b"", agenda=[AgendaEntry(i, b"", b"") for i in (1, 2)])
        store.set_policy("m", Policy(answers_per_query=2))
        for labeller in ("ann", "bob"):
            (query,) = store.lease("m", labeller, 1, 60.0).queries
            words.answer(store, "m", query.number, query.token)
        words.amend(store, "m", 1, "ann", None)
        (query,) = store.lease("m", "cleo", 1, 60.0).queries
        words.refuse(store, "m", query.number, query.token)
    assert verify_store(url) == []
    downgrade(tmp_path / "store.db", "0004")
    with sqlite3.connect(tmp_path / "store.db") as raw:
        raw.execute("UPDATE query SET answers = 3 - number")
    raw.close()
    assert verify_store(url) == []  # of an earlier schema nothing else is looked at
    with Store.open(url) as store:
        assert [query.answers for query in store.list_queries("m")] == [1, 0]
    assert verify_store(url) == []


def downgrade(path, revision):
    from alembic import command
    from alembic.config import Config
    from sqlalchemy import create_engine

    from quercus.storage.migrate import SCRIPTS

    config = Config()
    config.set_main_option("script_location", SCRIPTS)
    config.set_main_option("path_separator", "os")
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, revision)
    engine.dispose()


def test_down_and_up_again_the_leases_stay(path):
    Store.open(f"sqlite:///{path}", clock=lambda: SAVED_AT, steady=lambda: 77.0, boot="b").close()
    downgrade(path, "0002")
    with Store.open(f"sqlite:///{path}", clock=lambda: SAVED_AT, steady=lambda: 77.0, boot="b") as store:
        assert store.get_query("wine", 5).state is QueryState.LEASED
        assert words.answer(store, "wine", *CLEO, encode(ClassSet(1))).sequence == 27


def test_an_upgrade_that_is_killed_at_any_statement_leaves_the_old_schema_or_the_new(path):
    with sqlite3.connect(path) as raw:
        before = list(raw.iterdump())
    raw.close()
    kills = 0
    for statement in count(step=9):
        if survives(lambda: Store.open(f"sqlite:///{path}").close(), statement):
            break
        kills += 1
        with sqlite3.connect(path) as raw:
            assert list(raw.iterdump()) == before or stored(raw) == HEAD
        raw.close()
    assert kills > 5
    with Store.open(f"sqlite:///{path}") as store:
        assert [event.sequence for event in store.read_events("wine")] == list(range(1, 27))
    with sqlite3.connect(path) as raw:
        assert stored(raw) == HEAD
    raw.close()
    assert verify_store(f"sqlite:///{path}") == []


def stored(raw: sqlite3.Connection) -> str:
    return str(raw.execute(f"SELECT version_num FROM {REVISION_TABLE}").fetchone()[0])  # noqa: S608
