"""Every example of the documentation runs, and prints what the page says."""

import doctest
import re
from pathlib import Path

import matplotlib as mpl
import pytest
from support.checkout import ROOT

EXAMPLES = re.compile(r"^```pycon\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [page for page in sorted((ROOT / "docs").glob("*.md")) if EXAMPLES.search(page.read_text())]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # they write files
    mpl.use("Agg")
    source = "\n".join(EXAMPLES.findall(page.read_text()))
    test = doctest.DocTestParser().get_doctest(source, {}, page.name, str(page), 0)
    told: list[str] = []
    results = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=told.append)
    mpl.pyplot.close("all")
    assert not told, "".join(told)
    assert results.attempted > 0


def test_pages_have_examples() -> None:
    assert {"estimators.md", "files.md"} <= {page.name for page in PAGES}
