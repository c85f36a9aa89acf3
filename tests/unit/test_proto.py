"""The checked-in code, the client's too, is what `make proto` generates from the checked-in .proto files."""

import subprocess
import sys
from pathlib import Path

from support.checkout import PARTS, ROOT


def generated(directory: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in directory.iterdir() if "_pb2" in p.name and p.is_file()}


def test_generated_code_is_current(tmp_path: Path) -> None:
    make = ["make", "--silent", "proto", "STAMP=", f"BIN={Path(sys.executable).parent}", f"OUT={tmp_path}"]
    result = subprocess.run(make, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    for part in ("v1", "inference"):
        fresh = generated(tmp_path / "quercus" / part)
        checked_in = generated(ROOT / PARTS[part])
        assert len(fresh) == 4 * len(list((ROOT / PARTS[part]).glob("*.proto")))
        assert fresh.keys() == checked_in.keys()
        stale = [name for name in fresh if fresh[name] != checked_in[name]]
        assert not stale, "run `make proto`"
    for module in ("client/results.py", "client/specifications.py"):
        assert (tmp_path / "quercus" / module).read_bytes() == (ROOT / module).read_bytes(), (
            "run `make proto`"
        )
