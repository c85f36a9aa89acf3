"""Imports come from this checkout; the wheel holds the packages, and a base install is the client alone."""

import email
import importlib
import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from support.checkout import FOLDERS, PARTS, ROOT, copy_checkout

from quercus.kernels import compiled
from quercus.specification.distribution import DISTRIBUTION

SERVER_ONLY = {"scipy", "sqlalchemy", "alembic", "sklearn", "matplotlib", "pandas"}
SERVER_ONLY |= {
    "grpc_health",
    "grpc_reflection",
    "quercus.server",
    "quercus.storage",
    "quercus.trees",
    "quercus.experiments",
}


@pytest.mark.parametrize("part", PARTS)
def test_each_part_is_imported_from_its_folder(part: str) -> None:
    module = importlib.import_module(f"quercus.{part}")
    assert module.__file__ is not None
    assert Path(module.__file__).resolve().parent == ROOT / PARTS[part]


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_part_has_one_name_only(folder: str) -> None:
    code = f"import {folder}"  # from the checkout's own folder, where Python would find it
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == f"ImportError: import quercus.{folder}, not {folder}"


def test_every_folder_is_linked() -> None:
    links = {p.name: os.readlink(p) for p in (ROOT / "src" / "quercus").iterdir() if p.is_symlink()}
    assert links == {part: f"../../{folder}" for part, folder in PARTS.items()}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = copy_checkout(tmp_path_factory.mktemp("source"))
    out = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(source)]
    result = subprocess.run(build, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    (path,) = out.glob("*.whl")
    return path


@pytest.mark.slow
def test_wheel_holds_the_packages_and_no_tests(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert {name.split("/")[0] for name in names} == {"quercus"}
    source = ROOT / "src" / "quercus"
    expected = {"quercus/__init__.py", "quercus/__main__.py", "quercus/py.typed"}
    for part in PARTS:
        for suffix in (
            "*.py",
            "*.pyi",
            "*.proto",
            "*.ini",
            "*.mako",
            "*.mplstyle",
            "*.html",
            "*.css",
            "*.js",
            "*.svg",
        ):
            expected |= {"quercus/" + p.relative_to(source).as_posix() for p in (source / part).rglob(suffix)}
    expected.add(f"quercus/kernels/{Path(compiled.__file__).name}")
    assert names == expected
    assert not any("test" in Path(name).name for name in names)


@pytest.mark.slow
def test_the_description_of_the_wheel_leads_to_files_of_its_version(wheel: Path) -> None:
    """An index shows the README where its relative links lead nowhere."""
    (name,) = (each for each in zipfile.ZipFile(wheel).namelist() if each.endswith(".dist-info/METADATA"))
    found = email.message_from_bytes(zipfile.ZipFile(wheel).read(name))
    assert found["Description-Content-Type"] == "text/markdown"
    text = found.get_payload()
    assert text.startswith("# Quercus\n")
    assert "make demo" in text
    links = re.findall(r"(!?)\[[^\]]*\]\(([^)\s]+)\)", text)
    assert len(links) > 30
    for is_picture, link in links:
        page = re.fullmatch(rf"https://[^/]+/[^/]+/{'raw' if is_picture else 'blob'}/v([^/]+)/(.+)", link)
        assert page is not None, link
        assert page[1] == found["Version"]
        assert (ROOT / page[2].partition("#")[0]).exists(), link
    assert not {"dev", "docs"} & set(found.get_all("Provides-Extra"))


def test_what_users_never_need_is_no_extra_and_the_owner_has_one_name() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert not declared["dependency-groups"].keys() & declared["project"]["optional-dependencies"].keys()
    tools = {
        Requirement(each).name
        for group in ("checks", "docs", "tests")
        for each in declared["dependency-groups"][group]
    }
    asked = {
        Requirement(each).name
        for part in declared["project"]["optional-dependencies"].values()
        for each in part
    }
    assert {"pytest", "mypy", "sphinx"} <= tools - asked
    author = declared["project"]["authors"][0]["name"]
    assert f"name: {author}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def brought_by(*asked: str) -> set[str]:
    """Names of the distributions that `pip install` of these requirements brings, without Quercus itself."""
    todo, found = [*map(Requirement, asked)], dict[str, set[str]]()
    while todo:
        requirement = todo.pop()
        known = found.setdefault(canonicalize_name(requirement.name), set())
        extras = {"", *requirement.extras} - known
        known |= extras
        todo += [
            each
            for each in map(Requirement, importlib.metadata.requires(requirement.name) or ())
            if any(each.marker is None or each.marker.evaluate({"extra": extra}) for extra in extras)
        ]
    return found.keys() - {DISTRIBUTION}


def environment_of(wheel: Path, folder: Path, names: set[str]) -> Path:
    """Return the Python of a new virtual environment with the wheel and some distributions, linked from here.

    Linked rather than downloaded: as strict, quick, and it works without a network.
    """
    venv = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    (site,) = venv.glob("lib/python*/site-packages")
    for name in names:
        distribution = importlib.metadata.distribution(name)
        for entry in {Path(str(f)).parts[0] for f in distribution.files or ()} - {"..", "__pycache__"}:
            (site / entry).unlink(
                missing_ok=True
            )  # namespace packages (google) are shared by several distributions
            (site / entry).symlink_to(Path(str(distribution.locate_file(entry))).resolve())
    python = venv / "bin" / "python"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "--disable-pip-version-check",
        "--no-cache-dir",
    ]
    subprocess.run([*pip, "install", "--quiet", "--no-index", str(wheel)], check=True, capture_output=True)
    return python


@pytest.fixture(scope="module")
def clean_python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new virtual environment with the wheel and exactly what a base install requires."""
    return environment_of(wheel, tmp_path_factory.mktemp("clean"), brought_by(DISTRIBUTION))


def run(python: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return subprocess.run(
        [str(python), *arguments],
        cwd=python.parent,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_the_wheel_passes_what_cibuildwheel_tests_it_by(wheel: Path, tmp_path: Path) -> None:
    """With exactly what cibuildwheel installs beside the wheel, and without the sources."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["cibuildwheel"]
    extras = ",".join(declared["test-extras"])
    names = brought_by(f"{DISTRIBUTION}[{extras}]", *declared["test-requires"])
    command = declared["test-command"].format(project=ROOT).split()
    assert command[0] == "python"
    result = run(environment_of(wheel, tmp_path, names), *command[1:])
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("module", ["quercus", "quercus.client", "quercus.client.aio", "quercus.cli.main"])
def test_the_client_costs_nothing_of_the_server(clean_python: Path, module: str) -> None:
    code = (
        f"import sys, {module}; print({module}.__file__); print(sorted(sys.modules.keys() & {SERVER_ONLY!r}))"
    )
    result = run(clean_python, "-W", "error", "-c", code)
    assert result.returncode == 0, result.stderr
    file, costs = result.stdout.splitlines()
    assert clean_python.parents[1] in Path(file).parents
    assert costs == "[]"


def test_the_same_holds_where_everything_is_installed() -> None:
    ours = SERVER_ONLY - {
        "grpc_health",
        "grpc_reflection",
    }  # `import grpc` itself imports these when it finds them
    code = f"import sys, quercus.client; print(sorted(sys.modules.keys() & {ours!r}))"
    result = run(Path(sys.executable), "-c", code)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "[]"


@pytest.mark.slow
def test_the_base_install_lacks_the_server_and_says_what_to_do(clean_python: Path) -> None:
    assert run(clean_python, "-c", "import sqlalchemy").returncode != 0
    quercus = str(clean_python.with_name("quercus"))
    assert run(Path(quercus), "--help").returncode == 0
    result = run(Path(quercus), "serve")
    assert result.returncode != 0
    assert "pip install 'quercus[server]'" in result.stdout + result.stderr


def test_the_oldest_protobuf_and_grpcio_are_those_that_the_code_was_generated_for() -> None:
    """A lower floor ends at the first import; a higher one keeps Quercus out of environments for nothing."""
    code = (ROOT / "proto/quercus/v1/model_pb2_grpc.py").read_text(encoding="utf-8")
    grpcio = re.search(r"GRPC_GENERATED_VERSION = '(.*)'", code)
    messages = (ROOT / "proto/quercus/v1/model_pb2.py").read_text(encoding="utf-8")
    protobuf = re.search(r"# Protobuf Python Version: (.*)", messages)
    assert grpcio is not None
    assert protobuf is not None
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    asked = [Requirement(each) for part in (project["dependencies"], *extras) for each in part]
    floors = {each.name: str(each.specifier) for each in asked}
    assert floors["protobuf"] == f">={protobuf[1]}"
    packages = {name: floor for name, floor in floors.items() if name.startswith("grpcio")}
    assert packages == dict.fromkeys(packages, f">={grpcio[1]}")


def test_no_dependency_of_users_has_a_cap() -> None:
    """A newer release that breaks something is found by tests; a cap breaks installations beside other packages."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    capped = {
        str(each)
        for part in (project["dependencies"], *extras)
        for each in map(Requirement, part)
        if any(bound.operator != ">=" for bound in each.specifier)
    }
    assert not capped


def test_what_is_built_for_is_what_package_indexes_show() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    built = declared["tool"]["cibuildwheel"]
    shown = set(declared["project"]["classifiers"])
    pythons = {f"Programming Language :: Python :: 3.{tag[3:5]}" for tag in built["build"]}
    assert {each for each in shown if re.search(r":: 3\.\d+$", each)} == pythons
    names = {"linux": "POSIX :: Linux", "macos": "MacOS", "windows": "Microsoft :: Windows"}
    systems = {f"Operating System :: {name}" for system, name in names.items() if system in built}
    assert {each for each in shown if each.startswith("Operating System ::")} == systems


def test_the_name_of_the_distribution_is_written_once() -> None:
    """The name may change before a release; every command that a message advises then has the new one."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == DISTRIBUTION
    spelled = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(
            rf"pip install '?{DISTRIBUTION}\b|(?:version|requires)\(['\"]{DISTRIBUTION}['\"]\)", line
        )
    ]
    # an example, a page, and the backend of the build, which runs where there is no package yet
    allowed = {"kernels/building.py", "specification/distribution.py", "view/plots/__init__.py"}
    assert {each.split(":")[0] for each in spelled} == allowed


