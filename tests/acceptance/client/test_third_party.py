"""A package of somebody else's, installed beside Quercus, of which no file of Quercus knows."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from integration.client.serving import Serving
from support.checkout import ROOT
from support.command_line import quercus
from support.consoles import ConsoleProcess, Visitor
from support.terminals import Screen

from quercus.client import Client, InvalidArgument, Numeric, QuercusError, Specification

FILE = """\
id    size  colour  kind
r1    1.5   red     p
r2    2.5   blue    q
r3    ?     red     p
r4    4.0           q
r5    3.0   red
"""
NEAREST = {"name": "nearest", "neighbours": 3}
WHY = "Nobody has looked at what came last."
ABSENT = {
    "not installed": "acme-quercus 1.0, which is not installed on this server. "
    "Install it (pip install acme-quercus) and restart the server.",
    "not chosen": "acme-quercus 1.0, which this server does not use. "
    "Add acme-quercus to its setting plugins and restart the server.",
}


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """Install the package for the processes that start; yields their environment."""
    folder = tmp_path_factory.mktemp("installed")
    source = tmp_path_factory.mktemp("source") / "package"  # setuptools builds in it
    shutil.copytree(ROOT / "tests" / "third_party", source, ignore=shutil.ignore_patterns("__pycache__"))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    alone = ["--no-deps", "--no-build-isolation", "--no-index", "--target", str(folder), str(source)]
    done = subprocess.run([*pip, *alone], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYTHONPATH", str(folder))
        yield {**os.environ, "NO_COLOR": "1"}


def waiting(client: Client, model: str = "parts") -> set[str]:
    return {each.instance for each in client.list_queries(model, ["open"])}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "parts.fwf"
    path.write_text(FILE)
    return path


def run(*arguments: str, server: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(Path(sys.executable).with_name("quercus")), *arguments],
        env={**environment, "QUERCUS_SERVER": server},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def started(folder: Path, **settings: object) -> Serving:
    """A server that starts as a user starts it: one that is forked would know the plug-ins of its parent alone."""
    with (folder / "log").open("a") as log:
        return Serving(folder, 0, "--log-level", "warning", stderr=log, **settings)


@pytest.mark.timeout(400)  # a dozen processes, each of which imports the package
def test_its_learner_its_strategy_and_its_reader_are_used_by_name(
    tmp_path: Path, file: Path, beside: Mapping[str, str]
) -> None:
    server = started(tmp_path)
    rows = [[1.4, "red"], [3.9, None]]
    try:
        learner = ("--learner", "nearest", "-p", "neighbours=3", "--strategy", "newest")
        asking = ("--strategy-parameter", "among=4", "--budget", "5")
        for arguments in (
            ("models", "create", "parts", str(file), "--class", "kind", "--ignore", "id", *learner, *asking),
            ("push", "parts", str(file), "--labels", "--class", "kind", "--id-column", "id"),
        ):
            done = run(*arguments, server=server.address, environment=beside)
            assert done.returncode == 0, done.stderr
        refused = run(
            "models", "create", "other", str(file), "--class", "kind", "--learner", "nearest", "-p", "reach=0",
            server=server.address, environment=beside,
        )  # fmt: skip
        assert "reach: is 0, must lie in [0.001, 1000]" in refused.stderr
        few = ("--strategy", "newest", "--strategy-parameter", "among=1")
        changed = run("models", "update", "parts", *few, server=server.address, environment=beside)
        assert "newest (among 1)" in changed.stdout, changed.stderr

        screen = Screen("label", "parts", "--labeller", "ann", server=server.address)
        assert WHY in screen.expect("! quit")  # q is a class
        screen.press("!")
        assert screen.ended() == 0
        console = ConsoleProcess(server.address)
        try:
            visitor = Visitor(console.port)
            assert visitor.sign_in(name="bob").status == 303
            page = visitor.get("/m/parts/label").text
            assert (
                "The labels of the nearest rows" in visitor.upload("parts.csv", b"size,kind\n1,p\n2,q\n").text
            )
            fields = {
                "model": "formed",
                "class": "kind",
                "kind-0": "number",
                "budget": "5",
                "learner.name": "nearest",
            }
            asked = {
                "learner.neighbours": "7",
                "strategy.name": "newest",
                "strategy.among": "1",
                "labels": "known",
                "classes": "",
                "id": "",
                "cuts": "8",
            }
            made = visitor.form("/create", fields | asked)
            assert made.status == 303, made.text
        finally:
            console.stop()
        assert WHY in page
        assert "newer rows" in page

        with Client(server.address) as client:
            (declared,) = [each for each in client.learners() if each.name == "nearest"]
            assert declared.package == "acme-quercus 1.0"
            assert [each.name for each in declared.parameters] == ["neighbours", "reach"]
            (asking,) = [each for each in declared.strategies if each.name == "newest"]
            assert (asking.summary, asking.package) == ("The row that was pushed last.", "acme-quercus 1.0")
            assert [each.bound_text for each in asking.parameters] == [
                "must be a whole number in [1, 1000000]"
            ]
            with pytest.raises(
                InvalidArgument, match=r"among: is 0, must be a whole number in \[1, 1000000\]"
            ):
                client.update_model("parts", strategy={"name": "newest", "among": 0})
            formed = client.get_model("formed").specification
            assert formed.learner["neighbours"] == 7
            assert formed.strategy == {"name": "newest", "among": 1}
            client.wait_grown("parts", timeout_s=60)
            assert waiting(client) == {"r5"}
            before = client.classify("parts", rows)
            assert before.labels == ["p", "q"]
            with pytest.raises(QuercusError, match="has no trees to show"):
                client.tree("parts")
        server.stop()
        server = started(tmp_path)
        with Client(server.address) as client:
            again = client.classify("parts", rows)
            assert client.get_model("parts").specification.strategy == {"name": "newest", "among": 1}
            client.push("parts", [[3.5, "red"]], ids=["r6"])
            client.wait_grown("parts", timeout_s=60)
            assert waiting(client) == {"r6"}
        assert again.theta.tolist() == before.theta.tolist()
    finally:
        server.stop()


@pytest.mark.parametrize("absent", [pytest.param("not installed", marks=pytest.mark.release), "not chosen"])
def test_without_the_package_the_other_models_are_served(
    tmp_path: Path, beside: Mapping[str, str], monkeypatch: pytest.MonkeyPatch, absent: str
) -> None:
    attributes, classes = [Numeric("size")], ["p", "q"]
    missing = re.escape(ABSENT[absent])
    server = started(tmp_path)
    try:
        with Client(server.address) as client:
            client.create_model("near", Specification(attributes, classes, learner=NEAREST))
            client.create_model("asked", Specification(attributes, classes, strategy="newest", budget=3))
            client.create_model("plain", Specification(attributes, classes, budget=3))
            for model in ("near", "asked", "plain"):
                client.push(model, [[1.0], [3.0]], ["p", "q"])
                client.wait_grown(model, timeout_s=60)
        server.stop()
        if absent == "not installed":
            monkeypatch.delenv("PYTHONPATH")
            server = started(tmp_path)
        else:
            server = started(tmp_path, plugins="quercus")
        with Client(server.address, outage_s=0) as client:
            client.push("plain", [[2.9]], ["q"])
            client.wait_grown("plain", timeout_s=60)
            assert client.classify("plain", [[1.0], [3.0]]).labels == ["p", "q"]
            assert {each.name for each in client.models()} == {"asked", "near", "plain"}
            with pytest.raises(QuercusError, match=f"a learner of the package {missing}"):
                client.classify("near", [[1.0]])
            client.push("asked", [[1.1], [2.0]], ["p", None])
            client.wait_grown("asked", timeout_s=60)
            assert client.classify("asked", [[1.0], [3.0]]).labels == ["p", "q"]
            assert f"its strategy newest is a strategy of the package {ABSENT[absent]}" in (
                client.get_model("asked").asking_stopped
            )
            assert not waiting(client, "asked")
            with pytest.raises(InvalidArgument, match=f"is 'newest', a strategy of the package {missing}"):
                client.update_model("asked", budget=4)
            if absent == "not chosen":
                assert client.update_model("asked", strategy="margin").asking_stopped == ""
                client.wait_grown("asked", timeout_s=60)
                (query,) = client.lease("asked", "ann", wait_s=30.0).queries
                assert query.reason.strategy == "margin"
            with pytest.raises(InvalidArgument, match="is 'nearest', must be one of abc45, "):
                client.create_model("more", Specification(attributes, classes, learner=NEAREST))
        server.stop()
        if absent == "not installed":
            monkeypatch.undo()
            server = started(tmp_path)
            with Client(server.address) as client:
                (query,) = client.lease("asked", "ann", wait_s=30.0).queries
                assert query.reason.strategy == "newest"
                assert client.get_model("asked").asking_stopped == ""
    finally:
        server.stop()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_server_is_not_started_for_plugins_that_are_not_there(tmp_path: Path, workers: str) -> None:
    done = quercus(
        "serve",
        "--workers",
        workers,
        "--store",
        str(tmp_path / "q.db"),
        environment=os.environ | {"QUERCUS_PLUGINS": "quercus, nobody"},
    )
    assert done.returncode != 0
    assert "error: plugins: 'nobody' is not an installed package with plug-ins" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.release
def test_a_file_format_of_another_package(
    server: str, name: str, file: Path, beside: Mapping[str, str]
) -> None:
    create = ("models", "create", name, str(file), "--class", "kind", "--ignore", "id")
    push = ("push", name, str(file), "--labels", "--class", "kind", "--id-column", "id")
    for arguments in (create, push):
        done = run(*arguments, server=server, environment=beside)
        assert done.returncode == 0, done.stderr
    shown = json.loads(run("models", "show", name, "--json", server=server, environment=beside).stdout)
    assert shown["instance_count"] == 5
    assert [each["name"] for each in shown["specification"]["attributes"]] == ["size", "colour"]
    found = json.loads(run("doctor", "--json", server=server, environment=beside).stdout)
    (plugins,) = [each for each in found["checks"] if each["name"] == "plug-ins"]
    assert plugins["found"] == (
        "learner nearest (acme_quercus.nearest:Nearest of acme-quercus 1.0), "
        "strategy newest (acme_quercus.newest:Newest of acme-quercus 1.0), "
        "reader of files fwf (acme_quercus.fixed_width:open_fwf of acme-quercus 1.0)"
    )
    file.write_text("\n")
    bad = run("push", name, str(file), server=server, environment=beside)
    assert bad.returncode != 0
    assert "has no header: write the name of each column" in bad.stderr


def test_without_the_package_the_file_is_read_as_csv(server: str, name: str, file: Path) -> None:
    done = quercus("models", "create", name, str(file), "--class", "kind", server=server)
    assert done.returncode != 0
    assert "kind" in done.stderr
