"""The grower's numerical kernels: those that the cache lacks are compiled, with progress reports."""

from __future__ import annotations

import logging
import time

from quercus.server.growth import compiling
from quercus.server.growth.heartbeat import HeartbeatWriter
from quercus.trees.precompile import Progress, kernel_cache

_log = logging.getLogger("quercus.server.growth.grower")


def compile_kernels(pulse: HeartbeatWriter) -> None:
    """Compile the kernels that the cache lacks, those for the default first, and log the progress."""
    began = time.monotonic()
    last: Progress | None = None

    def log_progress(now: Progress) -> None:
        nonlocal last
        pulse.report_compiling(now.ready, now.total, now.trees)
        if last is None:
            _log_beginning()
        else:
            _log.info("%d of %d steps of compiling are done", now.ready, now.total)
        if now.trees and (last is None or not last.trees):
            _log.info(
                "forests, and trees of precise labels, can grow, after %.0f s", time.monotonic() - began
            )
        last = now

    try:
        compiling.prepare_kernels(log_progress)
    finally:
        pulse.report_compiling(0, 0, trees=True)
    if last is not None:
        _log.info("the numerical kernels are compiled, after %.0f s", time.monotonic() - began)


def _log_beginning() -> None:
    folder = kernel_cache()
    if folder is None:
        _log.warning(
            "compiling the numerical kernels, and at every start again: no folder for them may be written, set "
            "NUMBA_CACHE_DIR to one; trees wait for it, forests half a minute"
        )
    else:
        _log.info(
            "compiling the numerical kernels into %s, where the next start finds them; trees wait for it, "
            "forests half a minute",
            folder,
        )
