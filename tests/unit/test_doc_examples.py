"""Every example of the documentation runs and prints what the page says, or is marked with the reason why not.

Sessions of Python (``pycon``) run here. Blocks of ``sh`` and ``python`` need a server:
tests/integration/docs/test_live_pages.py runs them; those of the README tests/integration/test_readme.py.
"""

import doctest
from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib import pyplot as plt
from support.checkout import ROOT
from support.doc_blocks import RUN, SHOWN, blocks, pages

SESSIONS = {
    page: [block for block in blocks(page) if block.language == "pycon" and block.why_not is None]
    for page in pages()
}
PAGES = [page for page, found in SESSIONS.items() if found]
NOT_RUN = 23
"""Number of blocks that no test runs. Another one needs a reason, and a change of this number."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # they write files
    mpl.use("Agg")
    source = "\n".join(block.code for block in SESSIONS[page])
    test = doctest.DocTestParser().get_doctest(source, {}, page.name, str(page), 0)
    told: list[str] = []
    results = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=told.append)
    plt.close("all")
    assert not told, "".join(told)
    assert results.attempted > 0


def test_pages_have_examples() -> None:
    assert {"estimators.md", "files.md", "belief-functions.md"} <= {page.name for page in PAGES}


def test_every_block_is_run_or_marked() -> None:
    marked = 0
    for page in pages():
        for block in blocks(page):
            where = f"{page.relative_to(ROOT)}, line {block.line}"
            assert block.language == "" or block.language in RUN + SHOWN, f"{where}: {block.language!r}"
            if block.why_not is not None:
                assert len(block.why_not) > 10, f"{where}: why is it not run?"
                marked += 1
    assert marked == NOT_RUN
