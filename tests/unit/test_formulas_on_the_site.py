"""Formulas of the documentation become MathML in the pages of the site, without a script."""

import subprocess
import sys
from pathlib import Path

import pytest
from support.checkout import ROOT

CONFIGURATION = f"""
import sys
sys.path.insert(0, {str(ROOT / "docs" / "extensions")!r})
extensions = ["myst_parser", "mathml"]
myst_enable_extensions = ["dollarmath"]
myst_fence_as_directive = ["math"]
html_math_renderer = "mathml"
html_theme = "basic"
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """Build a site with warnings as errors: one page with good formulas, and one with a formula that is none."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "conf.py").write_text(CONFIGURATION)
    (folder / "index.md").write_text(
        "# A page\n\nThe ends ($\\overline{S}$), and\n\n```math\n\\sum_i w_i\n```\n\n```{toctree}\nbad\n```\n"
    )
    (folder / "bad.md").write_text("# A bad page\n\nThe end $\\nosuch{x}$.\n")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-W",
        "--keep-going",
        "-b",
        "html",
        folder,
        folder / "built",
    ]
    return folder / "built", subprocess.run(command, capture_output=True, text=True, check=False)


def test_formulas_are_mathml(site: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    shown = (site[0] / "index.html").read_text(encoding="utf-8")
    # on one line with what touches it, and a line above that browsers set where it belongs
    assert '<span class="together">(<math><mover' in shown
    assert "\u203e" in shown
    assert "\u0332" not in shown
    assert "</math>),</span>" in shown
    assert '<div class="formula"><math display="block"' in shown
    assert "\\sum" not in shown


def test_a_formula_that_is_not_latex_fails_the_build(
    site: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    assert site[1].returncode != 0
    assert "cannot set the formula '\\\\nosuch{x}'" in site[1].stderr
    assert "bad.md:3" in site[1].stderr
    assert "index.md" not in site[1].stderr
