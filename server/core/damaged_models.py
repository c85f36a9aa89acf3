"""Models whose stored data are damaged: lists and queries of any model leave them out, and the status names them."""

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
"""A model that was found to be sound is not checked again for this time: a check reads all of it."""


class DamagedModels:
    """The models whose damage was noticed, each reported once in the log.

    A model comes in when a list or a call cannot read what is stored of it, and goes when it is deleted.

    Parameters
    ----------
    store : the open store.
    read : runs a function in the threads that read the store.
    """

    def __init__(self, store: Store, read: Callable[..., Awaitable[Any]]) -> None:
        self._store = store
        self._read = read
        self._reasons: dict[str, str] = {}
        self._sound_until: dict[str, float] = {}
        self._checking = asyncio.Lock()

    @property
    def reasons(self) -> dict[str, str]:
        """The damage of each model, by its name; at most `MOST_NAMED`."""
        return dict(sorted(self._reasons.items())[:MOST_NAMED])

    def __contains__(self, model: str) -> bool:
        return model in self._reasons

    def note_damage(self, model: str, reason: str) -> None:
        """Report a damaged model. Safe for threads."""
        if model not in self._reasons:
            self._reasons[model] = reason
            _log.error(
                "model %s is damaged, and is not served: %s; quercus check tells more, restore a backup",
                model,
                reason,
            )

    def forget_model(self, model: str) -> None:
        """Forget a model that was deleted: another may have its name."""
        self._reasons.pop(model, None)
        self._sound_until.pop(model, None)

    async def find_damage(self, model: str) -> str:
        """Check a model that a call could not read; return what is damaged, empty if nothing is."""
        if model in self._reasons:
            return self._reasons[model]
        async with self._checking:  # one at a time: it reads all of the model
            if model not in self._reasons and time.monotonic() >= self._sound_until.get(model, 0.0):
                found = await self._read(find_damage, self._store, model)
                if found:
                    self.note_damage(model, found)
                else:
                    self._sound_until[model] = time.monotonic() + SOUND_FOR_S
        return self._reasons.get(model, "")


def find_damage(store: Store, model: str) -> str:
    """Return the damage of a model that `quercus check` would report first; empty if there is none."""
    try:
        return store.find_damage(model, StoredModel).removeprefix(f"model {model}: ")
    except NotFound:
        return ""
    except CorruptStore as error:
        return str(error)
    except StorageError:  # of the store, as a lost connection: it says nothing about this model
        return ""
