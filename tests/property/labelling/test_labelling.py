"""Labelling, against a slow model: after each step the model replays everything that was accepted so far.

The walk drives the pure functions with a log and queries in memory. The model knows nothing of events, lifecycles and
functions: only who said what, by which lease and when. What is known of an instance follows from `support.ledger`.

A gold question is to the model an ordinary query, about an instance of its own that is unknown and that nothing else is
said of: its number is minus that of the query. So all that labellers see of it is what they see of others.
"""

import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from support.ledger import LabellerVoice, Ledger, conflict

from quercus.belief.codec import encode
from quercus.belief.label import ClassSet
from quercus.labelling import answers, statements
from quercus.labelling.adjudication import Adjudication, adjudicate
from quercus.labelling.answers import Amendment, Effects, LabelledInstance, Words
from quercus.labelling.errors import Refused
from quercus.labelling.event import Event, EventKind
from quercus.labelling.gold import GoldScore, Mark, as_known_to, flagged, gold_scores, mark_events
from quercus.labelling.history import known_contour, own_labels
from quercus.labelling.leasing import Idle, Usage, remaining_budget, why_late_answer_is_beyond
from quercus.labelling.lifecycle import (
    NEVER,
    Evict,
    Extend,
    GrantedLease,
    HeldQuery,
    LeaseRecord,
    NoLongerWanted,
    QueryLifecycle,
    QueryState,
    Step,
    Take,
    after_expiry,
    apply_event,
    give_back,
)
from quercus.labelling.policy import Corrections, Policy
from quercus.labelling.statements import Statement

OPEN, LEASED, ANSWERED, REFUSED, WITHDRAWN = QueryState
SIZE, LABELLERS = 3, ("ann", "bob", "cleo", "dora")
PUSHED = dict(enumerate([(1.0, 1.0, 1.0), (1.0, 1.0, 0.0), (0.0, 1.0, 0.0)] * 3, 1))
SETS = [frozenset(each) for each in ((0,), (0,), (1,), (2,), (0, 1), (0, 1, 2))]
STEPS = 200


def data(names: frozenset[int]) -> bytes:
    return encode(ClassSet(sum(1 << k for k in names)))


@dataclass
class Lease:
    """A lease, as the walk remembers it."""

    number: int
    who: str
    token: str
    since: float
    ends: float
    given_up: bool = False
    sequence: int = 0


@dataclass
class Slow:
    """All that was accepted, in order; everything else is worked out from it, again and again."""

    calls: list[tuple] = field(default_factory=list)

    def replay(self, now: float) -> tuple[dict[int, dict], dict[int, Ledger], int]:
        """The queries, the ledgers of the instances, and how many answers were given."""
        queries: dict[int, dict] = {}
        ledgers = defaultdict(Ledger, {instance: Ledger() for instance in PUSHED})
        given = 0

        def returned(query: dict) -> None:
            query["holder"] = ""
            alive = query["wanted"] or ledgers[query["instance"]].query(query["number"]).answers
            query["state"] = OPEN if alive else WITHDRAWN

        for what, number, *rest in [*self.calls, ("now", 0, now)]:
            at = rest[-1]
            for query in queries.values():  # leases end by themselves
                if query["state"] is LEASED and query["ends"] <= at:
                    returned(query)
            query = queries.get(number, {})
            ledger = ledgers[query.get("instance", 0)]
            voices = ledger.query(number) if query else None
            if what == "open":
                queries[number] = {
                    "number": number, "instance": rest[0], "state": OPEN, "holder": "", "wanted": True, "back": NEVER
                }  # fmt: skip
            elif what == "unwanted":
                query["wanted"] = False
                if query["state"] is OPEN and not voices.answers:
                    query["state"] = WITHDRAWN
            elif what == "wanted":
                query["wanted"] = True
            elif what == "lease":
                query |= {"state": LEASED, "holder": rest[0], "ends": rest[1], "back": NEVER}
            elif what == "extend":
                query["ends"] = max(query["ends"], rest[0])
            elif what == "return":
                returned(query)
                query["back"] = rest[0] if query["state"] is OPEN else NEVER
            elif what == "answer":
                who, voice, several, settles, _ = rest
                ledger.answer(number, who, voice, several=several, settles=settles)
                given += 1
                query |= {"state": ANSWERED if settles else OPEN, "holder": "", "back": NEVER}
            elif what == "refuse":
                ledger.refuse(number, rest[0])
                query |= {"state": REFUSED, "holder": "", "back": NEVER}
            elif what == "correct":
                ledger.correct(number, rest[0], rest[1])
            elif what == "undo":
                before, everything = query["state"], rest[0] not in voices.ever
                ledger.undo(number, rest[0])
                stays = before is LEASED or (before is OPEN and query["wanted"])
                if not voices.answers and (everything or not stays):
                    query |= {"state": WITHDRAWN, "holder": "", "back": NEVER}
            elif what == "state":
                ledgers[rest[0]].stated[rest[1]] = rest[2]
            elif what == "retract":
                ledgers[rest[0]].stated.pop(rest[1])
            elif what == "early":
                voices.settled = True
                query["state"] = ANSWERED
        return queries, ledgers, given


