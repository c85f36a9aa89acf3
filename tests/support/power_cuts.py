"""Power cuts amid the writes of a server under load: whatever the disk had by then, nothing acknowledged is lost.

    python tests/support/power_cuts.py 2000

A killed process leaves its writes to the system, which puts them on the disk; a power cut does not. So each write and
each flush of the store's two files is recorded (`disk_journal.c`) while rows are pushed, queries answered, labels
stated, and trees and forests grown. Then the power is cut at moments of the record: what was flushed is on the disk,
and of what was written since it is all there, nothing, or any of its sectors. Each such store must open, check clean,
and hold what had been acknowledged before the cut, once.
"""

from __future__ import annotations

import itertools
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from integration.client.serving import Serving

from quercus.client import Client, FailedPrecondition, Statement
from quercus.storage import EventKind, Store, file_url
from quercus.storage.admin.verify import verify_store
from support.unbroken import (
    ASKED,
    ATTRIBUTES,
    CLASSES,
    MODELS,
    REMEMBERING,
    VALUES,
    codes_of,
    specifications,
    truth,
)

SECTOR = 512
"""Bytes that a disk writes whole or not at all."""

BATCH_ROWS = 20
BUDGET = 5_000
JOURNAL_BYTES = 24_000_000
"""Bytes that are written before the cuts: several times what the log takes before it is copied into the store."""

LOAD_S = 240.0
"""Seconds at most that this takes."""

WRITE, CUT, FLUSH = range(3)
_HEADER = struct.Struct("=IIQQ")


class Record(NamedTuple):
    """One write, cut or flush: of which file, and where the journal ended behind it."""

    kind: int
    file: int
    offset: int
    data: bytes
    end: int


class Acknowledged(NamedTuple):
    """An acknowledgement: how long the journal was by then, of which model, and what must be there."""

    at: int
    model: str
    kind: str
    what: tuple[str, ...]


class Disk:
    """A file on a disk: its content as it was flushed, and the writes since."""

    def __init__(self) -> None:
        self.flushed = bytearray()
        self.pending: list[Record] = []

    def take(self, record: Record) -> None:
        """Take a record; one of a flush puts on the disk what was written before it began."""
        if record.kind != FLUSH:
            self.pending.append(record)
            return
        for written in [each for each in self.pending if each.end <= record.offset]:
            _apply(self.flushed, written)
        self.pending = [each for each in self.pending if each.end > record.offset]

    def after_a_cut(self, chance: random.Random) -> bytes:
        """Return what may be there after a power cut."""
        left = bytearray(self.flushed)
        kept = chance.choice((0.0, 0.5, 0.9, 1.0))
        for written in self.pending:
            if written.kind == CUT:
                if chance.random() < kept:
                    _apply(left, written)
                continue
            for piece in _sectors(written):
                if chance.random() < kept:
                    _apply(left, piece)
        return bytes(left)


def _apply(content: bytearray, record: Record) -> None:
    end = record.offset + len(record.data)
    if record.kind == CUT:
        del content[record.offset :]
    if len(content) < end:
        content.extend(bytes(end - len(content)))
    content[record.offset : end] = record.data


