"""The names in the documentation exist: files, links, make targets, import names."""

import ast
import importlib.util
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from math_core import LatexError, LatexToMathML
from support.checkout import ROOT

from quercus.storage.queries.records import QueryState

PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
TARGETS = set(re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))


def page_id(page: Path) -> str:
    return page.name


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def test_readme_opens_with_the_two_commands() -> None:
    commands = [line.split("#")[0].strip() for line in (ROOT / "README.md").read_text().splitlines()[1:3]]
    assert commands == ["make demo", "make test"]
    assert (ROOT / "README.md").read_text().startswith("```")


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_paths_in_code_marks_exist(page: Path) -> None:
    named = re.findall(
        r"`((?:belief|specification|trees|storage|proto|server|client|cli|files|view|estimators|experiments|tests|docs|bench|src)/[\w./*-]*)`",
        page.read_text(),
    )
    missing = [name for name in named if not list(ROOT.glob(name.rstrip("/")))]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    assert not [link for link in links if not (page.parent / link).exists()]


def test_every_page_is_in_the_index() -> None:
    docs = ROOT / "docs"
    listed = set(re.findall(r"^([\w/-]+)$", (docs / "index.md").read_text(), re.MULTILINE))
    there = {str(page.relative_to(docs).with_suffix("")) for page in docs.rglob("*.md")}
    inside = {
        name for name in there if re.match(r"theory/|reference/(rpc|python)-", name)
    }  # listed elsewhere
    assert there - inside - {"index"} <= listed


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives the headings of a page."""
    prose = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_lead_to_headings(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", page.read_text())
    assert not [
        (file, name) for file, name in links if name not in anchors(page.parent / file if file else page)
    ]


def prose(text: str) -> str:
    """Return the text of a page without blocks and words of code."""
    outside = re.sub(r"^( *)```.*?^\1```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`|^    .*$", "", outside, flags=re.MULTILINE)


def formulas(text: str) -> tuple[list[str], list[str]]:
    """Return the formulas within the lines of a page, and those on lines of their own."""
    shown = re.findall(r"^( *)```math\n(.*?)^\1```$", text, re.MULTILINE | re.DOTALL)
    return re.findall(r"\$([^$\n]+)\$", prose(text)), [formula for _, formula in shown]


def faults_of_formulas(text: str) -> list[str]:
    """Return what keeps the formulas of a page from being read on the site or on GitHub."""
    inline, shown = formulas(text)
    converter, faults = LatexToMathML(fancy_error=False), []
    for formula in inline + shown:
        try:
            converter.convert_with_local_state(formula, displaystyle=True)
        except LatexError as error:
            faults.append(f"{formula}: {error}")
    # GitHub reads a backslash before punctuation, and a bar in a table, before it reads the formula.
    faults += [f"{formula}: GitHub" for formula in inline if re.search(r"\\[^A-Za-z]|\||^ | $", formula)]
    if prose(text).count("$") != 2 * len(inline):
        faults.append("a dollar sign without its other one on the same line")
    return faults


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_formulas_are_set(page: Path) -> None:
    assert not faults_of_formulas(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "text",
    [
        r"an unknown command $\nosuch{x}$",
        r"a brace that GitHub drops $\{a, b\}$",
        "a bar that ends a cell of a table: $|A|$",
        "broken $a +\nb$ over two lines",
        "```math\n\\frac{a}\n```",
    ],
)
def test_a_formula_that_cannot_be_read_is_found(text: str) -> None:
    assert len(faults_of_formulas(text)) >= 1


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "theory").glob("*.md")), ids=page_id)
def test_no_formula_of_the_theory_is_printed_as_code(page: Path) -> None:
    as_code = re.findall(r"`[^`\n]*[θαλΣ∑ℓ√≤≥∝⌊∈∩∪][^`\n]*`|^    .*[=≤≥∝].*$", page.read_text(), re.MULTILINE)
    assert not [code for code in as_code if "quercus" not in code]


def test_diagrams_are_those_of_their_script() -> None:
    script = ROOT / "docs" / "pictures" / "diagrams.py"
    spec = importlib.util.spec_from_file_location("diagrams", script)
    assert spec is not None
    assert spec.loader is not None
    diagrams = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(diagrams)
    kept = {path.stem: path.read_text(encoding="utf-8") for path in script.parent.glob("*.svg")}
    assert {name: draw() for name, draw in diagrams.DIAGRAMS.items()} == kept


def test_the_states_of_a_query_are_drawn() -> None:
    picture = (ROOT / "docs" / "pictures" / "query-states.svg").read_text(encoding="utf-8")
    assert {state.name for state in QueryState} == set(re.findall(r'class="name"[^>]*>([A-Z]+)<', picture))


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_make_targets_exist(page: Path) -> None:
    named = re.findall(r"(?:`|^)make ([a-z-]+)", page.read_text(), re.MULTILINE)
    assert set(named) <= TARGETS


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_python_imports_work(page: Path) -> None:
    for block in blocks(page, "python"):
        imports = [node for node in ast.parse(block).body if isinstance(node, ast.Import | ast.ImportFrom)]
        assert imports
        exec("\n".join(map(ast.unparse, imports)), {})  # noqa: S102 - our own page


def sections_of_the_theory() -> set[str]:
    text = "\n".join(page.read_text() for page in (ROOT / "docs" / "theory").glob("*.md"))
    return set(re.findall(r"^#+ (\d+(?:\.\d+)?) ", text, re.MULTILINE))


def test_every_section_that_code_cites_exists() -> None:
    cited: dict[str, str] = {}
    for file in subprocess.run(
        ["git", "ls-files", "*.py", "*.md", "*.proto"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split():
        if (ROOT / file).is_file():
            text = (ROOT / file).read_text()
            for run in re.findall(r"theory (§\d[\d.]*(?:(?:, | and |-)§?\d[\d.]*)*)", text):
                cited |= {number.rstrip("."): file for number in re.findall(r"\d+(?:\.\d+)?", run)}
            if file.startswith("docs/theory/"):
                cited |= dict.fromkeys(re.findall(r"§(\d+(?:\.\d+)?)", text), file)
    assert len(cited) > 20
    assert not {number: file for number, file in cited.items() if number not in sections_of_the_theory()}


def test_no_founding_note_is_cited_that_the_repository_does_not_hold() -> None:
    grep = ["git", "grep", "-lE", "LEARNERS §|DESIGN §", "--", "*.py", "*.md", "*.proto"]
    found = subprocess.run(grep, cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    assert set(found) <= {"tests/unit/test_docs.py"}


SUBORDINATE = re.compile(r'^\s*r?"""(What|Who|Whose|Whom|Which|How|Where|When|Whether|Of|Be)\b', re.MULTILINE)
"""The beginning of a docstring that is a subordinate clause, a preposition or an order to nobody."""


