"""The program while it loads, as the script ``quercus`` and as ``python -m quercus``."""

import json
import subprocess
import sys
import tomllib

import pytest
from support.checkout import ROOT

SCRIPT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]["quercus"]
STARTS = {
    "script": "import importlib; importlib.import_module({!r}).{}()".format(*SCRIPT.split(":")),
    "module": "import runpy; runpy.run_module('quercus', run_name='__main__', alter_sys=True)",
}
CTRL_C = """
import os, signal, sys
class CtrlC:
    def find_spec(self, name, path=None, target=None):
        if name == {!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, CtrlC())
"""


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
@pytest.mark.parametrize(
    "loads", ["quercus.cli", "typer", "quercus.view.terminal", "quercus.cli.models", "grpc"]
)
def test_ctrl_c_while_it_loads_ends_it_quietly(start: str, loads: str) -> None:
    command = [sys.executable, "-c", CTRL_C.format(loads) + start, "models", "list"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (130, "")
    assert json.loads(done.stderr)["error"]["kind"] == "Interrupted"


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
def test_it_prints_its_version(start: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", start, "--version"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("quercus ")
