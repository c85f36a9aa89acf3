"""Streams, predict-then-learn: CPU and accuracy of the default forest beside River's forest of ten trees and its tree.

Run: python bench/streams.py [--quick] [--rows 8000] [--sets electricity,SEA,...] [--peers HT,ARF10,...] [--trees 36]

Six of River's generators, and real streams. Each row is predicted before its label is known; labels come in blocks of
50, one block late, for everybody, that is, 50 to 99 rows after their row. The forest is `ActiveForestClassifier` with
default settings and a seed: ``predict`` for the rows of a block, then ``partial_fit`` with the block whose labels have
arrived. The tree beside it, on real streams, is that of a model of the service with default settings, grown after each
block. Peers have their defaults, MOA's forests thirty trees, and get their rows one by one, since they have no other
interface. All go through the same 1,000 rows in turn, so that the speed of the machine, which varies, is the same for
all. The rows of `drawn` are labelled by a hidden tree over ten numbers; `drawn-2`, `drawn-3` and so on are other rows
of the same tree.
"""

from collections import deque

from _data import is_nominal, real_sets
from _measure import Clock
from _models import TREE, engine_of, rows_of
from _peers import DRAWN, LATE, METHODS, Passed, Stream, draw, following, missing, versions
from _report import Report, Row, parser, reporting
from _streams import drawn_set

from quercus.estimators import ActiveForestClassifier
from quercus.experiments.datasets import DataSet
from quercus.specification.parameters import MEMBERS

TURN = 1_000
REAL = ("electricity", "weather_noaa", "covertype_100k", "airlines_5pct")
STILL = ("Agrawal", "still RBF")
PEERS, REAL_PEERS = ("HT", "ARF10"), ("HT", "ARF10", "MOA-ARF30")
OF_FOREST, OF_TREE = 0.1, 1.5  # targets: shares of the CPU of River's forest, and of its tree without change


class Forest:
    """The estimator that processes a stream."""

    def __init__(self, stream: Stream, trees: int) -> None:
        self.model = ActiveForestClassifier(
            n_estimators=trees,
            classes=list(range(stream.classes)),
            categorical_features=stream.nominal,
            random_state=0,
        )
        self.stream = stream
        self.waiting: deque[slice] = deque()

    def go_through(self, start: int, stop: int) -> Passed:
        values, targets, clock, right = self.stream.values, self.stream.targets, Clock(), 0
        for first in range(start, stop, LATE):
            part = slice(first, min(first + LATE, stop))
            with clock:
                known = hasattr(self.model, "model_")
                found = self.model.predict(values[part]) if known else 0
                if self.waiting:
                    late = self.waiting.popleft()
                    self.model.partial_fit(values[late], targets[late])
            right += int((found == targets[part]).sum())
            self.waiting.append(part)
        return Passed(right, clock.seconds)


class Tree:
    """A model of the service that is a tree."""

    def __init__(self, data: DataSet) -> None:
        self.data, self.engine = data, engine_of(data, TREE)
        self.waiting: deque[slice] = deque()

    def go_through(self, start: int, stop: int) -> Passed:
        clock, right = Clock(), 0
        for first in range(start, stop, LATE):
            part = slice(first, min(first + LATE, stop))
            with clock:
                found = self.engine.grown_trees({}).model.predict(self.data.values[part]).klass
                if self.waiting:
                    late = self.waiting.popleft()
                    self.engine.fold_events([rows_of(self.data, late.start, late.stop)])
            right += int((found == self.data.targets[part]).sum())
            self.waiting.append(part)
        return Passed(right, clock.seconds)


def measure(stream: Stream, data: DataSet | None, peers: list[str], trees: int) -> dict[str, Passed]:
    """Let all process the stream in turn."""
    own = {"forest": Forest(stream, trees)} | ({} if data is None else {"tree": Tree(data)})
    found = {name: Passed() for name in (*own, *peers)}
    with following(stream, peers) as follow:
        for start in range(0, len(stream), TURN):
            stop = min(start + TURN, len(stream))
            for name, learner in own.items():
                found[name].add(**vars(learner.go_through(start, stop)))
            for name in peers:
                found[name].add(**vars(follow(name, start, stop)))
    return found


def add(report: Report, name: str, rows: int, found: dict[str, Passed]) -> None:
    def said(passed: Passed) -> str:
        return f"{passed.cpu_s:.2f} s, {passed.right / rows:.3f}"

    forest, arf, tree = found["forest"], found.get("ARF10"), found.get("HT")
    beside = f"; tree {said(found['tree'])}" if "tree" in found else ""
    ratios, target, reached = [], "", None
    if arf is not None:
        ratios.append(f"{forest.cpu_s / arf.cpu_s:.2f} of ARF's CPU")
        target, reached = f"≤ {OF_FOREST:g} of ARF's CPU", forest.cpu_s <= OF_FOREST * arf.cpu_s
        reached = reached and forest.right >= arf.right
    if tree is not None:
        ratios.append(f"{forest.cpu_s / tree.cpu_s:.1f} of HoeffdingTree's")
        if name in STILL:
            target += f", ≤ {OF_TREE:g} of HoeffdingTree's"
            reached = reached and forest.cpu_s <= OF_TREE * tree.cpu_s
    if arf is not None:
        ratios.append(f"{100 * (forest.right - arf.right) / rows:+.1f} points beside ARF")
        target += ", as accurate as ARF"
    report.add(
        Row(
            f"{name}, {rows:,} rows, labels 50 to 99 rows late: CPU, accuracy",
            f"{said(forest)}{beside}",
            "; ".join(f"{METHODS[each]} {said(passed)}" for each, passed in found.items() if each in METHODS),
            ", ".join(ratios),
            target,
            reached,
        )
    )


def main() -> None:
    read = parser()
    read.add_argument("--rows", type=int)
    read.add_argument("--sets", default=",".join((*DRAWN, *REAL)))
    read.add_argument("--peers")
    read.add_argument(
        "--trees", type=int, default=MEMBERS.default, help="of the forest, in place of the default"
    )
    given = read.parse_args()
    rows, names = given.rows or (2_000 if given.quick else 8_000), given.sets.split(",")
    with reporting("Streams", ("scikit-learn", *versions()), quick=given.quick) as report:
        asked = {False: PEERS, True: REAL_PEERS}
        if given.peers is not None:
            asked = dict.fromkeys(asked, given.peers.split(","))
        for peer in dict.fromkeys((*asked[False], *asked[True])):
            if why := missing(peer):
                report.skip(METHODS[peer], why)
        asked = {real: [peer for peer in peers if not missing(peer)] for real, peers in asked.items()}
        for name in names:
            if name in DRAWN and not asked[False]:
                report.skip(name, missing("HT"))
            elif name in DRAWN:
                add(report, name, rows, measure(draw(name, rows), None, asked[False], given.trees))
            if name.startswith("drawn"):
                sets = [drawn_set(rows, *map(int, name.split("-")[1:]))]
            else:
                sets = real_sets(report, [name] * (name not in DRAWN))
            for data in sets:
                count = min(rows, len(data))
                stream = Stream(
                    data.values[:count], data.targets[:count], is_nominal(data), len(data.classes)
                )
                add(report, name, count, measure(stream, data, asked[True], given.trees))


if __name__ == "__main__":
    main()
