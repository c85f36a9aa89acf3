"""Queries as a state machine: any order of pushes, trees, leases, waits, answers, refusals, releases.

The model below knows only the rules of the contract: it remembers every lease and computes what the store must
say. After each step the store is compared with it.
"""

import random
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule
from support import words
from support.histories import check_history

from quercus.belief.codec import encode
from quercus.belief.label import ClassSet
from quercus.storage import AgendaEntry, AnswerOutcome, EventKind, FailedPrecondition, Idle, QueryState, Store
from quercus.storage.errors import BeyondLog

LABELLERS = ("ann", "bob", "cleo")
DURATIONS = st.sampled_from((5.0, 20.0))


@dataclass
class Lease:
    number: int
    token: str
    labeller: str
    expires_at: float
    released: bool = False


@dataclass
class Query:
    number: int
    instance: int
    position: int
    holder: Lease | None = None
    settled: tuple[str, tuple[object, ...], int, bool] | None = None  # token, said, sequence, conflict
    withdrawn: bool = False
    wanted: bool = True  # by the newest agenda
    not_before: float = 0.0


@dataclass
class World:
    budget: int
    now: float = 1000.0
    committed: int = 0
    grown: int = 0
    version: int = 0
    instances: list[int] = field(default_factory=list)
    queries: dict[int, Query] = field(default_factory=dict)
    skipped: set[tuple[str, int]] = field(default_factory=set)  # labeller, instance

    def state(self, query: Query) -> QueryState:
        if query.settled is not None:
            return QueryState.REFUSED if query.settled[1] == () else QueryState.ANSWERED
        if query.withdrawn:
            return QueryState.WITHDRAWN
        held = query.holder is not None and query.holder.expires_at > self.now
        if not held and not query.wanted:
            return QueryState.WITHDRAWN  # when its lease ended
        return QueryState.LEASED if held else QueryState.OPEN

    def count(self, state: QueryState) -> int:
        return sum(self.state(query) is state for query in self.queries.values())

    @property
    def left(self) -> int:
        return self.budget - self.count(QueryState.ANSWERED) - self.count(QueryState.LEASED)

    def why_not(self, lease: Lease, said: tuple[object, ...] | None) -> str | None:
        """Reason against settling (`said` = label and reliability, () = refusal) or extending (None)."""
        query = self.queries[lease.number]
        if query.settled is not None:
            return "already"
        if lease.released:
            return "given back"
        if self.state(query) is QueryState.WITHDRAWN:
            return "withdrawn"
        open_now = self.state(query) is QueryState.OPEN
        if not open_now and query.holder is not lease:
            return "another labeller"
        if open_now and said is None:
            return "cannot be extended"
        if open_now and said != () and self.left <= 0:
            return "used up"
        return None


