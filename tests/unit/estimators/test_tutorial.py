"""Every example of docs/estimators.md runs and prints what the page says."""

import doctest
import re
from pathlib import Path

import matplotlib as mpl
import pytest
from support.checkout import ROOT

PAGE = ROOT / "docs" / "estimators.md"


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the examples write files
    mpl.use("Agg")
    blocks = re.findall(r"^```pycon\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 8
    source = "\n".join(blocks)
    test = doctest.DocTestParser().get_doctest(source, {}, PAGE.name, str(PAGE), 0)
    told: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=told.append)
    mpl.pyplot.close("all")
    assert not told, "".join(told)
    assert {path.name for path in tmp_path.iterdir()} == {"flowers.csv", "iris.svg", "iris.png"}
