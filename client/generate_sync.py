"""Derives the synchronous client, `quercus.client.sync`, from `quercus.client.aio`: run ``make client``.

The asyncio client is written by hand; the synchronous one is the same code without ``async`` and ``await``. Pairs of
classes in `quercus.client.concurrency` contain the differences between asyncio and threads.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

WRITTEN = Path(__file__).with_name("aio")
GENERATED = Path(__file__).with_name("sync")
HEADER = "# Generated from client/aio/{name} by `make client`; edit that file.\n"
RULES = [
    (r"quercus\.client\.aio\b", "quercus.client.sync"),
    (r"\basync (def|with|for)\b", r"\1"),
    (r"(?<!\w)\(await (\w[\w.]*\([^()]*\))\)", r"\1"),
    (r"\bawait ", ""),
    (r"\b__a(enter|exit|iter|next)__", r"__\1__"),
    (r"\baclosing\b", "closing"),
    (r"\bAsyncIterable\[Row\] \| ", ""),
    (r"\bAsyncIterable, ", ""),
    (r"\bAsyncGenerator\[(.+?), None\]", r"Generator[\1, None, None]"),
    (r"\bStopAsyncIteration\b", "StopIteration"),
    (r"\bAsync([A-Z]\w*)", r"\1"),
    (r"\basync_(\w+)", r"\1"),
    # words of docstrings
    (
        r" for asyncio programs; it belongs to the event loop in which it was created",
        "; threads may share it",
    ),
    (r" The\s+rows may be an async iterable\.", ""),
]
"""Patterns and their replacements, applied in this order."""


def without_async(text: str) -> str:
    """Return the synchronous form of a module.

    Examples
    --------
    >>> without_async("async def pages(self) -> AsyncIterator[Page]: return await self._call(async_sleep)")
    'def pages(self) -> Iterator[Page]: return self._call(sleep)'
    """
    for pattern, becomes in RULES:
        text = re.sub(pattern, becomes, text)
    return text


def tidy_module(text: str) -> str:
    """Return a module with its lines broken and its imports sorted, by ruff."""
    for arguments in (["check", "--select", "I,F401", "--fix", "--quiet"], ["format", "--quiet"]):
        ruff = [
            sys.executable,
            "-m",
            "ruff",
            *arguments,
            "--stdin-filename",
            str(GENERATED / "module.py"),
            "-",
        ]
        result = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True)  # noqa: S603
        text = result.stdout
    return text


def generated_modules() -> dict[Path, str]:
    """Return the content of each file of the synchronous client."""
    return {
        GENERATED / path.name: tidy_module(HEADER.format(name=path.name) + without_async(path.read_text()))
        for path in sorted(WRITTEN.glob("[!_]*.py"))
    }


if __name__ == "__main__":
    for target, content in generated_modules().items():
        target.write_text(content)
