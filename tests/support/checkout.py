"""The checkout under test, and copies of it that a test may build in or break."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (
    "belief",
    "cli",
    "client",
    "console",
    "estimators",
    "experiments",
    "files",
    "kernels",
    "labelling",
    "server",
    "specification",
    "storage",
    "trees",
    "view",
)
"""The folders at the top that are packages, by their own names."""

PARTS = {folder: folder for folder in FOLDERS} | {"inference": "proto/inference", "v1": "proto/quercus/v1"}
"""The folder of each package within ``quercus``."""


def copy_checkout(target: Path) -> Path:
    """Copy the files that packaging reads, symlinks as symlinks, without leftovers of a working copy.

    Built kernels are copied too: a build reuses them if their sources are the same, else it compiles for a minute.
    """
    leftovers = shutil.ignore_patterns("__pycache__", "*.egg-info", "build", "dist")
    for folder in (*FOLDERS, "proto", "src", "tests"):
        shutil.copytree(ROOT / folder, target / folder, symlinks=True, ignore=leftovers)
    for file in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy2(ROOT / file, target / file)
    return target


def generator() -> Path:
    """Return the folder of the compiler that `make proto` generates with; it is installed where it is missing."""
    environment = Path(sys.executable).parents[1]
    make = ["make", "--silent", "generator", f"VENV={environment}"]
    subprocess.run(make, cwd=ROOT, check=True)
    return environment / "generator"
