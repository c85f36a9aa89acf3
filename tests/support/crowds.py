"""Combined answers of crowds: `quercus push --labels` of three files against the majority of the answers.

    python tests/support/crowds.py FOLDER

The files (`crowd_bluebird.csv`, `crowd_dog.csv.gz`, `crowd_rte.csv.gz`) give many answers to each item, and its true
class. A model needs an attribute and these items have none, so each is pushed with one that is always the same. The
predicted class of an item is the most plausible one. Of several, each counts by its share; so in the majority.
"""

from __future__ import annotations

import csv
import gzip
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from integration.client.serving import Serving

from quercus.client import Client, LabellingPolicy, Nominal, Specification
from support.command_line import quercus

FILES: Final = ("crowd_bluebird.csv", "crowd_dog.csv.gz", "crowd_rte.csv.gz")


@dataclass(frozen=True)
class Crowd:
    """A file, read independently of the reader that is measured."""

    truth: Mapping[str, str]
    said: Mapping[str, Counter[str]]

    @property
    def classes(self) -> list[str]:
        """All true and all answered classes."""
        return sorted({*self.truth.values(), *(name for votes in self.said.values() for name in votes)})


def read(file: Path) -> Crowd:
    """Read a file of either form."""
    data = file.read_bytes()
    text = (gzip.decompress(data) if file.suffix == ".gz" else data).decode()
    truth: dict[str, str] = {}
    said: dict[str, Counter[str]] = {}
    for row, cells in enumerate(csv.DictReader(text.splitlines())):
        item = cells.get("item", str(row))
        truth[item] = cells["class"]
        votes = said.setdefault(item, Counter())
        if "answer" in cells:
            votes[cells["answer"]] += 1
        else:
            votes.update(answer for name, answer in cells.items() if name != "class")
    return Crowd(truth, said)


def accuracy(crowd: Crowd, support: Mapping[str, Mapping[str, float]]) -> float:
    """Share of items whose class has the most support."""
    shares = []
    for item, true in crowd.truth.items():
        top = max(support[item].values())
        best = [name for name, value in support[item].items() if np.isclose(value, top, rtol=1e-9)]
        shares.append((true in best) / len(best))
    return float(np.mean(shares))


def measured(server: str, file: Path, reliability: str) -> tuple[float, float]:
    """The service's accuracy on a file, and the seconds of the push."""
    crowd = read(file)
    name = f"{file.name.split('.')[0].replace('_', '-')}-{reliability}"
    with Client(server) as client:
        client.create_model(name, Specification([Nominal("nothing", ["said"])], crowd.classes))
        client.set_labelling_policy(name, LabellingPolicy(reliability=reliability))  # type: ignore[arg-type]
        client.push(name, [{"nothing": "said"}] * len(crowd.truth), ids=list(crowd.truth))
        started = time.perf_counter()
        done = quercus("push", name, str(file), "--labels", server=server)
        seconds = time.perf_counter() - started
        if done.returncode:
            raise SystemExit(done.stderr)
        known = {
            each.id: dict(zip(crowd.classes, each.contour, strict=True)) for each in client.instances(name)
        }
    return accuracy(crowd, known), seconds


def main() -> None:
    """Print a line a file."""
    if len(sys.argv) != 2:
        raise SystemExit("SKIPPED: name the folder that has the files: python tests/support/crowds.py FOLDER")
    folder = Path(sys.argv[1])
    if missing := [name for name in FILES if not (folder / name).exists()]:
        raise SystemExit(f"SKIPPED: {folder} has no {', '.join(missing)}")
    with tempfile.TemporaryDirectory() as store:
        serving = Serving(Path(store))
        try:
            print(
                f"{'file':22} {'items':>6} {'answers':>8} {'majority':>9} {'declared':>9} {'estimated':>10} {'s':>6}"
            )
            for name in FILES:
                crowd = read(folder / name)
                answers = sum(votes.total() for votes in crowd.said.values())
                plain, _ = measured(serving.address, folder / name, "declared")
                weighed, seconds = measured(serving.address, folder / name, "estimated")
                majority = accuracy(crowd, crowd.said)
                print(
                    f"{name:22} {len(crowd.truth):6} {answers:8} {100 * majority:9.2f} {100 * plain:9.2f} "
                    f"{100 * weighed:10.2f} {seconds:6.1f}"
                )
        finally:
            serving.stop()


if __name__ == "__main__":
    main()
