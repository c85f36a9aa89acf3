"""The parts of the package that pyproject.toml cannot declare: compiled ones, and a description with absolute links."""

import re
import sys
import tomllib
from pathlib import Path

sys.path.insert(0, "kernels")

from building import BuildKernels, kernels
from setuptools import setup


def description() -> str:
    """Return the README as package indexes show it: title first, and links that lead from there to this version."""
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = Path("README.md").read_text(encoding="utf-8")
    commands, title, rest = re.split(r"^(# .*\n)", text, maxsplit=1, flags=re.MULTILINE)
    parts = {"": "blob", "!": "raw"}  # pages, and pictures
    return (
        title
        + "\n"
        + commands.strip()
        + "\n"
        + re.sub(
            r"(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)\s]+)\)",
            lambda m: (
                f"{m[1]}[{m[2]}]({project['urls']['Repository']}/{parts[m[1]]}/v{project['version']}/{m[3]})"
            ),
            rest,
        )
    )


setup(
    long_description=description(),
    long_description_content_type="text/markdown",
    ext_modules=[kernels()],
    cmdclass={"build_ext": BuildKernels},
)
