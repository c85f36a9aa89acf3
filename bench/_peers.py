"""Peers that need packages other than ours: River, and MOA's forests by CapyMOA, which wants an older pandas and Java.

They live in an environment of their own, ``.venv-bench``, which ``make bench`` makes. A process of it holds the peers
of one stream and processes its rows on command, so that they can take turns with Quercus; results come back as JSON.
Each row is predicted before its label is known; labels come in blocks of `LATE` rows, one block late. Rows are
converted to the peer's form before the clock starts. CPU time is that of the whole process meanwhile: MOA's includes
Java's compiler and collector, but not the start of Java.
"""

import json
import math
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
PYTHON = ROOT / ".venv-bench" / "bin" / "python"
METHODS = {
    "HT": "River HoeffdingTree",
    "HAT": "River HoeffdingAdaptiveTree",
    "EFDT": "River EFDT",
    "ARF10": "River ARF, 10 trees",
    "MOA-ARF30": "MOA ARF, 30 trees",
    "MOA-SRP30": "MOA SRP, 30 trees",
}
DRAWN = ("SEA", "Agrawal", "moving RBF", "still RBF", "LED with drift", "hyperplane")  # River's generators
LATE = 50


@dataclass(frozen=True, eq=False)
class Stream:
    """Rows in the order of their arrival.

    Parameters
    ----------
    values
        (n, K) numbers, indices of nominal values, NaN for missing.
    targets
        (n,) classes.
    nominal
        (K,) whether an attribute is nominal.
    classes
        Number of classes.
    """

    values: np.ndarray
    targets: np.ndarray
    nominal: np.ndarray
    classes: int

    def __len__(self) -> int:
        return len(self.targets)

    def save(self, file: Path) -> None:
        np.savez(
            file,
            values=self.values,
            targets=self.targets,
            nominal=self.nominal,
            classes=np.array(self.classes),
        )

    @classmethod
    def load(cls, file: Path) -> "Stream":
        found = np.load(file)
        return cls(found["values"], found["targets"], found["nominal"], int(found["classes"]))


@dataclass
class Passed:
    """Number of rows predicted right, and CPU seconds of predicting and learning."""

    right: int = 0
    cpu_s: float = 0.0

    def add(self, right: int, cpu_s: float) -> None:
        self.right += right
        self.cpu_s += cpu_s


def missing(method: str) -> str:
    """Return the reason why a peer cannot run, or nothing."""
    if not PYTHON.exists():
        return f"{PYTHON.parent.parent} is not there: make bench makes it"
    if method.startswith("MOA") and shutil.which("java") is None:
        return "there is no Java: apt-get install --no-install-recommends default-jre-headless"
    return ""


def versions() -> list[str]:
    """Return the packages of the peers' environment, with their versions."""
    if not PYTHON.exists():
        return []
    listing = (
        "import importlib.metadata as m, sys; print(*(f'{p} {m.version(p)}' for p in sys.argv[1:]), sep=',')"
    )
    command = [PYTHON, "-c", listing, "river", "capymoa"]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip().split(",")


