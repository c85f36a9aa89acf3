"""Queries that want several answers, as a state machine: answers, refusals, corrections, undoing, in any order.

The model below knows only whose answers stand. After each step the counts are those of the model, and nobody who has a
voice in a query is asked again. `verify_store` finds nothing every few steps, and at the end: what it would find stays.
"""

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from support import words
from support.histories import check_history

from quercus.storage import (
    AgendaEntry,
    FailedPrecondition,
    Policy,
    QueryRecord,
    QueryState,
    Store,
)
from quercus.storage.admin.verify import verify_store

OPEN, LEASED, ANSWERED, REFUSED, WITHDRAWN = QueryState
SETTLED = (ANSWERED, REFUSED)
LABELLERS = st.sampled_from(("ann", "bob", "cleo"))
PLACES = st.integers(0, 3)
LABELS = st.sampled_from((words.A, words.B))
INSTANCES = 4
STEPS_A_CHECK = 6


@dataclass
class Query:
    """Labellers whose answers count, those who ever gave one, and whether a correction or a refusal settled it."""

    voices: dict[str, bytes] = field(default_factory=dict)
    ever: set[str] = field(default_factory=set)
    state: QueryState = OPEN  # LEASED is the store's to say
    wanted: bool = True


class SeveralAnswers(RuleBasedStateMachine):
    """A model that wants two or three answers a query, and asks of four instances."""

    template: Path

    @initialize(answers=st.integers(2, 3))
    def begin(self, answers: int) -> None:
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name) / "store.db"
        shutil.copyfile(self.template, path)
        self.now, self.answers = 1000.0, answers
        self.url = f"sqlite:///{path}"
        self.store = Store.open(self.url, clock=lambda: self.now, steady=lambda: self.now)
        self.store.create_model("m", b"", budget=10**6)
        self.store.set_policy("m", Policy(answers_per_query=answers, max_conflict=1.0))
        self.store.append_instances(
            "m", [str(i) for i in range(INSTANCES)], np.ones((INSTANCES, 1)), [words.ANYTHING] * 4
        )
        self.steps = 0
        self.queries: dict[int, Query] = {}
        self.leases: list[tuple[str, QueryRecord]] = []
        self.publish({1, 2})

    def teardown(self) -> None:
        if hasattr(self, "store"):
            try:
                self.verify()
            finally:
                self.store.close()
                self.folder.cleanup()

    @rule(agenda=st.sets(st.integers(1, INSTANCES), min_size=1))
    def publish(self, agenda: set[int]) -> None:
        entries = [AgendaEntry(instance, b"", b"") for instance in sorted(agenda)]
        end = self.store.get_model("m").sequence_committed
        self.store.publish("m", as_of=end, snapshot=b"", agenda=entries)
        for record in self.store.list_queries("m"):
            mine = self.queries.setdefault(record.number, Query())
            if mine.state is OPEN:
                mine.wanted = record.instance in agenda
                if not mine.wanted and not mine.voices and record.state is not LEASED:
                    mine.state = WITHDRAWN

    @rule(labeller=LABELLERS, label=LABELS)
    def say(self, labeller: str, label: bytes) -> None:
        """Lease and answer at once, which happens most."""
        before = len(self.leases)
        self.lease(labeller, 1)
        if len(self.leases) > before:
            self.answer(0, label, 1.0)

    @rule(labeller=LABELLERS, limit=st.integers(1, 2))
    def lease(self, labeller: str, limit: int) -> None:
        for query in self.store.lease("m", labeller, limit, 20.0).queries:
            mine = self.queries[query.number]
            assert mine.state is OPEN
            assert labeller not in mine.voices, "who has a voice is asked again"
            self.leases.append((labeller, query))

    @rule(place=PLACES, label=LABELS, reliability=st.sampled_from((1.0, 0.5)))
    def answer(self, place: int, label: bytes, reliability: float) -> None:
        if not self.leases:
            return
        labeller, query = self.leases[-1 - place % len(self.leases)]
        mine = self.queries[query.number]
        settles = len(mine.voices.keys() | {labeller}) >= self.answers
        try:
            done = words.answer(self.store, "m", query.number, query.token, label, reliability)
        except FailedPrecondition:
            return
        if done.repeated:
            return
        assert mine.state is OPEN
        assert labeller not in mine.voices, "two voices"
        mine.voices[labeller] = label
        mine.ever.add(labeller)
        mine.state = ANSWERED if settles else OPEN

    @rule(place=PLACES)
    def refuse(self, place: int) -> None:
        if not self.leases:
            return
        _, query = self.leases[-1 - place % len(self.leases)]
        mine = self.queries[query.number]
        if mine.voices:  # then the service says an answer without content
            return
        try:
            done = words.refuse(self.store, "m", query.number, query.token)
        except FailedPrecondition:
            return
        mine.state = mine.state if done.repeated else REFUSED

    @rule(place=PLACES, labeller=LABELLERS, label=st.one_of(st.none(), LABELS))
    def amend(self, place: int, labeller: str, label: bytes | None) -> None:
        """Correct, or take back, as the service does: among several, or (who never answered) over all of them."""
        numbers = [number for number, query in self.queries.items() if query.ever] or list(self.queries)
        self._amend(numbers[-1 - place % len(numbers)], labeller, label)

    @rule(place=PLACES, which=PLACES, held=st.booleans())
    def take_back(self, place: int, which: int, held: bool) -> None:
        """One whose answer stands takes it back: of a query that is settled, wants more answers, or is held for one."""
        spoken = [number for number, query in self.queries.items() if query.voices]
        if not spoken:
            return
        if held:
            for labeller in ("ann", "bob", "cleo"):
                self.lease(labeller, 2)
        number = spoken[-1 - place % len(spoken)]
        voices = sorted(self.queries[number].voices)
        self._amend(number, voices[which % len(voices)], None)

    def _amend(self, number: int, labeller: str, label: bytes | None) -> None:
        mine = self.queries[number]
        pending, among = mine.state not in SETTLED, labeller in mine.ever
        after = {name: said for name, said in mine.voices.items() if name != labeller}
        if label is not None:
            after[labeller] = label
        try:
            done = words.amend(self.store, "m", number, labeller, label, permitted=True)
        except FailedPrecondition:
            return
        if done.repeated:
            return
        if not among:  # a corrector: what was said together is overruled, or all of it taken back
            mine.state, mine.voices = (mine.state, mine.voices) if label is not None else (WITHDRAWN, {})
            return
        mine.voices = after
        held = self.store.get_query("m", number).state is LEASED
        if not after and not (pending and (held or mine.wanted)):
            mine.state = WITHDRAWN

    @rule(place=PLACES)
    def release(self, place: int) -> None:
        if self.leases:
            _, query = self.leases[-1 - place % len(self.leases)]
            try:
                self.store.release("m", query.number, query.token)
            except FailedPrecondition:
                return
            self.notice(query.number)

    @rule(seconds=st.sampled_from((5.0, 30.0)))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        for number in self.queries:
            self.notice(number)

    def notice(self, number: int) -> None:
        """Withdraw a query that was returned, has no answer and is not wanted any more."""
        mine = self.queries[number]
        held = self.store.get_query("m", number).state is LEASED
        if mine.state is OPEN and not (held or mine.voices or mine.wanted):
            mine.state = WITHDRAWN

    def verify(self) -> None:
        assert [str(fault) for fault in verify_store(self.url)] == []

    @invariant()
    def the_store_is_sound_and_says_the_same(self) -> None:
        if not hasattr(self, "store"):
            return
        self.steps += 1
        if self.steps % STEPS_A_CHECK == 0:
            self.verify()
        check_history(self.store.query_history("m"))
        for query in self.store.list_queries("m"):
            mine = self.queries[query.number]
            state = OPEN if query.state is LEASED else query.state
            assert (state, query.answers) == (mine.state, len(mine.voices)), query.number


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_several_answers_in_any_order(template: Path) -> None:
    SeveralAnswers.template = template
    run_state_machine_as_test(
        SeveralAnswers,
        settings=settings(
            max_examples=settings.default.max_examples * 3 // 10,
            phases=[Phase.explicit, Phase.reuse, Phase.generate],  # to shrink takes minutes
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )
