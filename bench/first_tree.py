"""The first tree on a machine that has no compiled kernels: seconds until it is there, CPU seconds of all kernels.

``python bench/first_tree.py [CHECKOUT ...]`` (without arguments: this one). Run it alone on an idle machine.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory

COMPILE = """
try:
    from quercus.trees.precompile import prepare
except ModuleNotFoundError:
    from quercus.trees.prepare import prepare
prepare()
"""
ROWS, GIVE_UP_S = 200, 900
ALGORITHMS = ("active-forest", "abc45")


def environment(checkout: Path, kernels: str) -> dict[str, str]:
    """Return variables with which Python runs a checkout, its kernels in a folder of their own."""
    return os.environ | {"PYTHONPATH": str(checkout / "src"), "NUMBA_CACHE_DIR": kernels}


def first_tree_s(checkout: Path, algorithm: str) -> float:
    """Return seconds from the start of a server to the first tree, or forest, of a model with precise labels."""
    scripts = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, function = scripts["quercus"].partition(":")
    with TemporaryDirectory() as folder:
        serve = ["serve", "--store", f"sqlite:///{folder}/store.db", "--port", "0"]
        start = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-c", f"from {module} import {function}; {function}()", *serve],
            env=environment(checkout, folder),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            assert process.stdout is not None
            address = process.stdout.readline().removeprefix("listening on ").strip()
            _grow(address, algorithm)
            return time.monotonic() - start
        finally:
            process.terminate()
            process.wait()


def _grow(address: str, algorithm: str) -> None:
    from quercus.client import Client, Nominal, Specification  # noqa: PLC0415 - this checkout's, for every server

    values = [[f"{i % 3}", f"{i // 3 % 3}"] for i in range(ROWS)]
    with Client(address) as client:
        client.wait_ready()
        attributes = [Nominal("a", "012"), Nominal("b", "012")]
        client.create_model("m", Specification(attributes, ["x", "y"], algorithm=algorithm))
        client.push("m", values, ["x" if a == b else "y" for a, b in values])
        give_up = time.monotonic() + GIVE_UP_S
        while client.get_model("m").sequence_grown < ROWS and time.monotonic() < give_up:
            time.sleep(0.05)


def compiling_cpu_s(checkout: Path) -> float:
    """Return CPU seconds that one process takes to compile every kernel."""
    with TemporaryDirectory() as folder:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", COMPILE], env=environment(checkout, folder), check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print a line per checkout and figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkouts", nargs="*", type=Path, default=[Path(__file__).resolve().parents[1]])
    for checkout in parser.parse_args().checkouts:
        found = checkout.resolve()
        for algorithm in ALGORITHMS:
            seconds = first_tree_s(found, algorithm)
            print(f"{found}: {algorithm} grown after {seconds:.1f} s", flush=True)
        print(f"{found}: {compiling_cpu_s(found):.1f} CPU seconds to compile every kernel", flush=True)


if __name__ == "__main__":
    main()
