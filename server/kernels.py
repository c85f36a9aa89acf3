"""The grower's numerical kernels: loaded, or compiled where they are not there yet, and that is said."""

from __future__ import annotations

import logging

from quercus.server.pulse import Pulse
from quercus.trees.prepare import kernel_cache, noticing_compilation
from quercus.trees.prepare import prepare as prepare_kernels

_log = logging.getLogger("quercus.server.grower")


def prepare(pulse: Pulse) -> None:
    """Have the kernels ready before a model asks; say so while they are compiled, which takes a minute or two."""

    def tell() -> None:
        pulse.compiling(True)
        folder = kernel_cache()
        if folder is None:
            _log.warning(
                "compiling the numerical kernels, and at every start again: no folder for them may be written, set "
                "NUMBA_CACHE_DIR to one; trees wait a minute or two for it"
            )
        else:
            _log.info(
                "compiling the numerical kernels into %s, where the next start finds them; trees wait a minute or two "
                "for it",
                folder,
            )

    try:
        with noticing_compilation(tell):
            prepare_kernels()
    finally:
        pulse.compiling(False)