class Queries(RuleBasedStateMachine):
    leases: Bundle[Lease] = Bundle("leases")
    template: Path

    @initialize(target=leases, budget=st.integers(1, 4))
    def begin(self, budget: int) -> object:
        return multiple(*self.open_store(budget))

    def open_store(self, budget: int) -> list[Lease]:
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name) / "store.db"
        shutil.copyfile(self.template, path)
        self.world = World(budget)
        self.possible: dict[int, set[bytes]] = {}  # of each instance; pushed as A or B
        self.store = Store.open(
            f"sqlite:///{path}", clock=lambda: self.world.now, steady=lambda: self.world.now
        )
        self.store.create_model("m", b"", budget=budget)
        self.push(4)
        self.grow(self.world.committed, [3, 1, 4, 2])
        return self.take("ann", 1, 5.0, 0) + self.take("bob", 1, 20.0, 0)

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            self.folder.cleanup()

    @rule(count=st.integers(1, 3))
    def push(self, count: int) -> None:
        world = self.world
        ids = [f"i{world.committed + k}" for k in range(1, count + 1)]
        self.store.append_instances("m", ids, np.ones((count, 1)), [encode(ClassSet(3))] * count)
        world.instances += range(world.committed + 1, world.committed + count + 1)
        world.committed += count

    @rule(budget=st.integers(1, 6))
    def respecify(self, budget: int) -> None:
        world = self.world
        if budget < world.budget - world.left:
            with pytest.raises(FailedPrecondition, match="budget cannot become"):
                self.store.respecify("m", b"", budget=budget)
            return
        self.store.respecify("m", b"", budget=budget)
        world.budget = budget
        world.committed += 1

    @rule(data=st.data())
    def publish(self, data: st.DataObject) -> None:
        world = self.world
        as_of = data.draw(
            st.sampled_from((world.committed, world.grown, (world.committed + world.grown) // 2))
        )
        known = [instance for instance in world.instances if instance <= as_of][-6:]
        self.grow(as_of, data.draw(st.lists(st.sampled_from(known), unique=True, min_size=2)))

    def grow(self, as_of: int, agenda: list[int]) -> None:
        world = self.world
        entries = [AgendaEntry(instance, b"%d" % instance, b"") for instance in agenda]
        world.version += 1
        assert self.store.publish("m", as_of=as_of, snapshot=b"", agenda=entries) == world.version
        world.grown = as_of
        live = {}
        for query in world.queries.values():
            state = world.state(query)
            if state is QueryState.OPEN:
                query.withdrawn = query.instance not in agenda
                query.position = agenda.index(query.instance) if not query.withdrawn else query.position
            if state is QueryState.LEASED:
                query.wanted = query.instance in agenda
            if state in (QueryState.OPEN, QueryState.LEASED):
                live[query.instance] = query
        late = {q.instance for q in world.queries.values() if q.settled is not None and q.settled[2] > as_of}
        for position, instance in enumerate(agenda):
            if instance not in live and instance not in late:
                number = len(world.queries) + 1
                world.queries[number] = Query(number, instance, position)

    @rule(
        target=leases,
        labeller=st.sampled_from(LABELLERS),
        limit=st.integers(1, 3),
        duration_s=DURATIONS,
        ahead=st.sampled_from((0, 0, 0, 1)),
    )
    def lease(self, labeller: str, limit: int, duration_s: float, ahead: int) -> object:
        return multiple(*self.take(labeller, limit, duration_s, ahead))

    def take(self, labeller: str, limit: int, duration_s: float, ahead: int) -> list[Lease]:
        world = self.world
        min_sequence = world.grown + ahead
        own = [
            q.settled[2]
            for q in world.queries.values()
            if q.settled and q.holder and q.holder.labeller == labeller
        ]
        waiting = sorted(
            (q for q in world.queries.values() if world.state(q) is QueryState.OPEN),
            key=lambda q: (q.position, q.number),
        )
        open_count = len(waiting)
        waiting = [
            q for q in waiting if q.not_before <= world.now and (labeller, q.instance) not in world.skipped
        ]
        expected = waiting[: max(0, min(limit, world.left))]
        if world.count(QueryState.ANSWERED) >= world.budget:
            idle = Idle.BUDGET_SPENT
        elif world.grown < max([min_sequence, *own]):
            idle = Idle.GROWING
        elif world.left <= 0:
            idle = Idle.ALL_LEASED
        elif expected:
            idle = Idle.NOT_IDLE
        elif open_count:
            idle = Idle.NOT_FOR_YOU
        elif world.count(QueryState.LEASED):
            idle = Idle.ALL_LEASED
        else:
            idle = Idle.GROWING if world.grown < world.committed else Idle.NOTHING_TO_ASK
        if idle is not Idle.NOT_IDLE:
            expected = []
        if min_sequence > world.committed:
            with pytest.raises(BeyondLog, match=f"is {min_sequence}, but the log of model m ends at"):
                self.store.lease("m", labeller, limit, duration_s, min_sequence=min_sequence)
            return []
        got = self.store.lease("m", labeller, limit, duration_s, min_sequence=min_sequence)
        assert (got.idle, [q.number for q in got.queries]) == (idle, [q.number for q in expected])
        given = [Lease(q.number, q.token, labeller, world.now + duration_s) for q in got.queries]
        for lease in given:
            assert world.state(world.queries[lease.number]) is QueryState.OPEN, "two holders"
            world.queries[lease.number].holder = lease
            world.queries[lease.number].not_before = 0.0
        assert got.budget_left == world.left
        return given

    @rule(seconds=st.sampled_from((1.0, 4.0, 5.0, 30.0)))
    def wait(self, seconds: float) -> None:
        self.world.now += seconds

    @rule(
        lease=leases, said=st.sampled_from(((words.A, 1.0), (words.A, 1.0), (words.A, 0.5), (words.C, 1.0)))
    )
    def answer(self, lease: Lease, said: tuple[bytes, float]) -> None:
        label, reliability = said
        possible = self.possible.setdefault(self.world.queries[lease.number].instance, {words.A, words.B})
        conflict = reliability == 1.0 and label not in possible
        call = lambda: words.answer(self.store, "m", lease.number, lease.token, label, reliability)  # noqa: E731
        self._settle(lease, said, conflict, call)

    @rule(lease=leases)
    def refuse(self, lease: Lease) -> None:
        self._settle(lease, (), False, lambda: words.refuse(self.store, "m", lease.number, lease.token))

    def _settle(self, lease, said, conflict, call):
        world = self.world
        query = world.queries[lease.number]
        if query.settled is not None and query.settled[:2] == (lease.token, said):
            assert call() == AnswerOutcome(query.settled[2], True, query.settled[3])
            return
        reason = world.why_not(lease, said)
        if reason is not None:
            with pytest.raises(FailedPrecondition, match=reason):
                call()
            return
        world.committed += 1
        assert call() == AnswerOutcome(world.committed, False, conflict)
        query.settled = (lease.token, said, world.committed, conflict)
        if said and said[1] == 1.0:  # it replaces what was known
            self.possible[query.instance] = {said[0]}
        query.holder = lease

    @rule(lease=leases, duration_s=DURATIONS)
    def extend(self, lease: Lease, duration_s: float) -> None:
        reason = self.world.why_not(lease, None)
        if reason is not None:
            with pytest.raises(FailedPrecondition, match=reason):
                self.store.extend("m", lease.number, lease.token, duration_s)
            return
        longest = max(lease.expires_at, self.world.now + duration_s)
        lease.expires_at = self.store.extend("m", lease.number, lease.token, duration_s)
        assert lease.expires_at == longest

    @rule(lease=leases)
    def release(self, lease: Lease) -> None:
        self._give_back(lease, lambda: self.store.release("m", lease.number, lease.token))

    @rule(lease=leases)
    def skip(self, lease: Lease) -> None:
        if (
            self._give_back(lease, lambda: self.store.skip("m", lease.number, lease.token))
            or not lease.released
        ):
            self.world.skipped.add((lease.labeller, self.world.queries[lease.number].instance))
            lease.released = True

    @rule(lease=leases, delay_s=DURATIONS)
    def postpone(self, lease: Lease, delay_s: float) -> None:
        if self._give_back(lease, lambda: self.store.postpone("m", lease.number, lease.token, delay_s)):
            self.world.queries[lease.number].not_before = self.world.now + delay_s

    def _give_back(self, lease, call) -> bool:
        """True when it was held until now; what has ended already needs no giving back."""
        query = self.world.queries[lease.number]
        if query.settled is not None:
            with pytest.raises(FailedPrecondition, match="already"):
                call()
            lease.released = True  # of no consequence any more
            return False
        held = query.holder is lease and self.world.state(query) is QueryState.LEASED
        call()
        if held:
            lease.released = True
            query.holder = None
            query.withdrawn = not query.wanted
        return held

    @invariant()
    def the_history_is_a_life_of_each_query(self) -> None:
        if hasattr(self, "store"):
            check_history(self.store.query_history("m"))

    @invariant()
    def the_store_says_the_same(self) -> None:
        if not hasattr(self, "store"):
            return
        world, model = self.world, self.store.get_model("m")
        assert model.queries_answered + model.queries_leased <= model.budget == world.budget
        assert (model.sequence_committed, model.sequence_grown) == (world.committed, world.grown)
        counts = (model.queries_open, model.queries_leased, model.queries_answered, model.queries_refused)
        assert counts == tuple(world.count(state) for state in list(QueryState)[:4])
        for query in self.store.list_queries("m"):
            expected = world.queries[query.number]
            assert (query.state, query.instance) == (world.state(expected), expected.instance)
            if query.state in (QueryState.OPEN, QueryState.LEASED):
                assert query.position == expected.position
            if query.state is QueryState.LEASED:
                assert expected.holder is not None
                assert (query.labeller, query.expires_at) == (
                    expected.holder.labeller,
                    expected.holder.expires_at,
                )

    @invariant()
    def the_log_has_no_gaps_and_each_query_settles_once(self) -> None:
        if not hasattr(self, "store"):
            return
        events = self.store.read_events("m")
        assert [event.sequence for event in events] == list(range(1, self.world.committed + 1))
        settled = {q.settled[2]: q for q in self.world.queries.values() if q.settled is not None}
        said = {e.sequence: e for e in events if e.kind in (EventKind.ANSWER, EventKind.REFUSAL)}
        assert said.keys() == settled.keys()
        for sequence, event in said.items():
            query = settled[sequence]
            assert query.holder is not None
            assert (event.instance, event.author) == (query.instance, query.holder.labeller)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_queries_keep_the_contract_in_any_order(template: Path) -> None:
    from hypothesis.stateful import run_state_machine_as_test

    Queries.template = template
    run_state_machine_as_test(
        Queries,
        settings=settings(
            max_examples=settings.default.max_examples // 2,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_long_walks_keep_the_contract(template: Path, seed: int) -> None:
    """Hypothesis prefers few kinds of step; here all come, often enough for the rare cases to meet."""
    Queries.template = template
    chance = random.Random(seed)  # noqa: S311
    machine = Queries()
    try:
        leases = list(machine.open_store(budget=3))
        world = machine.world
        for _ in range(200):
            lease = chance.choice(leases[-8:])
            kind = chance.choices(
                (
                    *("push", "budget", "publish", "lease", "wait", "answer", "refuse", "extend", "release"),
                    *("skip", "postpone"),
                ),
                (2, 2, 6, 9, 4, 4, 1, 2, 2, 1, 2),
            )[0]
            if kind == "push":
                machine.push(2)
            elif kind == "budget":
                machine.respecify(world.budget + chance.choice((-1, 1, 1)))
            elif kind == "publish":
                as_of = chance.choice((world.grown, world.committed, world.committed))
                known = [instance for instance in world.instances if instance <= as_of][-6:]
                machine.grow(as_of, chance.sample(known, min(5, len(known))))
            elif kind == "lease":
                labeller, ahead = chance.choice(LABELLERS), chance.choice((0, 0, 0, 1))
                leases += machine.take(labeller, chance.randint(1, 2), chance.choice((5.0, 20.0)), ahead)
            elif kind == "wait":
                machine.wait(chance.choice((1.0, 4.0, 5.0)))
            elif kind == "answer":
                machine.answer(lease, (chance.choice((words.A, words.A, words.C)), 1.0))
            elif kind == "refuse":
                machine.refuse(lease)
            elif kind == "extend":
                machine.extend(lease, 20.0)
            elif kind == "release":
                machine.release(lease)
            elif kind == "skip":
                machine.skip(lease)
            else:
                machine.postpone(lease, chance.choice((5.0, 20.0)))
            machine.the_history_is_a_life_of_each_query()
            machine.the_store_says_the_same()
            machine.the_log_has_no_gaps_and_each_query_settles_once()
        assert world.count(QueryState.ANSWERED) > 3
    finally:
        machine.teardown()
