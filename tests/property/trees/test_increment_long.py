"""Twenty thousand events, and the tree of batch induction at every one of six random moments."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from support import stream_a
from support.batch import Evidence
from support.logs import answer, correction, elsewhere
from support.sameness import Tally, assert_flat, assert_same

from quercus.trees.ask.query import Query
from quercus.trees.growth.stream import Answered, Event, GrowthState, Observed, Refused, Respecified, grow

EVENTS = 20_000  # a row, an answer, a refusal, a correction or a change of the rules is one each
MOMENTS = 6
TALKS = 500  # at random moments: an answer, a refusal, a correction, or a look
MIN_INSTANCES = 80
CHANGES = ({"min_instances": 140}, {"alpha": 0.9}, {"max_depth": 4}, {"max_depth": None})
ARITIES = [stream_a.VALUES] * stream_a.ATTRIBUTES


@dataclass(eq=False)
class Run:
    """The service's life in short: rows in batches of all sizes, and people who talk in between."""

    rows: stream_a.Rows
    rng: np.random.Generator
    evidence: Evidence
    state: GrowthState
    waiting: list[Event] = field(default_factory=list)
    events: int = 0
    tally: Tally = field(default_factory=Tally)

    def take(self, event: Event) -> None:
        self.evidence.take(event)
        self.waiting.append(event)
        self.events += len(event.values) if isinstance(event, Observed) else 1
        self.tally.seen[type(event).__name__] += 1

    def grow(self) -> None:
        self.state = grow(self.state, self.waiting)
        self.waiting = []

    def push_until(self, events: int) -> None:
        while self.events < events:
            count = min(int(self.rng.choice([1, 2, 10, 100, 1000])), events - self.events)
            batch = slice(self.evidence.size, self.evidence.size + count)
            self.take(Observed(self.rows.values[batch], self.rows.contours[batch]))
            if self.rng.random() < 0.3:
                self.grow()

    def talk(self) -> None:
        """Somebody answers, refuses or corrects, whoever asked; or somebody looks."""
        kind = self.rng.choice(["answer", "refuse", "correct", "look"], p=[0.4, 0.15, 0.25, 0.2])
        if kind == "look":
            self.grow()
            assert self.state.flat.count[0] == self.evidence.size
            return
        answered = sorted(self.evidence.closed)
        if kind == "correct" and answered:
            instance = int(self.rng.choice(answered))
            self.take(correction(self.rng, instance, stream_a.CLASSES, int(self.rows.truth[instance])))
        else:
            self.reply(None, refuse=kind == "refuse")

    def reply(self, query: Query | None, refuse: bool) -> None:
        instance = int(self.rng.integers(0, self.evidence.size)) if query is None else query.instance
        asked = elsewhere(self.rng, ARITIES) if query is None else query.asked
        if refuse:
            self.take(Refused(instance, asked))
        else:
            said = answer(self.rng, stream_a.CLASSES, int(self.rows.truth[instance]))
            self.take(Answered(instance, *said, asked))

    def compare(self) -> None:
        """Look, and answer a part of what is asked."""
        self.grow()
        assert_same(self.state, self.evidence, 10, self.tally)
        assert_flat(self.state.flat, self.state.tree)
        for query in self.state.agenda(20):
            if self.rng.random() < 0.7:
                self.reply(query, refuse=self.rng.random() < 0.1)


def moments(rng: np.random.Generator, count: int) -> list[int]:
    return sorted(rng.integers(1, EVENTS, count).tolist())


@pytest.mark.release
@pytest.mark.timeout(300)  # some twenty seconds of CPU, on a machine that may be busy
def test_a_long_run_is_batch_induction() -> None:
    rng = np.random.default_rng(3)
    spec = stream_a.specification(0.8, MIN_INSTANCES, budget=EVENTS)
    run = Run(stream_a.rows(3, EVENTS), rng, Evidence(spec), GrowthState.initial(spec))
    plan = [(at, run.talk) for at in moments(rng, TALKS)]
    plan += [(at, run.compare) for at in [*moments(rng, MOMENTS - 1), EVENTS]]
    for at, change in zip(moments(rng, len(CHANGES)), CHANGES, strict=True):
        plan.append(
            (at, lambda change=change: run.take(Respecified(replace(run.evidence.specification, **change))))
        )
    for at, act in sorted(plan, key=lambda item: item[0]):
        run.push_until(at)
        act()
    seen = run.tally.seen
    assert seen["looks"] == MOMENTS
    assert run.events >= EVENTS
    assert seen["nodes"] > 100 * MOMENTS
    assert min(seen["Answered"], seen["Corrected"], seen["Refused"]) >= 70
    assert seen["queries"] == 10 * MOMENTS
    assert len(run.tally.excused) <= 1, run.tally.excused
