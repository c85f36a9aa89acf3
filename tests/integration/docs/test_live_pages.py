"""The shell and Python blocks of each page, in order, with a live server: they work, and print what is shown."""

import contextlib
import doctest
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration.client.serving import TABLE_T, Serving
from support.doc_blocks import DOCS, Block, blocks, pages
from support.http_calls import free_port

from quercus.client import Client, Nominal, Numeric, Specification

BIN = Path(sys.executable).parent
LIVE = {
    page: [block for block in blocks(page) if block.language in {"python", "sh"} and block.why_not is None]
    for page in pages()
    if page.parent == DOCS or DOCS in page.parents
}
PAGES = [page for page, found in LIVE.items() if found]
LONG = {"archive", "backup", "choose-a-learner", "draw-pictures"}
"""Pages that take longest, and that newcomers do not follow; a release runs them."""
WAIT_S = 120
HTTP_PORT = free_port()
pytestmark = pytest.mark.timeout(400)


def wine_csv(column: str) -> str:
    from sklearn.datasets import load_wine

    frame = load_wine(as_frame=True).frame[["alcohol", "proline", "target"]]
    frame["target"] = frame["target"].map({0: "Barolo", 1: "Grignolino", 2: "Barbera"})
    return str(frame.rename(columns={"target": column}).to_csv(index=False))


def set_up_labelling(client: Client, folder: Path) -> None:
    client.create_model(
        "wine",
        Specification([Nominal("tint", ["dark", "pale"])], ["red", "white"], budget=3, min_instances=1),
    )
    client.push("wine", [{"tint": "dark"}, {"tint": "pale"}] * 12, ids=[str(k) for k in range(24)])


def set_up_display(client: Client, folder: Path) -> None:
    client.create_model("wine", Specification([Numeric("alcohol")], ["red", "white"]))


def set_up_pictures(client: Client, folder: Path) -> None:
    (folder / "wine.csv").write_text(wine_csv("class"))
    rows = [{"alcohol": 11.0 + k % 7, "proline": 300.0 + 90 * (k % 11)} for k in range(60)]
    client.create_model(
        "wine", Specification([Numeric("alcohol", cuts=8), Numeric("proline", cuts=8)], ["red", "white"])
    )
    client.push("wine", rows, ["red" if k % 7 > 3 else "white" for k in range(60)])
    client.wait_grown("wine")


def set_up_serving(client: Client, folder: Path) -> None:
    (folder / "wine.csv").write_text(wine_csv("cultivar"))
    (folder / "dogs.csv").write_text(TABLE_T.replace("class", "breed"))
    colours = "colour,length,species\n" + "red,2.5,setosa\ngreen,3.5,virginica\nblue,5.0,versicolor\n" * 8
    (folder / "iris.csv").write_text(colours)


def set_up_crowd(client: Client, folder: Path) -> None:
    client.create_model(
        "crowd", Specification([Numeric("x", cuts=8)], ["good", "bad"], budget=20, min_instances=1)
    )
    client.push("crowd", [{"x": float(k)} for k in range(30)], ids=[str(k) for k in range(30)])
    rows = "".join(f"{k},{'good' if k > 12 else 'bad'}\n" for k in range(30))
    (folder / "truth.csv").write_text("x,quality\n" + rows)


def set_up_choice(client: Client, folder: Path) -> None:
    (folder / "truth.csv").write_text(wine_csv("wine"))


def set_up_store(client: Client, folder: Path) -> None:
    from quercus.storage import Store

    Store.open(f"sqlite:///{folder / 'quercus.db'}").close()


def set_up_archive(client: Client, folder: Path) -> None:
    from quercus.server.wire.models import complete_specification
    from quercus.storage import Store
    from quercus.v1 import model_pb2

    message = model_pb2.Specification(
        attributes=[model_pb2.Attribute(name="alcohol", numeric=model_pb2.NumericAttribute())],
        classes=["red", "white"],
    )
    with Store.open(f"sqlite:///{folder / 'quercus.db'}") as store:
        store.create_model("wine", complete_specification(message).SerializeToString(), budget=0)


BEFORE = {
    "display.md": set_up_display,
    "draw-pictures.md": set_up_pictures,
    "labelling.md": set_up_labelling,
    "serving.md": set_up_serving,
    "several-labellers.md": set_up_crowd,
    "choose-a-learner.md": set_up_choice,
    "archive.md": set_up_archive,
    "backup.md": set_up_store,
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A server of its own: pages use names that other tests use too."""
    serving = Serving(tmp_path_factory.mktemp("docs"), http_port=HTTP_PORT)
    yield serving
    assert serving.stop() == 0


def run_shell(code: str, folder: Path, server: str) -> str:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", code],
        cwd=folder,
        env=os.environ
        | {
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "QUERCUS_SERVER": server,
            "URL": f"http://127.0.0.1:{HTTP_PORT}",
            "NO_COLOR": "1",
        },
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert done.returncode == 0, f"{code}\n{done.stdout}{done.stderr}"
    return done.stdout


def run_python(code: str, names: dict[str, object], page: Path, line: int) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("\n" * line + code, str(page), "exec"), names)  # noqa: S102 - our own page
    return printed.getvalue()


def check_output(block: Block, printed: str, page: Path) -> None:
    if block.output is not None:
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        same = doctest.OutputChecker().check_output(block.output, printed, flags)
        assert same, f"{page.name}, line {block.line}: printed\n{printed}\ninstead of\n{block.output}"


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.release if page.stem in LONG else ()) for page in PAGES],
    ids=lambda page: page.stem,
)
def test_the_blocks_of_a_page(
    page: Path, server: Serving, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QUERCUS_SERVER", server.address)
    with Client(server.address) as client:
        for model in list(client.models()):
            client.delete_model(model.name)
        BEFORE.get(page.name, lambda *_: None)(client, tmp_path)
    names: dict[str, object] = {}
    for block in LIVE[page]:
        if block.language == "sh":
            printed = run_shell(block.code, tmp_path, server.address)
        else:
            printed = run_python(block.code, names, page, block.line)
        check_output(block, printed, page)


def test_pages_that_newcomers_follow_are_run() -> None:
    assert {"tutorial", "sensor", "custom-labeller", "doubtful-oracle", "several-labellers"} <= {
        p.stem for p in PAGES
    }
