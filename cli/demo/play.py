"""The demo itself: the order of its processes, its waits, and the checks at its end."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from quercus.cli.demo import data, stream, tables
from quercus.cli.demo.classifier import ClassifierState
from quercus.cli.demo.family import LAST_WORDS_S, DemoFailure, ManagedProcess, ProcessGroup
from quercus.cli.demo.screen import DemoState, Screen
from quercus.client.client import Client
from quercus.client.errors import QuercusError
from quercus.client.results import Model, RecentAccuracy, Tree
from quercus.client.specifications import Specification
from quercus.specification.attributes import Numeric

MODEL = "wine"
ALGORITHM = "active-forest"
"""The best of the service's learners from zero labels (docs/learners.md)."""
STORE = "quercus.db"
LABELLERS = {"ann": 1.0, "bob": 1.3}
"""The labellers, and how long each thinks, as a multiple of the delay."""
IDLE_S = 60.0
"""A labeller without queries for this time ends; on a busy machine the first rows arrive late."""
OUTAGE_S = 2.0
"""The server is a process of the demo: if it does not answer for this time, it has ended."""
_PARTS = "quercus.cli.demo"


@dataclass(frozen=True)
class Settings:
    """The settings of a demo.

    Attributes
    ----------
    folder : existing folder for all files.
    seed : seed of the split.
    labeller_delay_s : seconds that a labeller thinks.
    rows_per_s : rows per second that the sensor measures.
    repeats : number of random orders to compare with.
    splits : other splits to compare on.
    timeout_s : longest time for everything.
    """

    folder: Path
    seed: int
    labeller_delay_s: float
    rows_per_s: float
    repeats: int
    splits: int
    timeout_s: float

    @property
    def other_seeds(self) -> list[int]:
        """Seeds of the other splits: the first ones that are not this one's."""
        return [seed for seed in range(self.splits + 1) if seed != self.seed][: self.splits]


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run.

    Attributes
    ----------
    model, tree : model and tree at the end; the tree belongs to the forest, for people to read.
    text, svg : the tree, drawn.
    readings : accuracy of each version of the forest that the classifier met.
    random : (repeats, rows + 1) accuracies of labels spent at random.
    other_splits : accuracies (asked, at random) on other splits.
    answered : answers of each labeller.
    stream : accuracy of each algorithm on the last rows of a changing stream.
    """

    model: Model
    tree: Tree
    text: str
    svg: str
    readings: tuple[ClassifierState, ...]
    random: tuple[tuple[float, ...], ...]
    other_splits: tuple[tuple[float, float], ...]
    answered: dict[str, int]
    stream: Mapping[str, RecentAccuracy] = field(default_factory=dict)


@dataclass
class _ProcessOutput:
    """The output of the processes; filled in by the threads that read them."""

    address: str = ""
    random: list[tuple[float, ...]] = field(default_factory=list)
    other_splits: list[tuple[float, float]] = field(default_factory=list)
    readings: list[ClassifierState] = field(default_factory=list)
    versions: list[ClassifierState] = field(default_factory=list)
    pushed: dict[str, Any] = field(default_factory=dict)

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

    def read_sensor(self, line: str) -> None:
        self.pushed = _json_report(line) or self.pushed


class DemoRun:
    """One run of the demo.

    Parameters
    ----------
    settings : settings of the demo.
    screen : screen that shows it.
    family : runs the processes.
    """

    def __init__(self, settings: Settings, screen: Screen, family: ProcessGroup) -> None:
        self._settings, self._screen, self._family = settings, screen, family
        self._heard = _ProcessOutput()
        self._until = time.monotonic() + settings.timeout_s
        self._split = data.make_split(settings.seed)
        self._labellers: list[ManagedProcess] = []

    def run(self) -> Outcome:
        """Play it to the end.

        Raises
        ------
        DemoFailure
            When anything went wrong.
        """
        split, folder = self._split, self._settings.folder
        data.write_split(split, folder)
        self._screen.print_line(
            f"178 wines: {len(split.ids)} to learn from, all labels unknown, {split.budget} answers to spend; "
            f"{len(split.holdout_classes)} held out"
        )
        server = self._start_server()
        with Client(self._heard.address, timeout_s=self._settings.timeout_s, outage_s=OUTAGE_S) as client:
            try:
                self._create_model(client)
                self._run_learning(client)
                outcome = self._collect_outcome(client)
                self._screen.wait("a stream that changes")
                outcome = replace(outcome, stream=stream.play_stream(client))
                self._screen.end_live()
            except QuercusError as error:
                server.join(LAST_WORDS_S)
                self._family.check()
                raise server.make_failure(f"answered with an error: {error}") from error
        self._family.end_process(server, self._until)
        return outcome

    def _start_comparison(self) -> None:
        budget, repeats = str(self._split.budget), str(self._settings.repeats)
        self._family.start(
            "comparison", f"{_PARTS}.comparison", str(self._settings.folder),
            "--budget", budget, "--random-orders", repeats,
            "--other-seeds", *map(str, self._settings.other_seeds),
            listener=self._heard.read_comparison,
        )  # fmt: skip

    def _start_server(self) -> ManagedProcess:
        server = self._family.start(
            "server", f"{_PARTS}.child", "serve", "--port", "0", "--store", str(self._settings.folder / STORE),
            listener=self._heard.read_server, may_end=False,
        )  # fmt: skip
        self._wait_until(lambda: bool(self._heard.address))
        self._screen.print_line(
            f"server listens on {self._heard.address}, its store is {self._settings.folder / STORE}"
        )
        return server

    def _create_model(self, client: Client) -> None:
        split = self._split
        attributes = [Numeric(name) for name in split.attributes]
        specification = Specification(
            attributes,
            tables.CLASSES,
            budget=split.budget,
            warmup_rows=len(split.ids),
            algorithm={"name": ALGORITHM},
        )
        client.create_model(MODEL, specification)
        self._wait_until(lambda: client.get_model(MODEL).tree_version > 0)
        self._screen.print_line(f"model {MODEL!r} created; starting a sensor, two labellers and a classifier")

    def _run_learning(self, client: Client) -> None:
        """Everybody at work, until all rows are pushed and the labellers have gone home."""
        heard, address, folder = self._heard, self._heard.address, self._settings.folder
        classifier = self._family.start(
            "classifier", f"{_PARTS}.classifier", address, MODEL, str(folder / tables.HOLDOUT),
            listener=heard.read_classifier, may_end=False,
        )  # fmt: skip
        sensor = self._family.start(
            "sensor", f"{_PARTS}.sensor", address, MODEL, str(folder / tables.TRAINING),
            "--rows-per-s", str(self._settings.rows_per_s), listener=heard.read_sensor,
        )  # fmt: skip
        self._labellers = [self._start_labeller(name, factor) for name, factor in LABELLERS.items()]
        self._start_comparison()
        busy = [sensor, *self._labellers]
        started = time.monotonic()
        while not self._family.wait(lambda: all(member.exit_code == 0 for member in busy), self._until):
            self._screen.show(self._current_state(client, time.monotonic() - started))
        classifier.may_end = True
        classifier.send_line("finish")
        self._wait_until(lambda: classifier.exit_code == 0)
        self._screen.show(self._current_state(client, time.monotonic() - started), last=True)

    def _start_labeller(self, name: str, factor: float) -> ManagedProcess:
        return self._family.start(
            name, f"{_PARTS}.child", "label", MODEL, "--server", self._heard.address, "--labeller", name,
            "--truth", str(self._settings.folder / tables.TRUTH), "--id-column", "id", "--class", "class",
            "--delay-s", str(factor * self._settings.labeller_delay_s), "--idle-s", str(IDLE_S),
        )  # fmt: skip

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
        """Check everything, then take the results."""
        model, tree = client.get_model(MODEL), client.tree(MODEL)
        answered = self._check_answers(client, model)
        last = self._heard.readings[-1]
        _require(last.final and last.version == tree.version, "the classifier did not see the last tree")
        _require(last.answers == model.queries_answered, "the classifier did not see the last answer")
        _require(
            tree.as_of == model.sequence_committed,
            f"the tree knows {tree.as_of} events of {model.sequence_committed}",
        )
        _require(not tree.root.is_leaf, "there is no tree: its root does not split")
        self._wait_for_comparison()
        return Outcome(
            model=model,
            tree=tree,
            text=client.render(MODEL, "text"),
            svg=client.render(MODEL, "svg"),
            readings=tuple(self._heard.readings),
            random=tuple(self._heard.random),
            other_splits=tuple(self._heard.other_splits),
            answered=answered,
        )

    def _wait_for_comparison(self) -> None:
        heard, settings = self._heard, self._settings
        self._screen.wait("spending as many labels at random, to compare; and all of it on other splits")
        self._wait_until(
            lambda: (len(heard.random), len(heard.other_splits)) == (settings.repeats, settings.splits)
        )
        self._screen.end_live()

    def _check_answers(self, client: Client, model: Model) -> dict[str, int]:
        """Check that every acknowledged row is stored once, and that every answer is the truth."""
        split, pushed = self._split, self._heard.pushed
        n = len(split.ids)
        _require(
            pushed.get("rows") == pushed.get("stored") == model.instance_count == n,
            f"of {n} rows {pushed.get('rows')} were acknowledged, {model.instance_count} are stored",
        )
        truth = dict(zip(split.ids, split.training_classes, strict=True))
        answers: Counter[str] = Counter()
        for instance in client.instances(MODEL):
            said = instance.history[1:]
            _require(len(said) <= 1, f"{instance.id} was asked {len(said)} times")
            for each in said:
                _require(each.label == truth[instance.id], f"{instance.id} is stored as {each.label!r}")
                answers[each.author] += 1
        total = answers.total()
        _require(
            total == model.queries_answered, f"{total} answers are stored, {model.queries_answered} counted"
        )
        _require(total <= split.budget, f"{total} answers were taken, the budget is {split.budget}")
        _require(total == split.budget, f"the labellers stopped after {total} of {split.budget} answers")
        _require(model.queries_leased == 0, f"{model.queries_leased} queries are still leased")
        return dict(answers)

    def _wait_until(self, done: Callable[[], bool]) -> None:
        while not self._family.wait(done, self._until):
            pass


def _json_report(line: str) -> dict[str, Any]:
    """Return the report in a line; empty for a line that is for people."""
    said: dict[str, Any] = json.loads(line) if line.startswith("{") else {}
    return said


def _require(condition: bool, otherwise: str) -> None:
    if not condition:
        raise DemoFailure(otherwise)
