"""The build of the compiled kernels: setuptools' backend, with an installed compiler if the machine has none.

Every compiler gets ``-ffp-contract=off``: a fused multiply-add rounds once where the formula rounds twice, and the same
evidence would give other trees on other machines.
"""

import importlib.util
import os
import platform
import shutil
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, build_meta
from setuptools.build_meta import *  # noqa: F403  # the hooks that this backend does not change
from setuptools.command.build_ext import build_ext
from sources import hash_of_sources

FOLDER = Path(__file__).resolve().parent
SOURCES = ("module.cpp", "likelihood.cpp", "growth.cpp", "forest.cpp")
FLAGS = [
    "-std=c++20", "-O3", "-ffp-contract=off", "-fno-math-errno", "-fvisibility=hidden", "-fno-strict-aliasing", "-g0",
    "-Wall", "-Wextra", "-Werror=return-type", "-Wno-sign-compare", "-Wno-missing-field-initializers",
]  # fmt: skip
FLAGS_OF_VISUAL_C = ["/std:c++20", "/O2", "/fp:precise", "/EHsc"]


def compiler_on_path() -> str | None:
    """Return the machine's C++ compiler: that of ``CXX``, Python's own, or one under a usual name."""
    for name in (os.environ.get("CXX"), sysconfig.get_config_var("CXX"), "c++", "g++", "clang++"):
        if name and shutil.which(name.split()[0]):
            return name
    return None


def missing_compiler() -> list[str]:
    """Return the requirement of a package that contains a compiler, or nothing if the machine has one."""
    return [] if sys.platform == "win32" or compiler_on_path() else ["ziglang>=0.15"]


def get_requires_for_build_wheel(config_settings=None):  # type: ignore[no-untyped-def]
    """Return the requirements of a build, with a compiler (400 MB) if the machine has none."""
    return [*build_meta.get_requires_for_build_wheel(config_settings), *missing_compiler()]


def get_requires_for_build_editable(config_settings=None):  # type: ignore[no-untyped-def]
    """Return the requirements of an editable installation, with a compiler (400 MB) if the machine has none."""
    return [*build_meta.get_requires_for_build_editable(config_settings), *missing_compiler()]


def kernels() -> Extension:
    """Return the extension of all kernels."""
    return Extension(
        "quercus.kernels.compiled",
        [f"kernels/{name}" for name in SOURCES],
        language="c++",
        define_macros=[("NDEBUG", "1"), ("NB_COMPACT_ASSERTIONS", "1")],
    )


class BuildKernels(build_ext):
    """Builds the extension with the available compiler, all sources at the same time."""

    def build_extension(self, ext: Extension) -> None:
        """Build an extension, or copy it if it was already built in place from the same sources."""
        sources, target = hash_of_sources(FOLDER), Path(self.get_ext_fullpath(ext.name))
        built = FOLDER / target.name
        if built.exists() and sources.encode() in built.read_bytes():
            if not target.exists() or not target.samefile(built):
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(built, target)
            return
        import nanobind  # needed to build, not to read this module  # noqa: PLC0415
        import numpy as np  # noqa: PLC0415

        self._need_headers()
        core = Path(nanobind.include_dir()).parent
        ext.sources = [*ext.sources, str(core / "src" / "nb_combined.cpp")]
        ext.include_dirs = [
            "kernels",
            nanobind.include_dir(),
            str(core / "ext/robin_map/include"),
            np.get_include(),
        ]
        ext.define_macros = [*ext.define_macros, ("QUERCUS_SOURCES", f'"{sources}"')]
        if self.compiler.compiler_type == "msvc":
            ext.extra_compile_args = FLAGS_OF_VISUAL_C
        else:
            ext.extra_compile_args = FLAGS
            self._take_compiler()
        self._compile_in_parallel()
        self.force = True  # the hash shows that the extension is stale; file times may not
        super().build_extension(ext)

    def _need_headers(self) -> None:
        folder = Path(sysconfig.get_path("include"))
        if not (folder / "Python.h").exists():
            v = f"{sys.version_info.major}.{sys.version_info.minor}"
            raise SystemExit(
                f"Quercus: no Python.h in {folder}, so its kernels cannot be compiled. On Debian and Ubuntu:"
                f" apt-get install python{v}-dev. A wheel needs no compiler: pip install quercus"
            )

    def _take_compiler(self) -> None:
        command = compiler_on_path() or self._zig()
        print(f"Quercus: compiling the kernels with {command}", flush=True)
        shared = "-bundle -undefined dynamic_lookup" if sys.platform == "darwin" else "-shared"
        compiling, linking = f"{command} -fPIC", f"{command} {shared}"
        self.compiler.set_executables(
            compiler_cxx=command, compiler_so=compiling, compiler_so_cxx=compiling,
            linker_exe=command, linker_so=linking, linker_so_cxx=linking,
        )  # fmt: skip

    def _zig(self) -> str:
        """Write a script that runs the compiler of the package ziglang, and return its path.

        setuptools needs a command of one word.
        """
        if importlib.util.find_spec("ziglang") is None:
            raise SystemExit(
                "Quercus: there is no C++ compiler (c++, g++, clang++), nor the package ziglang, which brings one."
                " Install one of them: apt-get install g++, or pip install ziglang. A wheel needs none"
            )
        # zig's default is this very processor: results could differ, and older machines would crash
        processor = "x86_64" if platform.machine() in ("x86_64", "AMD64") else "baseline"
        command = Path(self.build_temp).resolve() / "zig-c++"
        command.parent.mkdir(parents=True, exist_ok=True)
        # its C library and Python's headers both say which POSIX they want
        options = f"-mcpu={processor} -Wno-macro-redefined"
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ziglang c++ {options} "$@"\n')
        command.chmod(0o755)
        return str(command)

    def _compile_in_parallel(self) -> None:
        compile_one = self.compiler.compile

        def compile_all(sources, *arguments, **options):  # type: ignore[no-untyped-def]
            done = []

            def compile_source(source: str):  # type: ignore[no-untyped-def]
                objects = compile_one([source], *arguments, **options)
                done.append(source)
                print(f"Quercus: compiled {Path(source).name} ({len(done)} of {len(sources)})", flush=True)
                return objects

            with ThreadPoolExecutor(os.cpu_count()) as pool:
                return [each for objects in pool.map(compile_source, sources) for each in objects]

        self.compiler.compile = compile_all
