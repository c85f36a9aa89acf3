"""Label Studio's machine-learning backend: predictions for its tasks, and its annotations as statements.

Tasks are rows that the model has already: a field of their data holds the id. A prediction chooses the classes that
none dominates, and its score is the place of the row on the agenda, so that sorting by score, lowest first, shows the
rows first whose labels settle most.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from quercus.belief.errors import shown
from quercus.client.aio import Client
from quercus.client.answers import Statement
from quercus.client.bridges.label_studio_tasks import (
    BadTaskError,
    Control,
    choices_of,
    fields_of,
    item_of,
    labeller_of,
    read_control,
)
from quercus.client.errors import FailedPrecondition, NotFound
from quercus.client.results import Instance, Model

MAX_TASKS: Final = 2_000
"""Most tasks of one request."""
MAX_ROWS_AT_ONCE: Final = 32
"""Rows per request to the server."""
NOT_ASKED: Final = 1.0
"""Score of a row that is not on the agenda; rows on it have a lower score."""
ANNOTATION_ACTIONS: Final = frozenset({"ANNOTATION_CREATED", "ANNOTATIONS_CREATED", "ANNOTATION_UPDATED"})
"""Events that report a label of a row; others are ignored."""


@dataclass(frozen=True)
class TaskFormat:
    """The format of tasks and annotations.

    Attributes
    ----------
    id_field
        The field of a task's data that holds the id of the row; if the data lack it, the field of the task.
    question
        Name of the question, if a project has several.
    labeller
        Name under which answers are stated; empty: the name of the person who gave them, which needs the role operator.
    """

    id_field: str = "id"
    question: str = ""
    labeller: str = ""


class LabelStudioBridge:
    """Answers the requests of Label Studio to a machine-learning backend.

    Parameters
    ----------
    reading
        The client for reading: it does not wait for an unreachable server.
    stating
        The client for statements: it waits, because Label Studio sends an answer once.
    model
        Name of the model.
    form
        The format of tasks.
    """

    def __init__(self, reading: Client, stating: Client, model: str, form: TaskFormat) -> None:
        self._reading, self._stating = reading, stating
        self._model, self._form = model, form
        self._order = asyncio.Lock()  # two answers about a row are stated in the order in which they came
        self._rows = asyncio.Semaphore(MAX_ROWS_AT_ONCE)

    async def health(self) -> str:
        """Return the version of the model; fails if the server is unreachable, or there is no such model."""
        return _version_name(await self._reading.get_model(self._model))

    async def setup(self, config: str) -> str:
        """Return the version of the model, if the labelling configuration fits it.

        Raises
        ------
        BadTaskError
            When the configuration does not offer its classes.
        """
        model = await self._reading.get_model(self._model)
        self._read_control(config, model)
        return _version_name(model)

    def _read_control(self, config: str, model: Model) -> Control:
        return read_control(config, model.specification.classes, self._form.question)

    async def predict(self, tasks: Sequence[Mapping[str, Any]], config: str) -> list[dict[str, Any]]:
        """Return a prediction for each task; one without choices if the task cannot be predicted.

        Raises
        ------
        BadTaskError
            When there are too many, or the configuration does not offer the classes.
        """
        if len(tasks) > MAX_TASKS:
            raise BadTaskError(f"tasks: are {len(tasks):,}, may be {MAX_TASKS:,}")
        model = await self._reading.get_model(self._model)
        control = self._read_control(config, model)
        rows = await asyncio.gather(*(self._find_row(self._item_id(each)) for each in tasks))
        chosen = await self._label_sets(model, rows)
        scores = await self._agenda_scores()
        version = _version_name(model)
        return [
            {
                "result": control.prediction_result(classes),
                "score": NOT_ASKED if row is None else scores.get(row.id, NOT_ASKED),
                "model_version": version,
            }
            for row, classes in zip(rows, chosen, strict=True)
        ]

    def _item_id(self, task: Mapping[str, Any]) -> str | None:
        return item_of((fields_of(task.get("data")), task), self._form.id_field)

    async def _find_row(self, item: str | None) -> Instance | None:
        if item is None:
            return None
        async with self._rows:
            try:
                return await self._reading.get_instance(self._model, item)
            except NotFound:
                return None

    async def _label_sets(self, model: Model, rows: Sequence[Instance | None]) -> Iterable[Sequence[str]]:
        """Return the classes that none dominates, for each row; none if the model withholds its belief."""
        presentation = model.specification.presentation
        known = [row for row in rows if row is not None]
        if not known or (presentation is not None and "belief" in presentation.withheld):
            return [()] * len(rows)
        try:
            predictions = await self._reading.classify(self._model, [row.values for row in known])
        except FailedPrecondition:  # there is no tree yet
            return [()] * len(rows)
        sets = iter([predictions.label_set(row) for row in range(len(predictions))])
        everything = set(model.specification.classes)
        chosen = [() if row is None else next(sets) for row in rows]
        return [() if set(each) == everything else each for each in chosen]  # that would say nothing

    async def _agenda_scores(self) -> dict[str, float]:
        """Return a score in (0, 1) for each row on the agenda; the first query has the lowest."""
        asked = [each async for each in self._reading.list_queries(self._model, ["open", "leased"])]
        return {each.instance: (each.place or len(asked)) / (len(asked) + 1) for each in asked}

    async def state_annotations(self, event: Mapping[str, Any]) -> int:
        """State the labels of an event of Label Studio; return the number of stored statements.

        Raises
        ------
        BadTaskError
            When an annotation cannot be read.
        QuercusError
            When the server does not take it.
        """
        action = event.get("action")
        if not isinstance(action, str) or action not in ANNOTATION_ACTIONS:
            return 0
        annotations, tasks = _as_list(event.get("annotation")), _as_list(event.get("task"))
        if len(annotations) > MAX_TASKS:
            raise BadTaskError(f"annotation: are {len(annotations):,}, may be {MAX_TASKS:,}")
        by_number = {str(task.get("id")): task for task in tasks}
        statements = []
        for annotation in annotations:
            task = by_number.get(str(annotation.get("task"))) or (tasks[0] if len(tasks) == 1 else {})
            statement = self._statement_of(task, annotation, is_new=action != "ANNOTATION_UPDATED")
            statements += [] if statement is None else [statement]
        if not statements:
            return 0
        async with self._order:
            report = await self._stating.state(self._model, statements)
        return report.stored

    def _statement_of(
        self, task: Mapping[str, Any], annotation: Mapping[str, Any], *, is_new: bool
    ) -> Statement | None:
        where = f"annotation {annotation.get('id')}"
        item = self._item_id(task)
        if item is None:
            raise BadTaskError(f"{where}: its task has no field {shown(self._form.id_field)}")
        labeller = self._form.labeller or labeller_of(annotation)
        if not labeller:
            raise BadTaskError(f"{where}: has no labeller; name one with --labeller")
        try:
            names = choices_of(annotation, self._form.question)
        except BadTaskError as error:
            raise BadTaskError(f"{where}: {error}") from None
        if names is None:  # nothing is chosen any more: the labeller's statement is taken back
            return None if is_new else Statement(item, labeller=labeller, retract=True)
        for name in names:
            if not isinstance(name, str):
                raise BadTaskError(f"{where}: chooses {shown(name)}, must choose names")
        label = names[0] if len(names) == 1 else frozenset(names)
        return Statement(item, label, labeller)


def _version_name(model: Model) -> str:
    """Name the version of predictions: a new tree has a new name, so Label Studio requests them again."""
    return f"{model.name}-{model.tree_version}"


def _as_list(value: object) -> list[dict[str, Any]]:
    return [fields_of(each) for each in value] if isinstance(value, list) else [fields_of(value)]
