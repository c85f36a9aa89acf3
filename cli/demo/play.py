"""The demo itself: the order of its processes, its waits, and its results."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from quercus.cli.demo.data import CLASSES, HOLDOUT, TRAINING, TRUTH, make_split, write_split
from quercus.cli.demo.parts import ClassifierState
from quercus.cli.demo.processes import LAST_WORDS_S, ManagedProcess, ProcessGroup
from quercus.cli.demo.screen import DemoState, Screen
from quercus.client.client import Client
from quercus.client.errors import QuercusError
from quercus.client.results import Model, RecentAccuracy
from quercus.client.specifications import Specification
from quercus.specification.attributes import Numeric

MODEL = "wine"
LEARNER = "active-forest"
"""The learner that is best when no label is known at first (docs/learners.md)."""
STORE = "quercus.db"
LABELLERS = {"ann": 1.0, "bob": 1.3}
"""The labellers, and how long each thinks, as a multiple of the delay."""
IDLE_S = 60.0
"""A labeller stops after this time without queries; on a busy machine the first rows arrive late."""
OUTAGE_S = 2.0
"""The server is a process of the demo: if it is silent for this time, it has ended."""
STREAM_MODELS = {"stream-forest": "active-forest", "stream-tree": "abc45"}
STREAM_CLASSES = ("calm", "alarm")
STREAM_ROWS, STREAM_CHANGE, STREAM_BATCH = 2_000, 1_400, 100


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run.

    Attributes
    ----------
    model : the model at the end.
    text, svg : the tree beside its forest, drawn.
    readings : accuracy of each version of the forest that the classifier met.
    random : (repeats, rows + 1) accuracies of labels spent at random.
    other_splits : accuracies (of queries, at random) on other splits.
    answered : answers of each labeller.
    stream : accuracy of each learner on the last rows of a changing stream.
    """

    model: Model
    text: str
    svg: str
    readings: tuple[ClassifierState, ...]
    random: tuple[tuple[float, ...], ...]
    other_splits: tuple[tuple[float, float], ...]
    answered: dict[str, int]
    stream: dict[str, RecentAccuracy]


@dataclass
class _ProcessOutput:
    """The output of the processes; filled in by the threads that read them."""

    address: str = ""
    random: list[tuple[float, ...]] = field(default_factory=list)
    other_splits: list[tuple[float, float]] = field(default_factory=list)
    readings: list[ClassifierState] = field(default_factory=list)
    versions: list[ClassifierState] = field(default_factory=list)

    def read_server(self, line: str) -> None:
        if line.startswith("listening on "):
            self.address = line.removeprefix("listening on ").strip()

    def read_comparison(self, line: str) -> None:
        said = _json_report(line)
        if "accuracies" in said:
            self.random.append(tuple(said["accuracies"]))
        elif "asked" in said:
            self.other_splits.append((said["asked"], said["random"]))

    def read_classifier(self, line: str) -> None:
        said = _json_report(line)
        if not said:
            return
        reading = ClassifierState(**said)
        if not self.versions or self.versions[-1].version != reading.version:
            self.versions.append(reading)
        self.readings.append(reading)


