"""Models with damaged data: lists and queries about any model leave them out, and the status names them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from quercus.server.transfer.stored_contents import StoredModel
from quercus.storage import CorruptStore, NotFound, StorageError, Store

_log = logging.getLogger(__name__)
MOST_NAMED: Final = 100
SOUND_FOR_S: Final = 60.0
"""Seconds for which a model that passed a check is not checked again, because a check reads all of it."""
_GONE, _UNKNOWN = 0, -1
"""Stand for the key of a model that does not exist, or whose key could not be read."""


class DamagedModels:
    """The models whose damage was noticed, each reported once in the log.

    A model is added when a list or a call cannot read its data. It is identified by its key, so a new model of the same
    name counts as sound until its own data cannot be read.
    """

    def __init__(self, store: Store, read: Callable[..., Awaitable[Any]]) -> None:
        self._store = store
        self._read = read
        self._found: dict[str, tuple[int, str]] = {}
        self._sound_until: dict[int, float] = {}
        self._checking = asyncio.Lock()

    @property
    def reasons(self) -> dict[str, str]:
        """The damage of each model, by name; at most `MOST_NAMED` models."""
        return {name: reason for name, (_, reason) in sorted(self._found.items())[:MOST_NAMED]}

    def forget_deleted(self) -> None:
        """Forget models that any server deleted. Call it in a thread that reads the store."""
        for name, (key, _) in list(self._found.items()):
            if self._key_of(name) not in {key, _UNKNOWN}:
                self._found.pop(name, None)

    def has_damage(self, model: str, key: int) -> bool:
        """Return whether damage of the model was noticed; `key` is its `ModelRecord.key`."""
        return self._found.get(model, (0, ""))[0] == key

    def note_unreadable(self, model: str, error: Exception) -> None:
        """Check and report a model that cannot be read. Call it in a thread that reads the store."""
        key = self._key_of(model)
        if key > 0 and not self.has_damage(model, key):
            self._note_damage(model, key, find_damage(self._store, model) or str(error))

    def _note_damage(self, model: str, key: int, reason: str) -> None:
        if not self.has_damage(model, key):
            self._found[model] = key, reason
            _log.error(
                "model %s cannot be used, and is not served: %s; quercus check tells more",
                model,
                reason,
            )

    async def find_damage(self, model: str) -> str:
        """Check a model that a call could not read; return its damage, empty if there is none."""
        key = await self._read(self._key_of, model)
        if key <= 0:
            return ""
        if not self.has_damage(model, key):
            async with self._checking:  # one check at a time, because it reads all of the model
                if not self.has_damage(model, key) and time.monotonic() >= self._sound_until.get(key, 0.0):
                    found = await self._read(find_damage, self._store, model)
                    if found:
                        self._note_damage(model, key, found)
                    else:
                        self._sound_until[key] = time.monotonic() + SOUND_FOR_S
        return self._found[model][1] if self.has_damage(model, key) else ""

    def _key_of(self, model: str) -> int:
        """Read the key of a model; `_GONE` if there is none of this name, `_UNKNOWN` if the store fails."""
        try:
            return self._store.key_of(model)
        except NotFound:
            return _GONE
        except StorageError:  # such as a lost connection
            return _UNKNOWN


def find_damage(store: Store, model: str) -> str:
    """Return the damage of a model that `quercus check` would report first; empty if there is none."""
    try:
        return store.find_damage(model, StoredModel).removeprefix(f"model {model}: ")
    except NotFound:
        return ""
    except CorruptStore as error:
        return str(error)
    except StorageError:  # such as a lost connection, which says nothing about this model
        return ""