def draw(name: str, rows: int) -> Stream:
    """Return rows of one of River's generators."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "stream.npz"
        subprocess.run([PYTHON, __file__, "draw", file, name, str(rows)], check=True)
        return Stream.load(file)


@contextmanager
def following(
    stream: Stream, methods: Sequence[str], late: int = LATE
) -> Iterator[Callable[[str, int, int], Passed]]:
    """Start the process of these peers; yield a function that lets one of them process rows, and returns the result.

    Labels come in blocks of `late` rows, one block late; 0: at once.
    """
    with tempfile.TemporaryDirectory() as folder:
        stream.save(file := Path(folder) / "stream.npz")
        command = [str(part) for part in (PYTHON, __file__, "follow", file, late, *methods)]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

        def told() -> Passed:
            for line in child.stdout:
                if line.startswith("{"):  # Java prints messages too
                    return Passed(**json.loads(line))
            raise SystemExit(f"the peers ended with code {child.wait()}")

        def go_through(method: str, start: int, stop: int) -> Passed:
            child.stdin.write(f"{method} {start} {stop}\n")
            return told()

        try:
            told()
            yield go_through
        finally:
            child.stdin.close()
            child.wait(60)


class Peer:
    """A model that processes a stream."""

    def __init__(self, predict: Callable, learn: Callable, rows: Sequence, targets: Sequence[int]) -> None:
        self._predict, self._learn, self._rows, self._targets = predict, learn, rows, targets
        self._learned = 0

    def go_through(self, start: int, stop: int, late: int) -> Passed:
        """Predict rows, and learn those whose label has arrived."""
        right, began = 0, time.process_time()
        for at in range(start, stop):
            right += self._predict(self._rows[at]) == self._targets[at]
            if (at + 1) % max(1, late) == 0:
                for row in range(self._learned, at + 1 - late):
                    self._learn(self._rows[row], self._targets[row])
                self._learned = max(0, at + 1 - late)
        return Passed(int(right), time.process_time() - began)


def river_peer(method: str, stream: Stream) -> Peer:
    """Return a model of River with default settings, and a seed of 0 if it takes one."""
    from river import forest, tree  # noqa: PLC0415 - of the peers' environment

    model = {
        "HT": tree.HoeffdingTreeClassifier,
        "HAT": lambda: tree.HoeffdingAdaptiveTreeClassifier(seed=0),
        "EFDT": tree.ExtremelyFastDecisionTreeClassifier,
        "ARF10": lambda: forest.ARFClassifier(n_models=10, seed=0),
    }[method]()
    names = [f"x{k}" for k in range(stream.values.shape[1])]
    rows = [
        {
            name: f"v{value:.0f}" if is_name else value
            for name, is_name, value in zip(names, stream.nominal.tolist(), row, strict=True)
            if not math.isnan(value)  # missing ones are left out, as River wants it
        }
        for row in stream.values.tolist()
    ]
    return Peer(model.predict_one, model.learn_one, rows, stream.targets.tolist())


def moa_peer(method: str, stream: Stream) -> Peer:
    """Return thirty trees of MOA, with otherwise default settings and CapyMOA's seeds."""
    from capymoa.classifier import AdaptiveRandomForestClassifier, StreamingRandomPatches  # noqa: PLC0415
    from capymoa.core import LabeledInstance  # noqa: PLC0415
    from capymoa.stream import Schema  # noqa: PLC0415

    names = [f"x{k}" for k in range(stream.values.shape[1])]
    kinds = {
        name: [f"v{value}" for value in range(int(np.nanmax(column)) + 1)]
        for name, column, is_name in zip(names, stream.values.T, stream.nominal, strict=True)
        if is_name
    }
    frame = {"its class": [f"c{klass}" for klass in range(stream.classes)]}
    schema = Schema.from_custom([*names, "its class"], "its class", kinds | frame, "stream")
    make = {"MOA-ARF30": AdaptiveRandomForestClassifier, "MOA-SRP30": StreamingRandomPatches}[method]
    model, targets = make(schema, ensemble_size=30), stream.targets.tolist()
    rows = [
        LabeledInstance.from_array(schema, row, klass)
        for row, klass in zip(stream.values, targets, strict=True)
    ]
    return Peer(model.predict, lambda row, _: model.train(row), rows, targets)


def generator(name: str, rows: int) -> Iterator:
    """Yield rows of River's generators: two are made to change, two change by themselves, two do not change."""
    from river.datasets import synth  # noqa: PLC0415 - of the peers' environment

    quarter, half = -(-rows // 4), -(-rows // 2)
    clouds = {"seed_model": 0, "seed_sample": 0, "n_classes": 5, "n_features": 10, "n_centroids": 50}
    idle = {"noise_percentage": 0.1, "irrelevant_features": True}
    makers: dict[str, Callable[[], Iterator]] = {
        "SEA": lambda: chain.from_iterable(  # another threshold in each quarter
            synth.SEA(variant=variant, noise=0.1, seed=variant).take(quarter) for variant in range(4)
        ),
        "Agrawal": lambda: synth.Agrawal(classification_function=4, seed=0, perturbation=0.05).take(rows),
        "moving RBF": lambda: synth.RandomRBFDrift(**clouds, change_speed=0.001).take(rows),
        "still RBF": lambda: synth.RandomRBF(**clouds).take(rows),
        "LED with drift": lambda: (
            chain.from_iterable(  # four of seven attributes are replaced in the second half
                synth.LEDDrift(**idle, seed=drifted, n_drift_features=drifted).take(half)
                for drifted in (0, 4)
            )
        ),
        "hyperplane": lambda: synth.Hyperplane(
            seed=0, n_features=10, n_drift_features=5, mag_change=0.001
        ).take(rows),
    }
    return makers[name]()


def main() -> None:
    """Run in the peers' environment: draw a stream, or process one by commands, one per line."""
    what, file, *arguments = sys.argv[1:]
    if what == "draw":
        name, rows = arguments[0], int(arguments[1])
        pairs = list(generator(name, rows))
        values = np.array([list(row.values()) for row, _ in pairs], dtype=np.float64)
        targets = np.array([int(label) for _, label in pairs])
        named = np.zeros(values.shape[1], bool)
        Stream(values, targets, named, int(targets.max()) + 1).save(Path(file))
        return
    stream = Stream.load(Path(file))
    late, methods = int(arguments[0]), arguments[1:]
    peers = {
        method: moa_peer(method, stream) if method.startswith("MOA") else river_peer(method, stream)
        for method in methods
    }
    print(json.dumps(vars(Passed())), flush=True)
    for line in sys.stdin:
        method, start, stop = line.split()
        print(json.dumps(vars(peers[method].go_through(int(start), int(stop), late))), flush=True)


if __name__ == "__main__":
    main()
