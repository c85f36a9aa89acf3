"""The compiled part of the package; all else is declared in pyproject.toml."""

import sys

sys.path.insert(0, "kernels")

from building import BuildKernels, kernels
from setuptools import setup

setup(ext_modules=[kernels()], cmdclass={"build_ext": BuildKernels})