class Walk:
    """A model in memory, and random calls about it."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)  # noqa: S311
        self.now, self.policy, self.budget = 0.0, Policy(corrections=Corrections.ANYONE), 10**6
        self.log: list[Event] = []
        for instance, contour in PUSHED.items():
            label = data(frozenset(k for k, value in enumerate(contour) if value))
            source = (b"", label, "source", 1.0, None, False, None, 0.0)
            name = "abcdefghi"[instance - 1]
            self.log.append(Event(instance, EventKind.INSTANCE, instance, name, *source))
        self.lives: dict[int, QueryLifecycle] = {}
        self.instances: dict[int, int] = {}
        self.leases: list[Lease] = []
        self.standing: set[tuple[int, str]] = set()  # who answered a query and did not take it back
        self.counts = Counter[str]()
        self.slow = Slow()
        self.did = Counter[str]()
        self.rows: dict[int, int] = {}  # of the instance of a gold question the one that it is about
        self.marks: dict[int, frozenset[int]] = {}
        self.rulings: dict[
            int, tuple[str, frozenset[int] | None]
        ] = {}  # the last adjudication of each instance
        self.overrulers: set[tuple[int, str]] = set()  # who put an answer into the place of another's

    # The walk's own bookkeeping: the part of a store

    def of(self, instance: int) -> LabelledInstance:
        row = self.rows.get(instance, instance)
        said = [event for event in self.log if event.instance == row]
        if instance in self.rows:
            said = as_known_to("", said, SIZE, self.policy.combination, -instance)
        return LabelledInstance(said, SIZE, self.policy, None, len(self.log), self.now, self.now)

    def held(self, lease: Lease) -> HeldQuery:
        life = after_expiry(self.lives[lease.number], self.now)
        ends = life.ends if life.token == lease.token and life.state is LEASED else lease.ends
        used = bool(lease.sequence) or (lease.number, lease.who) in self.standing
        record = LeaseRecord(lease.token, ends, lease.given_up, used)
        given = GrantedLease(record, lease.who, lease.since, lease.sequence)
        return HeldQuery(lease.number, self.instances[lease.number], b"asked", life, given, "it expired")

    def apply(self, number: int, effects: Effects) -> None:
        assert [event.sequence for event in effects.events] == [
            len(self.log) + place for place in range(1, len(effects.events) + 1)
        ]
        if self.instances[number] in self.rows:
            effects = flagged(effects)
        self.log += effects.events
        self.lives[number] = effects.life
        self.counts.update(answered=effects.answered, refused=effects.refused, conflicts=effects.conflicts)

    def usage(self, who: str) -> Usage:
        lives = [after_expiry(life, self.now) for life in self.lives.values()]
        mine = {lease.token for lease in self.leases if lease.who == who}
        leased = [life for life in lives if life.state is LEASED]
        return Usage(
            self.budget, self.counts["answered"], len(leased), sum(life.token in mine for life in leased)
        )

    def note(self, what: str, number: int, *rest: object) -> None:
        self.slow.calls.append((what, number, *rest, self.now))
        self.did[what] += 1

    def pick(self) -> Lease | None:
        return self.chance.choice(self.leases[-5:]) if self.leases else None

    def ruled(self, instance: int) -> frozenset[int] | None:
        """The label that overrules all others: the mark, else the adjudication that stands."""
        return self.marks.get(instance, self.rulings.get(instance, ("", None))[1])

    def voice(self, names: frozenset[int], reliability: float) -> LabellerVoice:
        return LabellerVoice(len(self.log), names, reliability)

    # The steps

    def publish(self) -> None:
        wanted = {instance for instance in PUSHED if self.chance.random() < 0.6}
        live = {}
        for number, life in self.lives.items():
            life = self.lives[number] = after_expiry(life, self.now)  # noqa: PLW2901
            if life.state not in (OPEN, LEASED) or self.instances[number] in self.rows:
                continue
            live[self.instances[number]] = number
            if self.instances[number] in wanted:
                self.lives[number] = replace(life, wanted=True)
                self.note("wanted", number)
            else:
                self.lives[number] = apply_event(life, NoLongerWanted(), self.now)
                self.note("unwanted", number)
        _, ledgers, _ = self.slow.replay(self.now)
        for instance in sorted(wanted - live.keys()):
            if not ledgers[instance].is_settled and self.ruled(instance) is None:
                number = len(self.lives) + 1
                self.lives[number], self.instances[number] = QueryLifecycle(), instance
                self.note("open", number, instance)

    def lease(self) -> None:
        who = self.chance.choice(LABELLERS)
        queries, ledgers, given = self.slow.replay(self.now)
        leased = sum(query["state"] is LEASED for query in queries.values())
        room = remaining_budget(self.usage(who), self.policy, self.now)
        assert (room.total, room.idle is Idle.NOT_IDLE) == (
            self.budget - given - leased, self.budget > given + leased,
        )  # fmt: skip
        for number, query in queries.items():
            free = query["state"] is OPEN and query["back"] <= self.now
            token, ends = f"t{len(self.leases)}", self.now + 20.0
            if not free:
                with pytest.raises(Refused):
                    apply_event(self.lives[number], Take(token, ends), self.now)
            elif room.mine > 0 and who not in ledgers[query["instance"]].query(number).answers:
                self.lives[number] = apply_event(self.lives[number], Take(token, ends), self.now)
                self.leases.append(Lease(number, who, token, self.now, ends))
                self.note("lease", number, token, ends)
                return

    def answer(self, *, refuses: bool = False) -> None:
        if (lease := self.pick()) is None:
            return
        names, reliability = self.chance.choice(SETS), self.chance.choice((1.0, 0.8, 0.5))
        queries, ledgers, given = self.slow.replay(self.now)
        query, ledger = queries[lease.number], ledgers[queries[lease.number]["instance"]]
        mine = ledger.query(lease.number)
        if refuses and mine.several and mine.answers:
            refuses, names, reliability = False, frozenset(range(SIZE)), 1.0
            words = Words(None)
        else:
            words = Words(None) if refuses else Words(data(names), reliability)
        held, voice = self.held(lease), self.voice(names, reliability)
        left = self.budget - given - sum(each["state"] is LEASED for each in queries.values())
        late = query["state"] is OPEN
        allowed = (
            not lease.sequence and not lease.given_up and lease.who not in mine.answers
            and (late or (query["state"] is LEASED and query["holder"] == lease.token))
        )  # fmt: skip
        spends = given + 1 >= self.budget
        try:
            outcome, effects = answers.answer(held, words, self.of(query["instance"]), spends_budget=spends)
            beyond = (
                why_late_answer_is_beyond(self.usage(lease.who), self.policy, self.now, "")
                if effects and effects.answered and late else None
            )  # fmt: skip
            if beyond:
                raise Refused(beyond)
        except Refused:
            may_answer = allowed and (left > 0 or refuses or not late)
            assert not may_answer
            self.did["refused"] += 1
            return
        if effects is None:
            assert lease.sequence == outcome.sequence
            assert outcome.repeated
            return
        assert allowed
        assert refuses or left > 0 or not late
        lease.sequence = outcome.sequence
        if refuses:
            self.apply(lease.number, effects)
            self.standing.discard((lease.number, lease.who))
            self.note("refuse", lease.number, lease.who)
            return
        several = self.policy.answers_per_query > 1 or mine.several
        voices = [*mine.answers.values(), voice]
        high = several and conflict(voices, SIZE) > self.policy.max_conflict
        wanted = self.policy.answers_per_query
        settles = not several or spends or len(voices) >= wanted * (2 if high else 1)
        assert outcome.settled == settles
        self.apply(lease.number, effects)
        self.standing.add((lease.number, lease.who))
        self.note("answer", lease.number, lease.who, voice, several, settles)
        if spends:
            self.settle_early()

    def settle_early(self) -> None:
        queries, ledgers, _ = self.slow.replay(self.now)
        for number, query in sorted(queries.items()):
            if query["state"] is OPEN and ledgers[query["instance"]].query(number).answers:
                life = after_expiry(self.lives[number], self.now)
                self.apply(number, answers.settle_early(number, b"asked", life, self.of(query["instance"])))
                self.note("early", number)

    def amend(self) -> None:
        if not self.lives:
            return
        number, who = self.chance.choice(list(self.lives)), self.chance.choice(LABELLERS)
        names = self.chance.choice([None, *SETS])
        reliability = self.chance.choice((1.0, 0.5))
        queries, ledgers, _ = self.slow.replay(self.now)
        query = queries[number]
        mine = ledgers[query["instance"]].query(number)
        change = Amendment(who, None if names is None else data(names), reliability)
        voice = None if names is None else self.voice(names, reliability)
        life = after_expiry(self.lives[number], self.now)
        is_own = who in mine.answers or who in mine.ever or mine.refused == who
        try:
            _, effects = answers.amend(number, life, change, self.of(query["instance"]))
        except Refused:
            assert not (query["state"] is ANSWERED and is_own and who in mine.answers), "may correct it"
            assert not (names is None and mine.refused == who), "may take it back"
            self.did["refused"] += 1
            return
        if effects is None:
            return
        assert mine.answers or mine.refused or mine.ever
        self.overrulers |= {(number, who)} if who not in mine.answers and who not in mine.ever else set()
        self.apply(number, effects)
        if voice is None:
            self.standing.discard((number, who))
            self.note("undo", number, who)
        else:
            self.note("correct", number, who, voice)

    def state(self) -> None:
        instance, who = self.chance.choice(list(PUSHED)), self.chance.choice(LABELLERS)
        names, reliability = self.chance.choice([None, *SETS]), self.chance.choice((1.0, 0.5))
        said = Statement("abcdefghi"[instance - 1], who, None if names is None else data(names), reliability)
        of = self.of(instance)
        _, ledgers, _ = self.slow.replay(self.now)
        try:
            plan = statements.plan(
                [said], {said.instance: instance}, {instance: of.said}, self.policy, None, SIZE, len(self.log)
            )
        except Refused:
            assert names is None, "may be stated"
            self.did["refused"] += 1
            return
        events = plan.events(len(self.log), self.now, "")
        self.log += events
        self.counts.update(conflicts=sum(event.conflict for event in plan.joints))
        if not events:
            assert who in ledgers[instance].stated or names is None
            return
        assert [event.kind for event in events] == [EventKind.STATEMENT, EventKind.CORRECTION]
        if names is None:
            self.note("retract", 0, instance, who)
        else:
            self.note("state", 0, instance, who, self.voice(names, reliability))
        for number, life in self.lives.items():
            if self.instances[number] == instance and after_expiry(life, self.now).state in (OPEN, LEASED):
                self.lives[number] = apply_event(life, NoLongerWanted(), self.now)
                self.note("unwanted", number)

    def adjudicate(self) -> None:
        instance = self.chance.choice([*PUSHED, *self.rulings, *self.rulings])
        who, names = self.chance.choice(LABELLERS[:2]), self.chance.choice([None, None, *SETS])
        last = self.rulings.get(instance, ("", None))
        is_labelled = any(
            (what in ("answer", "correct") and self.row_of(number) == instance)
            or (what == "state" and rest[0] == instance)
            for what, number, *rest in self.slow.calls
        )
        given = Adjudication(who, None if names is None else data(names))
        try:
            outcome, events = adjudicate(given, self.of(instance))
        except Refused:
            assert not is_labelled or (names is None and last[1] is None)
            self.did["refused"] += 1
            return
        assert outcome.repeated == (not events) == (last == (who, names))
        if not events:
            return
        assert is_labelled
        assert names is not None or last[1] is not None
        assert [event.kind for event in events] == [EventKind.ADJUDICATION, EventKind.CORRECTION]
        self.log += events
        self.counts.update(conflicts=sum(event.conflict for event in events))
        self.rulings[instance] = who, names
        self.did["adjudicate" if names is not None else "retreat"] += 1
        for number, life in self.lives.items():
            if self.instances[number] == instance and after_expiry(life, self.now).state in (OPEN, LEASED):
                self.lives[number] = apply_event(life, NoLongerWanted(), self.now)
                self.note("unwanted", number)

    def row_of(self, number: int) -> int:
        """The row that a query is about, also if it is a gold question."""
        return self.rows.get(self.instances[number], self.instances[number])

    def mark(self) -> None:
        instance, names = self.chance.choice(list(PUSHED)), self.chance.choice([None, *SETS[:5]])
        given = Mark("abcdefghi"[instance - 1], None if names is None else data(names))
        try:
            events = mark_events(given, "lead", self.of(instance))
        except Refused:
            assert names is None
            assert instance not in self.marks
            return
        assert bool(events) == (self.marks.get(instance) != names)
        self.log += events
        self.counts.update(conflicts=sum(event.conflict for event in events))
        self.marks.pop(instance, None)
        if names is not None:
            self.marks[instance] = names
        self.did["mark"] += 1
        for (
            number,
            life,
        ) in self.lives.items():  # a gold question does not ask any more, another not about this one
            is_gold = self.rows.get(self.instances[number]) == instance
            gone = is_gold if names is None else self.instances[number] == instance
            if events and gone and after_expiry(life, self.now).state in (OPEN, LEASED):
                self.lives[number] = apply_event(life, NoLongerWanted(), self.now)
                self.note("unwanted", number)

    def ask_gold(self) -> None:
        asked = {
            self.rows.get(self.instances[number], self.instances[number])
            for number, life in self.lives.items()
            if after_expiry(life, self.now).state in (OPEN, LEASED)
        }
        if free := sorted(self.marks.keys() - asked):
            number = len(self.lives) + 1
            self.lives[number], self.instances[number] = QueryLifecycle(), -number
            self.rows[-number] = self.chance.choice(free)
            self.note("open", number, -number)
            self.did["gold"] += 1

    def back(self) -> None:
        if (lease := self.pick()) is None:
            return
        query = self.slow.replay(self.now)[0][lease.number]
        how = self.chance.choice((Step.RELEASED, Step.SKIPPED, Step.POSTPONED))
        until = self.now + 30.0 if how is Step.POSTPONED else NEVER
        try:
            life, note = give_back(self.held(lease), how, until, "", self.now)
        except Refused:
            assert query["state"] in (ANSWERED, REFUSED)
            return
        mine = query["state"] is LEASED and query["holder"] == lease.token
        self.lives[lease.number] = life
        lease.given_up |= note is not None
        assert mine <= (note is not None)
        if mine:
            self.note("return", lease.number, until)

    def extend(self) -> None:
        if (lease := self.pick()) is None:
            return
        query, ends = self.slow.replay(self.now)[0][lease.number], self.now + 25.0
        mine = query["state"] is LEASED and query["holder"] == lease.token
        held = self.held(lease)
        if not mine:
            with pytest.raises(Refused):
                held.after(Extend(held.given.lease, ends), self.now)
            return
        self.lives[lease.number] = held.after(Extend(held.given.lease, ends), self.now)
        self.note("extend", lease.number, ends)

    def evict(self) -> None:
        if not self.lives:
            return
        queries, _, _ = self.slow.replay(self.now)
        leased = [number for number, query in queries.items() if query["state"] is LEASED]
        number = self.chance.choice(leased or list(self.lives))
        query = queries[number]
        if not leased:
            with pytest.raises(Refused):
                apply_event(self.lives[number], Evict(), self.now)
            return
        self.lives[number] = apply_event(self.lives[number], Evict(), self.now)
        next(lease for lease in self.leases if lease.token == query["holder"]).given_up = True
        self.note("return", number, NEVER)
        self.did["evict"] += 1

    def change(self) -> None:
        kind = self.chance.choice(("policy", "budget", "budget"))
        if kind == "policy":
            wanted, bound = self.chance.choice((1, 2, 2, 3)), self.chance.choice((0.5, 1.0))
            self.policy = replace(self.policy, answers_per_query=wanted, max_conflict=bound)
            return
        queries, _, given = self.slow.replay(self.now)
        used = given + sum(query["state"] is LEASED for query in queries.values())
        self.budget = self.chance.choice((used, used + 2, 10**6, 10**6))
        if self.budget == given:
            self.settle_early()

    def check(self) -> None:
        queries, ledgers, given = self.slow.replay(self.now)
        assert self.counts["answered"] == given
        assert self.counts["refused"] == sum(query["state"] is REFUSED for query in queries.values())
        assert self.counts["conflicts"] == sum(
            event.conflict for event in self.log if event.kind is not EventKind.OPINION
        )
        for number, life in self.lives.items():
            life, query = after_expiry(life, self.now), queries[number]  # noqa: PLW2901
            voices = ledgers[query["instance"]].query(number)
            assert (life.state, life.answers) == (query["state"], len(voices.answers)), number
            assert (life.state is LEASED) == bool(query["holder"]), number
        for instance, pushed in PUSHED.items():
            known = known_contour(self.of(instance).said, SIZE)
            told = ledgers[instance].contour(pushed)
            if (ruled := self.ruled(instance)) is not None:
                told = [float(k in ruled) for k in range(SIZE)]
                told = (
                    [a * b for a, b in zip(told, pushed, strict=True)]
                    if any(map(min, told, pushed))
                    else told
                )
            np.testing.assert_allclose(known, told, atol=1e-9)
        for instance, row in self.rows.items():  # what a labeller sees of a gold question
            pushed = PUSHED[row] if sum(PUSHED[row]) > 1 else (1.0,) * SIZE
            known = known_contour(self.of(instance).said, SIZE)
            np.testing.assert_allclose(known, ledgers[instance].contour(pushed), atol=1e-9)
        self.check_scores(ledgers)

    def check_scores(self, ledgers: dict[int, Ledger]) -> None:
        newest: dict[tuple[str, int], LabellerVoice] = {}
        for instance, row in self.rows.items():
            query = ledgers[instance].query(-instance)
            if row not in self.marks or query.overruled is not None:
                continue
            for who, voice in query.answers.items():
                before = newest.get((who, row))
                is_own = (-instance, who) not in self.overrulers
                if is_own and (before is None or voice.at > before.at):
                    newest[who, row] = voice
        scores: dict[str, GoldScore] = {}
        for (who, row), voice in newest.items():
            if len(voice.names) == SIZE:
                continue
            right = voice.names <= self.marks[row]
            before = scores.get(who, GoldScore())
            scores[who] = GoldScore(before.answered + 1, before.right + right)
        assert gold_scores([self.of(row).said for row in PUSHED], SIZE) == scores


@pytest.mark.parametrize("seed", range(5))
def test_labelling_is_what_the_slow_model_says(seed: int) -> None:
    walk = Walk(seed)
    steps = (
        [walk.publish] * 3
        + [walk.lease] * 6
        + [walk.answer] * 7
        + [walk.amend] * 3
        + [walk.back, walk.extend]
    )
    steps += [walk.state, walk.change, walk.change, lambda: walk.answer(refuses=True)]
    steps += [walk.mark, walk.ask_gold, walk.ask_gold, walk.adjudicate, walk.adjudicate, walk.evict]
    for _ in range(STEPS):
        if walk.chance.random() < 0.15:
            walk.now += walk.chance.choice((5.0, 25.0))
        walk.chance.choice(steps)()
        walk.check()
    walk_kinds = {"open", "lease", "answer", "refused", "mark", "gold", "adjudicate", "evict"}
    assert walk_kinds <= walk.did.keys()


def test_who_corrects_another_twice_has_not_answered() -> None:
    walk = Walk(0)
    walk.log += mark_events(Mark("a", data(frozenset({0}))), "lead", walk.of(1))
    for kind, who in (
        (EventKind.ANSWER, "ann"),
        (EventKind.CORRECTION, "bob"),
        (EventKind.CORRECTION, "bob"),
    ):
        label = data(frozenset({len(walk.log) % 3}))
        walk.log.append(walk.of(1).event(1, kind, label, who, query=1, gold=True))
    assert gold_scores([walk.of(1).said], SIZE) == {}


def test_an_answer_can_be_corrected_any_number_of_times() -> None:
    walk = Walk(0)
    for kind in (EventKind.ANSWER, *[EventKind.CORRECTION] * 2000):
        label = data(frozenset({len(walk.log) % 3}))
        walk.log.append(walk.of(1).event(1, kind, label, "ann", query=1))
    (label_of_ann,) = own_labels(walk.of(1).said)
    assert label_of_ann.event is walk.log[-1]