@dataclass
class DemoRun:
    """One run of the demo.

    Attributes
    ----------
    screen : screen that shows it.
    family : runs the processes.
    folder : existing folder for all files.
    seed : seed of the split.
    labeller_delay_s : seconds that a labeller thinks.
    rows_per_s : rows per second that the sensor measures.
    repeats : number of random orders to compare with.
    splits : other splits to compare on.
    timeout_s : longest time for everything.
    """

    screen: Screen
    family: ProcessGroup
    folder: Path
    seed: int
    labeller_delay_s: float
    rows_per_s: float
    repeats: int
    splits: int
    timeout_s: float

    def __post_init__(self) -> None:
        self._heard = _ProcessOutput()
        self._until = time.monotonic() + self.timeout_s
        self._split = make_split(self.seed)
        self._labellers: list[ManagedProcess] = []

    def run(self) -> Outcome:
        """Play it to the end.

        Raises
        ------
        DemoFailure
            When anything went wrong.
        """
        split = self._split
        write_split(split, self.folder)
        self.screen.print_line(
            f"178 wines: {len(split.ids)} to learn from, all labels unknown, {split.budget} answers to spend; "
            f"{len(split.holdout_classes)} held out"
        )
        server = self.family.start(
            "server", "serve", "--port", "0", "--store", str(self.folder / STORE),
            listener=self._heard.read_server, may_end=False,
        )  # fmt: skip
        self._wait_until(lambda: bool(self._heard.address))
        self.screen.print_line(f"server listens on {self._heard.address}, its store is {self.folder / STORE}")
        with Client(self._heard.address, timeout_s=self.timeout_s, outage_s=OUTAGE_S) as client:
            try:
                self._run_learning(client)
                outcome = self._collect_outcome(client)
            except QuercusError as error:
                server.join(LAST_WORDS_S)
                self.family.check()
                raise server.make_failure(f"answered with an error: {error}") from error
        self.family.end_process(server, self._until)
        return outcome

    def _run_learning(self, client: Client) -> None:
        """Create the model and run all processes until all rows are pushed and the labellers have stopped."""
        split, heard, address = self._split, self._heard, self._heard.address
        specification = Specification(
            [Numeric(name) for name in split.attributes],
            CLASSES,
            budget=split.budget,
            warmup_rows=len(split.ids),
            learner={"name": LEARNER},
        )
        client.create_model(MODEL, specification)
        self._wait_until(lambda: client.get_model(MODEL).tree_version > 0)
        self.screen.print_line(f"model {MODEL!r} created; starting a sensor, two labellers and a classifier")
        classifier = self.family.start(
            "classifier", "classifier", address, MODEL, str(self.folder / HOLDOUT),
            listener=heard.read_classifier, may_end=False,
        )  # fmt: skip
        sensor = self.family.start(
            "sensor", "sensor", address, MODEL, str(self.folder / TRAINING), str(self.rows_per_s)
        )
        self._labellers = [
            self.family.start(
                name, "label", MODEL, "--server", address, "--labeller", name,
                "--truth", str(self.folder / TRUTH), "--id-column", "id", "--class", "class",
                "--delay-s", str(factor * self.labeller_delay_s), "--idle-s", str(IDLE_S),
            )
            for name, factor in LABELLERS.items()
        ]  # fmt: skip
        others = [seed for seed in range(self.splits + 1) if seed != self.seed][: self.splits]
        self.family.start(
            "comparison", "comparison", *map(str, (self.seed, split.budget, self.repeats, *others)),
            listener=heard.read_comparison,
        )  # fmt: skip
        busy = [sensor, *self._labellers]
        started = time.monotonic()
        while not self.family.wait(lambda: all(member.exit_code == 0 for member in busy), self._until):
            self.screen.show(self._current_state(client, time.monotonic() - started))
        classifier.may_end = True
        classifier.send_line("finish")
        self._wait_until(lambda: classifier.exit_code == 0)
        self.screen.show(self._current_state(client, time.monotonic() - started), last=True)

    def _current_state(self, client: Client, seconds: float) -> DemoState:
        queries = list(client.list_queries(MODEL, ["leased", "answered"]))
        leased = {query.labeller: query for query in queries if query.state == "leased"}
        return DemoState(
            seconds=seconds,
            model=client.get_model(MODEL),
            tree=client.tree(MODEL),
            rows=len(self._split.ids),
            thinking={name: leased.get(name) for name in LABELLERS},
            answered=Counter(query.labeller for query in queries if query.state == "answered"),
            gone_home=[member.name for member in self._labellers if member.exit_code == 0],
            readings=tuple(self._heard.versions),
        )

    def _collect_outcome(self, client: Client) -> Outcome:
        """Wait for the comparison, play the stream, and collect the results."""
        self.screen.wait("comparing with random labels, and on other splits")
        wanted = (self.repeats, self.splits)
        self._wait_until(lambda: (len(self._heard.random), len(self._heard.other_splits)) == wanted)
        self.screen.wait("a stream that changes")
        accuracies = play_stream(client)
        self.screen.end_live()
        return Outcome(
            model=client.get_model(MODEL),
            text=client.render(MODEL, "text"),
            svg=client.render(MODEL, "svg"),
            readings=tuple(self._heard.readings),
            random=tuple(self._heard.random),
            other_splits=tuple(self._heard.other_splits),
            answered=Counter(query.labeller for query in client.list_queries(MODEL, ["answered"])),
            stream=accuracies,
        )

    def _wait_until(self, done: Callable[[], bool]) -> None:
        while not self.family.wait(done, self._until):
            pass


def _json_report(line: str) -> dict[str, Any]:
    """Return the JSON report in a line; empty for a line that is for people."""
    return dict(json.loads(line)) if line.startswith("{") else {}


def play_stream(client: Client) -> dict[str, RecentAccuracy]:
    """Let a forest and a tree learn a stream whose class "calm" becomes "alarm" at row 1,400.

    Rows arrive with their labels, and the trees have learned each batch before the next one arrives. Returns the
    recent accuracy of each learner, as the service measures it: on labels that arrive after their prediction.
    """
    rng = np.random.default_rng(0)
    values = rng.normal(size=(STREAM_ROWS, 2))
    alarm = (values.sum(axis=1) > 0) ^ (np.arange(STREAM_ROWS) >= STREAM_CHANGE)
    classes = [STREAM_CLASSES[int(each)] for each in alarm]
    attributes = [Numeric("temperature"), Numeric("pressure")]
    for model, learner in STREAM_MODELS.items():
        client.create_model(model, Specification(attributes, STREAM_CLASSES, learner={"name": learner}))
    for start in range(0, STREAM_ROWS, STREAM_BATCH):
        batch = slice(start, start + STREAM_BATCH)
        for model in STREAM_MODELS:
            client.push(model, values[batch].tolist(), classes[batch])
        for model in STREAM_MODELS:
            client.wait_grown(model)
    found = {learner: client.get_model(model).accuracy for model, learner in STREAM_MODELS.items()}
    return {name: accuracy for name, accuracy in found.items() if accuracy is not None}
