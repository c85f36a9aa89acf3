"""Leases of revoked and expired tokens are given back; another process may revoke a token."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from quercus.server.core.service_core import ServiceCore
from quercus.storage import StorageError

_log = logging.getLogger(__name__)
TOKENS_POLL_S: Final = 0.5
"""Time between two reads, in seconds; each reads the live leases alone."""


async def give_back_revoked(core: ServiceCore) -> None:
    """End the leases of tokens that are revoked or expired. Runs until cancelled."""
    while True:
        try:
            if await core.read(core.store.has_revoked_leases):
                count = await core.write(core.store.evict_revoked)
                _log.info("%d leases of revoked or expired tokens were ended", count)
        except StorageError as error:  # the store fails, which is reported elsewhere; it may recover
            _log.warning("leases of revoked tokens cannot be ended now: %s", error)
        await asyncio.sleep(TOKENS_POLL_S)
