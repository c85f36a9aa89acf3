"""Several answers to a query, statements, corrections, undoing and leases that end: a state machine over the service.

Beside it runs `support.ledger`, which knows whose words stand and what they come to, and nothing of the log. After each
step every query has the answers and the state that the ledger says, and of every instance is known what follows there.
"""

import asyncio
import itertools
import shutil
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from support.histories import check_history
from support.ledger import LabellerVoice, Ledger, conflict

from quercus.belief.codec import encode_contours
from quercus.labelling.history import known_contour
from quercus.server.config import Config
from quercus.server.core.service_core import ServiceCore
from quercus.server.labelling import answering, stating
from quercus.server.wire.models import complete_specification
from quercus.storage import (
    AgendaEntry,
    Corrections,
    FailedPrecondition,
    Policy,
    QueryRecord,
    QueryState,
    Store,
)
from quercus.storage.admin.verify import verify_store
from quercus.storage.queries.leases import Eviction
from quercus.v1 import instance_pb2, model_pb2, query_pb2, values_pb2

CLASSES = ("o", "s", "x")
PUSHED = [(1.0, 1.0, 1.0), (1.0, 0.5, 0.0), (0.0, 1.0, 0.0), (0.2, 1.0, 1.0)]
NAMES = st.sampled_from(("ann", "bob", "cleo", "dora"))
PLACES = st.integers(0, 3)
SETS = st.sampled_from((("o",), ("o",), ("s",), ("s",), ("x",), ("o", "s"), CLASSES))
RELIABILITIES = st.sampled_from((1.0, 0.8, 0.5))
MAX_CONFLICT = 0.5