def test_no_extra_brings_a_compiler() -> None:
    brought = brought_by(f"{DISTRIBUTION}[all]")
    assert {"numpy", "scikit-learn"} <= brought
    assert not brought & {"numba", "llvmlite", "ziglang"}


def test_the_extra_all_is_every_other() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    (line,) = extras["all"]
    assert Requirement(line).extras == set(extras) - {"all"}


def test_extras_that_messages_and_pages_advise_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    texts = [
        *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")),
        *(ROOT / "docs").rglob("*.md"),
    ]
    advice = (
        r"pip install '?(?:[\w-]+|\.)\[([\w,]+)\]",
        r"\binstall_command\(([^()]+)\)",
        r"\bneeds_extra\([^()]+, (\"\w+\")\)",
    )
    advised = {
        (path.name, extra)
        for path in texts
        for pattern in advice
        for extras in re.findall(pattern, path.read_text(encoding="utf-8"))
        for extra in re.findall(r"\w+", extras)
        if (path.name, extras) not in {("common.py", "extra"), ("distribution.py", "*extras: str")}
    }
    assert len(advised) > 20
    assert not {each for each in advised if each[1] not in project["optional-dependencies"]}


def test_the_version_is_written_once_and_heads_the_changelog() -> None:
    """In pyproject.toml; what was measured names the version that it was measured with."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert importlib.metadata.version(DISTRIBUTION) == version, "install again: make tests"
    alone = rf"(?<![\w.=-]){re.escape(version)}(?![\w.-])"
    found = subprocess.run(
        ["git", "grep", "-lIP", alone], cwd=ROOT, capture_output=True, text=True, check=True
    )
    naming = set(found.stdout.splitlines())
    assert naming - {"bench/RESULTS.md"} == {
        "pyproject.toml",
        "CHANGELOG.md",
        "deploy/helm/quercus/Chart.yaml",
    }
    headings = re.findall(
        r"^## \[(.+?)\](?: - (\d{4}-\d\d-\d\d))?$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE
    )
    assert [name for name, _ in headings[:2]] == ["Unreleased", version]
    assert headings[1][1], "a release has a date"