def subordinate_docstrings(root: Path, files: Iterable[str]) -> list[str]:
    """Return the docstrings that begin with neither a subject nor a verb: the file and the first word of each."""
    return [f"{file}: {word}" for file in files for word in SUBORDINATE.findall((root / file).read_text())]


def test_docstrings_begin_with_a_subject_or_a_verb() -> None:
    command = ["git", "ls-files", "*.py"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    files = [file for file in listed if (ROOT / file).is_file()]
    assert len(files) > 500
    assert not subordinate_docstrings(ROOT, files)


@pytest.mark.parametrize(
    "word", ["What", "Who", "Whose", "Which", "How", "Where", "When", "Whether", "Of", "Be"]
)
def test_a_docstring_that_begins_with_a_subordinate_clause_is_found(tmp_path: Path, word: str) -> None:
    (tmp_path / "planted.py").write_text(f'"""A module."""\n\ndef f():\n    """{word} it is."""\n')
    assert subordinate_docstrings(tmp_path, ["planted.py"]) == [f"planted.py: {word}"]


def test_make_help_lists_every_target() -> None:
    result = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True)
    listed = set(re.findall(r"^  make ([a-z-]+)", result.stdout, re.MULTILINE))
    assert (
        listed
        == {
            "examples",
            "chart",
            "floors",
            "help",
            "release-checks",
            "client",
            "demo",
            "docs",
            "pictures",
            "screens",
            "estimators",
            "release",
            "audit",
            "test",
            "test-all",
            "serve",
            "proto",
            "kernels",
            "wheels",
            "bench",
            "torture",
            "compiled-tests",
            "released",
            "cluster-torture",
            "fuzz",
            "labelling-trial",
            "leases",
            "faults",
            "flood",
            "laws",
            "power-cuts",
            "release-tests",
            "soak",
            "clean",
        }
        == TARGETS
    )
