"""The cache of models in use: their schemas, and their newest trees, ready to classify.

Entries are replaced, never changed, so a request keeps working with the ones it got. They are refreshed when the store
changes, so that classification does not read the store.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from quercus.server.core.changes import ChangeSignal
from quercus.server.wire.errors import Unavailable
from quercus.server.wire.limits import MAX_CACHED_MODELS
from quercus.server.wire.models import specification_of
from quercus.server.wire.schema import ModelSchema
from quercus.server.wire.trees import TreeClassifier
from quercus.server.workers.board import Tally
from quercus.storage import BeyondLog, Change, FailedPrecondition, NotFound, StorageError, Store

_log = logging.getLogger(__name__)
REFRESH_EVERY_S: Final = 0.01
RETRY_S: Final = 0.5
"""Seconds after which a tree that could not be read is read again."""
PAIR_ATTEMPTS: Final = 3
Read = Callable[..., Awaitable[Any]]


class Catalogue:
    """Schemas and classifiers by model.

    Parameters
    ----------
    store : the open store.
    read : runs a function in the threads that read the store.
    changes : the change signal.
    made : number of changes that each worker of the server has made; None if this is the only process.
    """

    def __init__(self, store: Store, read: Read, changes: ChangeSignal, made: Tally | None = None) -> None:
        self._store = store
        self._read = read
        self._changed: dict[str, Change] = {}  # models with a newer tree, by name
        self._due = asyncio.Event()
        changes.add_listener(self._note_changes)
        self._changes = changes
        self._made = Tally() if made is None else made
        self._seen = self._made.elsewhere
        self._caught = 0  # number of the newest change in it
        self._catching_up = asyncio.Lock()
        self._schemas: dict[str, ModelSchema] = {}
        self._classifiers: dict[str, TreeClassifier] = {}

    async def schema(self, model: str) -> ModelSchema:
        """Return the schema of a model; raise ``NotFound`` if there is no such model."""
        if self._made.elsewhere != self._seen:
            await self._catch_up()
        found = self._schemas.get(model)
        return found if found is not None else await self.reload_schema(model)

    async def reload_schema(self, model: str) -> ModelSchema:
        """Read the schema again, because other processes may have added nominal values."""
        schema = await self._read_current(ModelSchema.read, model)
        return self._keep_schema(model, schema)

    async def _read_current(self, function: Callable[[Store, str], Any], model: str) -> Any:
        """Run a read whose result will be cached; repeat it if changes of other workers were noticed meanwhile."""
        while True:
            seen = self._seen
            found = await self._read(function, self._store, model)
            if seen == self._seen:
                return found

    def _keep_schema(self, model: str, schema: ModelSchema) -> ModelSchema:
        """Cache a schema, unless a later one, with more values, attributes or classes, is cached already."""
        known = self._schemas.get(model)
        if known is not None and known.key == schema.key:
            ages = [(each.shapes.extensions, each.nominal_counts) for each in (known, schema)]
            if ages[0] > ages[1]:
                return known
        _keep_newest(self._schemas, model, schema)
        return schema

    async def classifier_and_schema(
        self, model: str, min_sequence: int = 0
    ) -> tuple[TreeClassifier, ModelSchema]:
        """Return the newest classifier of a model and the schema of the same model.

        Raises
        ------
        NotFound
            If there is no such model.
        FailedPrecondition
            If it has no tree yet, or its log does not reach `min_sequence`.
        Unavailable
            If its newest tree is older than `min_sequence`, or the model is replaced repeatedly.
        """
        for _ in range(PAIR_ATTEMPTS):
            if self._made.elsewhere != self._seen:
                await self._catch_up()
            found = self._classifiers.get(model)
            if found is None or found.as_of < min_sequence:
                await self._read(check_reached, self._store, model, min_sequence)
                found = await self._load_classifier(model)
            if found.as_of < min_sequence:
                raise Unavailable(
                    f"the newest tree of {model} is grown up to sequence {found.as_of}, not yet to {min_sequence}"
                )
            schema = await self.schema(model)
            if found.key == schema.key:
                return found, schema
            self.forget_model(model)  # it was deleted, and another has its name
        raise Unavailable(f"model {model} was just replaced by another of its name: send it again")

    async def _catch_up(self) -> None:
        """Read the changes that other workers have made and acknowledged."""
        async with self._catching_up:
            while (made := self._made.elsewhere) != self._seen:
                for change in await self._changes.catch_up(self._read, self._caught):
                    self._schemas.pop(change.name, None)  # it may have learned values
                    self._caught = change.number
                self._seen = made

    def forget_schema(self, model: str) -> None:
        """Forget the schema of a model, which has a newer one; its tree still classifies."""
        self._schemas.pop(model, None)

    def forget_model(self, model: str) -> None:
        """Forget the schema and the tree of a model."""
        self._schemas.pop(model, None)
        self._classifiers.pop(model, None)

    async def reach_tree(self, model: str, key: int, version: int) -> None:
        """Load a tree at least as new as this version, if the model's tree is in use here."""
        found = self._classifiers.get(model)
        if found is not None and found.key == key and found.version < version:
            await self._load_classifier(model)

    async def refresh_forever(self) -> None:
        """Follow the store: load newer trees, and drop deleted models. Runs until cancelled."""
        while True:
            await self._due.wait()
            self._due.clear()
            changed, self._changed = self._changed, {}
            for change in changed.values():
                try:
                    classifier = self._classifiers.get(change.name)
                    if classifier is not None and classifier.key == change.key:
                        await self.reach_tree(change.name, change.key, change.tree_version or 0)
                except (NotFound, FailedPrecondition):
                    self.forget_model(change.name)
                except StorageError as error:
                    _log.warning("cannot refresh model %s: %s", change.name, error)
                    self._changed.setdefault(change.name, change)
                    asyncio.get_running_loop().call_later(RETRY_S, self._due.set)
                except Exception:  # of this model alone: it is read again after its next change
                    _log.exception("cannot refresh model %s", change.name)
            await asyncio.sleep(REFRESH_EVERY_S)  # limits the work; changes are collected meanwhile

    def _note_changes(self, changes: Sequence[Change]) -> None:
        """Forget cached models that were deleted, replaced or extended, and note whose tree must be read again."""
        for change in changes:
            schema, classifier = self._schemas.get(change.name), self._classifiers.get(change.name)
            gone = change.tree_version is None
            for known in (schema, classifier):
                if known is not None and (known.key == change.key) == gone:
                    self.forget_model(change.name)
            if schema is not None and not gone and schema.shapes.text != change.shapes:
                self._schemas.pop(change.name, None)
            if classifier is not None and not gone and classifier.version != change.tree_version:
                self._changed[change.name] = change
                self._due.set()

    async def _load_classifier(self, model: str) -> TreeClassifier:
        """Read the newest tree, and then the schema, which therefore names all values that the tree knows."""
        loaded: TreeClassifier
        loaded, schema = await self._read_current(_load_pair, model)
        self._keep_schema(model, schema)
        known = self._classifiers.get(model)
        if known is not None and known.key == loaded.key and known.version > loaded.version:
            return known
        _keep_newest(self._classifiers, model, loaded)
        return loaded


def check_reached(store: Store, model: str, min_sequence: int) -> None:
    """Raise ``BeyondLog`` if the log of a model ends before `min_sequence`."""
    if min_sequence:
        BeyondLog.check(min_sequence, model, store.get_model(model).sequence_committed)


def _load_pair(store: Store, model: str) -> tuple[TreeClassifier, ModelSchema]:
    record = store.get_model(model)
    if record.tree_version == 0:
        raise FailedPrecondition(f"model {model} has no tree yet: try again in a moment")
    classifier = TreeClassifier.of(record.key, store.snapshot(model), specification_of(record.specification))
    return classifier, ModelSchema.read(store, model)


def _keep_newest(cache: dict[str, Any], model: str, entry: Any) -> None:
    cache.pop(model, None)
    cache[model] = entry
    if len(cache) > MAX_CACHED_MODELS:
        del cache[next(iter(cache))]