class Evidence(RuleBasedStateMachine):
    """A model of four instances, one of them vague, one certain."""

    template: Path

    @initialize(answers=st.integers(1, 3), anyone=st.booleans())
    def begin(self, answers: int, anyone: bool) -> None:
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name) / "store.db"
        shutil.copyfile(self.template, path)
        self.now = 1000.0
        self.url = f"sqlite:///{path}"
        store = Store.open(self.url, clock=lambda: self.now, steady=lambda: self.now)
        self.runner = asyncio.Runner()
        self.core = self.run(_started(store))
        self.store = store
        attribute = model_pb2.Attribute(name="X", nominal=model_pb2.NominalAttribute(values=["a"]))
        specification = complete_specification(
            model_pb2.Specification(attributes=[attribute], classes=CLASSES, budget=10**6)
        )
        store.create_model("m", specification.SerializeToString(), budget=10**6)
        self.corrections = Corrections.ANYONE if anyone else Corrections.OWN
        self.want(answers)
        labels = encode_contours(np.array(PUSHED))
        store.append_instances("m", list("abcd"), np.zeros((4, 1)), labels)
        self.ledgers = {k: Ledger() for k in range(1, 5)}
        self.leases: list[tuple[str, QueryRecord]] = []
        self.requests = itertools.count()
        self.publish({1, 2, 3, 4})

    def teardown(self) -> None:
        if hasattr(self, "core"):
            assert [str(fault) for fault in verify_store(self.url)] == []
            self.run(self.core.close())
            self.runner.close()
            self.folder.cleanup()

    def run(self, call: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(call)

    @rule(answers=st.integers(1, 3))
    def want(self, answers: int) -> None:
        self.wanted = answers
        policy = Policy(answers_per_query=answers, max_conflict=MAX_CONFLICT, corrections=self.corrections)
        self.store.set_policy("m", policy)

    @rule(agenda=st.sets(st.integers(1, 4), min_size=1))
    def publish(self, agenda: set[int]) -> None:
        """Growth asks of no instance that is settled."""
        wanted = [instance for instance in sorted(agenda) if not self.ledgers[instance].is_settled]
        entries = [AgendaEntry(instance, b"", b"") for instance in wanted]
        end = self.store.get_model("m").sequence_committed
        self.store.publish("m", as_of=end, snapshot=b"", agenda=entries)

    @rule(
        agenda=st.sets(st.integers(1, 4), min_size=1), labeller=NAMES, names=SETS, reliability=RELIABILITIES
    )
    def say(self, agenda: set[int], labeller: str, names: tuple[str, ...], reliability: float) -> None:
        """Ask, lease and answer at once, which happens most."""
        self.publish(agenda)
        before = len(self.leases)
        self.lease(labeller, 1)
        if len(self.leases) > before:
            self.answer(0, names, reliability)

    @rule(labeller=NAMES, limit=st.integers(1, 2))
    def lease(self, labeller: str, limit: int) -> None:
        for query in self.store.lease("m", labeller, limit, 20.0).queries:
            assert labeller not in self.query(query).answers, "who has a voice is asked again"
            self.leases.append((labeller, query))

    @rule(place=PLACES, names=SETS, reliability=RELIABILITIES)
    def answer(self, place: int, names: tuple[str, ...], reliability: float) -> None:
        if not self.leases:
            return
        labeller, query = self.leases[-1 - place % len(self.leases)]
        request = query_pb2.AnswerQueryRequest(
            name=f"models/m/queries/{query.number}", lease_token=query.token, label=_label(names),
            reliability=reliability,
        )  # fmt: skip
        if (done := self.attempt(answering.answer_query(self.core, request))) is not None:
            wants_more = self.take_answer(labeller, query, names, reliability)
            assert done.wants_more == wants_more

    @rule(place=PLACES)
    def refuse(self, place: int) -> None:
        if not self.leases:
            return
        labeller, query = self.leases[-1 - place % len(self.leases)]
        request = query_pb2.RefuseQueryRequest(
            name=f"models/m/queries/{query.number}", lease_token=query.token
        )
        if self.attempt(answering.refuse_query(self.core, request)) is None:
            return
        if self.query(query).answers:  # then it is an answer that says nothing
            self.take_answer(labeller, query, CLASSES, 1.0)
        else:
            self.ledgers[query.instance].refuse(query.number, labeller)

    def take_answer(
        self, labeller: str, query: QueryRecord, names: tuple[str, ...], reliability: float
    ) -> bool:
        """Write an answer into the ledger; whether the query wants more."""
        mine = self.query(query)
        several = self.wanted > 1 or bool(mine.ever)
        voices = [*mine.answers.values(), self.voice(names, reliability)]
        high = conflict(voices, len(CLASSES)) > MAX_CONFLICT
        settles = not several or len(voices) >= self.wanted * (2 if high else 1)
        ledger = self.ledgers[query.instance]
        ledger.answer(query.number, labeller, voices[-1], several=several, settles=settles)
        return not settles

    @rule(place=PLACES, labeller=NAMES, names=SETS, reliability=RELIABILITIES)
    def correct(self, place: int, labeller: str, names: tuple[str, ...], reliability: float) -> None:
        if (query := self.spoken_of(place)) is None:
            return
        request = query_pb2.CorrectAnswerRequest(
            name=f"models/m/queries/{query.number}", label=_label(names), reliability=reliability
        )
        stands = labeller in self.query(query).answers
        done = self.attempt(answering.correct_answer(self.core, request, labeller))
        if done is not None:
            self.ledgers[query.instance].correct(query.number, labeller, self.voice(names, reliability))
        assert done is not None or not stands or self.repeats, "who answered may correct"

    @rule(place=PLACES, labeller=NAMES)
    def undo(self, place: int, labeller: str) -> None:
        if (query := self.spoken_of(place)) is None:
            return
        request = query_pb2.UndoAnswerRequest(name=f"models/m/queries/{query.number}")
        stands = labeller in self.query(query).answers
        done = self.attempt(answering.undo_answer(self.core, request, labeller))
        if done is not None:
            self.ledgers[query.instance].undo(query.number, labeller)
        assert done is not None or not stands, "who answered may take it back"
        is_acknowledged = done is not None or self.repeats
        assert not is_acknowledged or self.query(query).refused != labeller, "a refusal is there still"

    @rule(instance=st.integers(1, 4), labeller=NAMES, names=SETS, reliability=RELIABILITIES)
    def state(self, instance: int, labeller: str, names: tuple[str, ...], reliability: float) -> None:
        said = {"label": _label(names), "reliability": reliability}
        if self.attempt(self.statement(instance, labeller, said)) is not None:
            self.ledgers[instance].stated[labeller] = self.voice(names, reliability)

    @rule(instance=st.integers(1, 4), labeller=NAMES)
    def retract(self, instance: int, labeller: str) -> None:
        stands = labeller in self.ledgers[instance].stated
        done = self.attempt(self.statement(instance, labeller, {"retract": True}))
        if done is not None:
            self.ledgers[instance].stated.pop(labeller, None)
        assert not stands or done is not None or self.answered_later(instance, labeller)

    def answered_later(self, instance: int, labeller: str) -> bool:
        """Return whether the newest label of a labeller answers a query, which is undone in another way."""
        ledger = self.ledgers[instance]
        return any(labeller in query.ever or query.settled for query in ledger.queries.values())

    def statement(self, instance: int, labeller: str, said: dict[str, Any]) -> Any:
        given = instance_pb2.Statement(instance_id="abcd"[instance - 1], labeller=labeller, **said)
        request = instance_pb2.StateEvidenceRequest(
            model="models/m", request_id=f"r{next(self.requests)}", statements=[given]
        )
        return stating.state_evidence(self.core, request)

    @rule(place=PLACES)
    def release(self, place: int) -> None:
        if self.leases:
            _, query = self.leases[-1 - place % len(self.leases)]
            try:
                self.store.release("m", query.number, query.token)
            except FailedPrecondition:
                return

    @rule(place=PLACES)
    def evict(self, place: int) -> None:
        held = self.store.list_queries("m", [QueryState.LEASED])
        if held:
            self.store.evict("m", held[place % len(held)].number, Eviction("on a whim"))

    @rule(seconds=st.sampled_from((5.0, 30.0)))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    def attempt(self, call: Coroutine[Any, Any, Any]) -> Any:
        """Do what somebody asks for; None when it is refused, or stores nothing since it was said before."""
        before = self.store.get_model("m").sequence_committed
        self.repeats = False
        try:
            done = self.run(call)
        except FailedPrecondition:
            assert self.store.get_model("m").sequence_committed == before, "refused, and something is stored"
            return None
        self.repeats = self.store.get_model("m").sequence_committed == before
        return None if self.repeats else done

    def spoken_of(self, place: int) -> QueryRecord | None:
        """One of the queries to which somebody has said something, the newest first."""
        said = [(each, self.query(each)) for each in self.store.list_queries("m")]
        found = [record for record, query in said if query.answers or query.refused]
        found = found or self.store.list_queries("m")
        return found[-1 - place % len(found)] if found else None

    def query(self, record: QueryRecord) -> Any:
        return self.ledgers[record.instance].query(record.number)

    def voice(self, names: tuple[str, ...], reliability: float) -> LabellerVoice:
        at = self.store.get_model("m").sequence_committed
        return LabellerVoice(at, frozenset(CLASSES.index(name) for name in names), reliability)

    @invariant()
    def the_store_says_what_the_ledger_says(self) -> None:
        if not hasattr(self, "core"):
            return
        check_history(self.store.query_history("m"))
        for record in self.store.list_queries("m"):
            said = self.query(record)
            assert record.answers == len(said.answers), record.number
            assert (record.state is QueryState.REFUSED) == bool(said.refused), record.number
            assert (record.state is QueryState.ANSWERED) == said.settled, record.number
            assert not said.answers or record.state is not QueryState.WITHDRAWN, record.number
        for instance, history in self.store.history("m", list(self.ledgers)).items():
            known, pushed = known_contour(history, len(CLASSES)), PUSHED[instance - 1]
            np.testing.assert_allclose(known, self.ledgers[instance].contour(pushed), atol=1e-9)


async def _started(store: Store) -> ServiceCore:
    core = ServiceCore(store, Config())
    core.start()
    return core


def _label(names: tuple[str, ...]) -> values_pb2.Label:
    return values_pb2.Label(class_set=values_pb2.ClassSet(classes=names))


@pytest.mark.timeout(300)
def test_what_is_known_follows_from_whose_words_stand(template: Path) -> None:
    Evidence.template = template
    run_state_machine_as_test(
        Evidence,
        settings=settings(
            max_examples=settings.default.max_examples // 4,
            stateful_step_count=30,
            deadline=None,
            phases=[Phase.explicit, Phase.reuse, Phase.generate],  # to shrink takes minutes
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )
