"""A command of ``quercus`` that ends when the demo ends, however that came: ``python -m ... serve --port 0``."""

from __future__ import annotations

import os
import signal
import sys
import threading


def end_with_parent() -> None:
    """Stop this process as SIGTERM would when its standard input ends."""

    def watch_parent() -> None:
        while os.read(0, 4096):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch_parent, name="quercus-parent", daemon=True).start()


def main() -> None:
    """Run the command line with the arguments given."""
    end_with_parent()
    from quercus.cli.main import main as quercus  # noqa: PLC0415  (after the watch has begun)

    sys.argv[0] = "quercus"
    quercus()


if __name__ == "__main__":
    main()
