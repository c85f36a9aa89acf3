"""The engine that grows by increments is batch induction of the same evidence, however it came and was looked at."""

from collections.abc import Callable
from copy import deepcopy

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.batch import Evidence
from support.logs import ALPHAS, Writer, world
from support.sameness import Tally, assert_flat, assert_same, assert_same_evidence

from quercus.belief.errors import InvalidInput
from quercus.trees.growth.incremental.growing import SMALL
from quercus.trees.growth.stream import Event, GrowthState, grow

MANY_CASES = 120
TOLERATED = 0.01  # of all looks may end in a tie that rounding decides


class Play:
    """A state and the evidence it was given; events wait until they are grown from, several at once."""

    def __init__(
        self,
        classes: int,
        arities: list[int],
        alpha: float,
        seed: int,
        small: int,
        tally: Tally,
        *,
        cut: bool,
    ) -> None:
        self.world = world(classes, arities, alpha, seed, cut=cut)
        self.evidence = Evidence(self.world.specification)
        self.state = GrowthState(self.world.specification, small)
        self.waiting: list[Event] = []
        self.log: list[Event] = []
        self.failed = False
        self.tally = tally

    def step(self, kind: str, number: int) -> None:
        rng = np.random.default_rng(number)
        write = Writer(self.world, self.evidence, rng)
        self.tally.seen[kind] += 1
        match kind:
            case "push":
                self.take(write.observed())
            case "respecify":
                self.take(write.respecified())
            case "answer" if self.evidence.size:
                self.take(write.answered(None))
            case "correct" if self.evidence.size:
                self.take(write.corrected())
            case "converse":
                self.converse(write, rng)
            case "grow":
                self.grow()
            case "look":
                self.look(int(rng.choice([0, 1, 3, 60])))
            case "peek":
                self.peek(rng)
            case "fail":
                self.fail(rng)

    def take(self, event: Event) -> None:
        self.evidence.take(event)
        self.waiting.append(event)
        self.log.append(event)
        self.tally.seen[type(event).__name__] += 1

    def grow(self) -> None:
        self.state = grow(self.state, self.waiting)
        self.waiting = []

    def converse(self, write: Writer, rng: np.random.Generator) -> None:
        """Some of what is asked for is answered or refused, in whatever order."""
        self.grow()
        queries = self.state.agenda(int(rng.integers(1, 6)))
        for at in rng.permutation(len(queries))[: int(rng.integers(1, 4))].tolist():
            self.take(write.answered(queries[at]))

    def look(self, limit: int) -> None:
        self.grow()
        assert_same(self.state, self.evidence, limit, self.tally)
        assert_flat(self.state.flat, self.state.tree)

    def replay(self) -> None:
        """The division of the log into calls, and looks in between, leave no trace at all.

        A lot that was not applied may have left contours in the table, and so other numbers in the last digits.
        """
        if self.failed:
            return
        again = grow(GrowthState.initial(self.world.specification), self.log)
        assert again.tree == self.state.tree
        assert again.agenda(60) == self.state.agenda(60)

    def peek(self, rng: np.random.Generator) -> None:
        """A look makes the state do some of its pending work: later results are the same."""
        self.grow()
        look: list[Callable[[], object]] = [
            lambda: self.state.tree,
            lambda: self.state.flat,
            lambda: self.state.agenda(1),
            lambda: self.state.agenda(5),
            lambda: self.state.branch_names,
        ]
        for at in rng.integers(0, len(look), 2):
            look[at]()

    def fail(self, rng: np.random.Generator) -> None:
        """An event that does not fit, in the middle of others that do: nothing of the lot is applied."""
        self.grow()
        aside = deepcopy(self.evidence)
        write = Writer(self.world, aside, rng)
        lot: list[Event] = []
        wrong = int(rng.integers(0, 4))
        for at in range(wrong + 2):
            if at == wrong:
                lot.append(write.unfit())
                continue
            kinds = [write.observed, write.respecified]
            if aside.size:
                kinds += [lambda: write.answered(None), write.corrected]
            lot.append(kinds[int(rng.integers(0, len(kinds)))]())
            aside.take(lot[-1])
        self.failed = True
        with pytest.raises(InvalidInput):
            grow(self.state, lot)
        assert_same_evidence(self.state, self.evidence, self.evidence.induce())


ARITIES = (2, 3, 2, 3, 2, 1, 4, 5)
COVERED: dict[str, float] = {  # at least so often a case
    "looks": 1,
    "nodes": 3,
    "queries": 1,
    "undecided": 1 / 2,
    "exact": 1,
    "dominated": 1 / 4,
    "Answered": 1 / 2,
    "Refused": 1 / 4,
    "Corrected": 1 / 4,
    "Respecified": 1 / 2,
    "fail": 1 / 2,
}
SMALLS = (0, 2, 5, 15, SMALL)  # nodes of fewer rows are grown again rather than updated
KINDS = (
    "push",
    "push",
    "push",
    "answer",
    "converse",
    "converse",
    "correct",
    "respecify",
    "grow",
    "look",
    "peek",
    "fail",
)


@pytest.mark.timeout(300)  # some twenty seconds of CPU, on a machine that may be busy
@pytest.mark.parametrize(
    ("cut", "cases"),
    [
        pytest.param(True, 2 * settings.default.max_examples, id="at cuts"),
        pytest.param(False, 2 * settings.default.max_examples, id="by code", marks=pytest.mark.slow),
    ],
)
def test_any_interleaving_is_batch_induction(cut: bool, cases: int) -> None:
    tally = Tally()

    @settings(
        max_examples=cases,
        derandomize=True,  # the same cases where the same modules are loaded: Hypothesis draws constants from them
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        database=None,
    )
    @given(
        classes=st.integers(2, 4),
        arities=st.lists(st.sampled_from(ARITIES), min_size=1, max_size=5),
        alpha=st.sampled_from(ALPHAS),
        seed=st.integers(0, 2**16),
        small=st.sampled_from(SMALLS),
        steps=st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 2**16)), min_size=12, max_size=40),
    )
    def check(
        classes: int, arities: list[int], alpha: float, seed: int, small: int, steps: list[tuple[str, int]]
    ) -> None:
        play = Play(classes, arities, alpha, seed, small, tally, cut=cut)
        for kind, number in steps:
            play.step(kind, number)
        play.look(60)
        play.replay()

    check()
    for what, least in (COVERED | {"thresholds": int(cut)}).items():
        few = least * cases * (1.0 if cases >= MANY_CASES else 0.5)  # of fewer cases the shares vary more
        assert tally.seen[what] >= few, f"{what}: only {tally.seen[what]} in all cases"
    assert len(tally.excused) <= TOLERATED * tally.seen["looks"], tally.excused
