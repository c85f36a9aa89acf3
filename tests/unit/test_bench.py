"""The measurements of `bench/` use names of the library that exist (most of them run only by hand); and the page."""

import importlib.util
import re
from types import ModuleType

import pytest
from mypy import api
from support.checkout import ROOT

BENCH = ROOT / "bench"
BROKEN = re.compile(r"\[(attr-defined|name-defined)\]$")
OF_PEERS = '"object" has no attribute'  # models of other libraries have no type


def test_measurements_use_names_that_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    files = sorted(map(str, BENCH.rglob("*.py")))
    assert len(files) > 20
    found, failure, _ = api.run(["--no-error-summary", "--no-pretty", "--no-color-output", *files])
    assert not failure
    broken = [line for line in found.splitlines() if BROKEN.search(line) and OF_PEERS not in line]
    assert not broken


def module(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCH))
    spec = importlib.util.spec_from_file_location(f"bench_{name}", BENCH / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def report(
    script: str, *rows: dict[str, object], others_cores: float = 0.0, skipped: tuple[str, ...] = ()
) -> dict:
    facts = {
        "measured": "2026-11-27 09:00 UTC",
        "machine": "two cores",
        "versions": "Python 3.11, quercus 1.2.3",
    }
    return {
        "script": f"{script}.py",
        "command": f"python bench/{script}.py",
        "rows": list(rows),
        "notes": [],
        "skipped": list(skipped),
        "facts": facts | {"others_cores": others_cores},
    }


def row(work: str, *, reached: bool | None = None) -> dict[str, object]:
    figures = dict.fromkeys(("quercus", "peer", "ratio", "target"), "")
    return {"work": work, "reached": reached, **figures}


def test_every_script_has_a_place_on_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    page = module("__main__", monkeypatch)
    placed = [name for names in page.GROUPS.values() for name in names]
    assert len(set(placed)) == len(placed)
    assert {path.stem for path in BENCH.glob("*.py") if not path.name.startswith("_")} <= set(placed)


def test_the_page_counts_targets_and_what_is_not_measured_is_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    page = module("__main__", monkeypatch)
    text = page.page(
        {
            "classify": report("classify", row("one row", reached=True), row("many rows", reached=False)),
            "streams": report("streams", row("SEA"), skipped=("MOA ARF: there is no Java",)),
        }
    )
    assert "**1 of 2 targets are reached.**" in text
    assert "| many rows |  |  |  |  | **no** | `python bench/classify.py` |" in text
    assert "- Not measured: MOA ARF: there is no Java\n" in text
    assert "| MOA" not in text
    assert "Interim" not in text


def test_figures_of_a_busy_machine_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    page = module("__main__", monkeypatch)
    text = page.page(
        {
            "classify": report("classify", row("one row"), others_cores=0.9),
            "streams": report("streams", row("SEA"), others_cores=0.1),
        }
    )
    assert "**Interim: other programs used the machine while these ran: classify.py.**" in text


@pytest.mark.parametrize(("late", "known"), [(0, [0, 1, 2, 3]), (2, [0, 0, 0, 0, 2, 2, 4])])
def test_peers_learn_a_label_when_it_has_come(
    late: int, known: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    peers = module("_peers", monkeypatch)
    learned: list[int] = []
    seen: list[int] = []
    peer = peers.Peer(
        lambda _: seen.append(len(learned)),
        lambda row, _: learned.append(row),
        range(len(known)),
        range(len(known)),
    )
    peer.go_through(0, 3, late)
    peer.go_through(3, len(known), late)
    assert seen == known
    assert learned == list(range(len(learned)))