def _sectors(record: Record) -> Iterator[Record]:
    start, end = record.offset, record.offset + len(record.data)
    while start < end:
        stop = min((start // SECTOR + 1) * SECTOR, end)
        yield record._replace(offset=start, data=record.data[start - record.offset : stop - record.offset])
        start = stop


def read_journal(path: Path) -> list[Record]:
    """Read all records; one that a killed process did not finish is left out."""
    content, at, found = path.read_bytes(), 0, []
    while at + _HEADER.size <= len(content):
        kind, file, offset, length = _HEADER.unpack_from(content, at)
        start = at + _HEADER.size
        at = start + (length if kind == WRITE else 0)
        if at <= len(content):
            found.append(Record(kind, file, offset, content[start:at], at))
    return found


@dataclass
class PowerCuts:
    """A server under load whose writes are recorded, and the power cuts afterwards."""

    folder: Path
    seed: int
    journal_bytes: int = JOURNAL_BYTES
    acknowledged: list[Acknowledged] = field(default_factory=list)
    torn: int = 0
    """Cuts after which something was written that was not flushed."""

    def __post_init__(self) -> None:
        self.journal = self.folder / "journal"
        self._chance = np.random.default_rng(self.seed)
        self._made = 0
        self._stop = threading.Event()
        self._wrong: list[Exception] = []
        self._rows: list[tuple[str, np.ndarray]] = []
        self._statements = itertools.count()

    def run(self, cuts: int, heard: Callable[[int], None] = lambda _: None) -> None:
        """Load the server, then cut the power so many times."""
        self._load()
        records = read_journal(self.journal)
        ends = [record.end for record in records]
        chance = random.Random(self.seed)  # noqa: S311 - no secret
        disks = (Disk(), Disk())
        moments = sorted(chance.choices([end for end in ends if end >= self._made], k=cuts))
        taken = 0
        for number, moment in enumerate(moments):
            for record in records[taken : (taken := bisect_right(ends, moment))]:
                disks[record.file].take(record)
            self.torn += any(disk.pending for disk in disks)
            self._check([disk.after_a_cut(chance) for disk in disks], moment)
            heard(number + 1)

    def _check(self, files: list[bytes], moment: int) -> None:
        folder = self.folder / "after"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        store = folder / "quercus.db"
        for path, content in zip((store, folder / "quercus.db-wal"), files, strict=True):
            path.write_bytes(content)
        faults = verify_store(file_url(store))
        assert faults == [], f"after a power cut at byte {moment} of {self.journal}: {faults[:3]}"
        there: Counter[tuple[str, str, tuple[str, ...]]] = Counter()
        with Store.open(file_url(store)) as opened:
            for model in (each.name for each in opened.list_models()):
                there.update(_events_of(opened, model))
        told = [(each.model, each.kind, each.what) for each in self.acknowledged if each.at <= moment]
        lost = [each for each in told if there[each] != 1]
        assert lost == [], f"after a power cut at byte {moment} of {self.journal}: not there once: {lost[:3]}"

    def _load(self) -> None:
        library = self.folder / "disk_journal.so"
        source = Path(__file__).with_name("disk_journal.c")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
        spied = [f"LD_PRELOAD={library}", f"DISK_JOURNAL={self.journal}"]
        spied.append(f"DISK_STORE={(self.folder / 'quercus.db').resolve()}")
        serving = Serving(self.folder, before=["env", *spied])
        try:
            with Client(serving.address) as client:
                for model, specification in specifications(BUDGET).items():
                    client.create_model(model, specification)
            self._made = self._length()
            works = (self._push, self._label("ann"), self._label("bob"), self._state)
            threads = [threading.Thread(target=self._work, args=(work, serving.address)) for work in works]
            for thread in threads:
                thread.start()
            end = time.monotonic() + LOAD_S
            while self._length() < self.journal_bytes and time.monotonic() < end and not self._wrong:
                time.sleep(0.05)
            self._stop.set()
            for thread in threads:
                thread.join()
        finally:
            serving.kill()
        if self._wrong:
            raise self._wrong[0]

    def _length(self) -> int:
        return self.journal.stat().st_size

    def _acknowledge(self, model: str, kind: str, *what: tuple[str, ...]) -> None:
        at = self._length()
        self.acknowledged += [Acknowledged(at, model, kind, each) for each in what]

    def _work(self, work: Callable[[Client], None], address: str) -> None:
        try:
            with Client(address) as client:
                while not self._stop.is_set():
                    work(client)
        except Exception as error:
            self._wrong.append(error)

    def _push(self, client: Client) -> None:
        codes = self._chance.integers(0, len(VALUES), (BATCH_ROWS, ATTRIBUTES))
        ids = [f"row-{len(self._rows) + k}" for k in range(BATCH_ROWS)]
        labels = [CLASSES[truth(row)] if k % 3 else None for k, row in enumerate(codes)]
        for model in MODELS:
            client.push(model, [[VALUES[code] for code in row] for row in codes], labels, ids)
            self._acknowledge(model, "row", *((name,) for name in ids))
        self._rows += zip(ids, codes, strict=True)

    def _label(self, labeller: str) -> Callable[[Client], None]:
        turns = itertools.cycle(ASKED)

        def work(client: Client) -> None:
            model = next(turns)
            for query in client.lease(model, labeller, wait_s=0.1).queries:
                with suppress(FailedPrecondition):  # its lease has ended meanwhile
                    report = client.answer(query, CLASSES[truth(codes_of(query.values))])
                    self._acknowledge(model, "answer", (labeller, str(report.committed_sequence)))

        return work

    def _state(self, client: Client) -> None:
        if not self._rows:
            time.sleep(0.05)
            return
        k = next(self._statements)
        name, codes = self._rows[k * k % len(self._rows)]
        statement = Statement(name, CLASSES[truth(codes)], comment=f"no. {k}")
        if client.state(REMEMBERING, [statement], labeller="eve").stored:
            self._acknowledge(REMEMBERING, "statement", (statement.comment,))


def _events_of(store: Store, model: str) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Return what the log of a model tells, as it was acknowledged."""
    for event in store.read_events(model, limit=1_000_000):
        if event.kind is EventKind.INSTANCE:
            yield model, "row", (str(event.id),)
        elif event.kind is EventKind.ANSWER:
            yield model, "answer", (str(event.author), str(event.sequence))
        elif event.kind is EventKind.STATEMENT:
            yield model, "statement", (str(event.comment),)


def main() -> None:
    """Cut the power as often as the first argument says, and say what was reached."""
    cuts = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        trial = PowerCuts(Path(folder), seed=cuts)
        trial.run(cuts, lambda done: print(f"{done} power cuts", flush=True) if done % 200 == 0 else None)
        megabytes = trial.journal.stat().st_size / 1e6
    kinds = Counter(each.kind for each in trial.acknowledged)
    print(
        f"{megabytes:.0f} MB of writes, in which {kinds['row']:,} rows, {kinds['answer']:,} answers and "
        f"{kinds['statement']:,} statements were acknowledged"
    )
    seconds = time.monotonic() - began
    print(
        f"{cuts:,} power cuts in {seconds:.0f} s, {trial.torn:,} of them amid writes that were not flushed: "
        "nothing acknowledged is lost"
    )


if __name__ == "__main__":
    main()
