"""Formulas as MathML, which every browser draws itself: no script, and nothing is fetched.

A formula that is not LaTeX is a warning with the place of the formula, and `make docs` makes an error of it.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from math_core import LatexError, LatexToMathML
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
CONVERTER = LatexToMathML(fancy_error=False)
COMBINING_LINE, OVERLINE = "\u0332", "\u203e"
"""Browsers set a stretched combining line beside the letter, and a stretched overline above or below it."""
OPENING, CLOSING = "([", ".,;:)]?!"


def _show(translator: Any, node: nodes.Element, *, block: bool) -> None:
    try:
        shown = CONVERTER.convert_with_local_state(node.astext(), displaystyle=block)
    except LatexError as error:
        LOGGER.warning("cannot set the formula %r: %s", node.astext(), error, location=node)
        shown = f"<code>{translator.encode(node.astext())}</code>"
    shown = shown.replace(COMBINING_LINE, OVERLINE)
    translator.body.append(f'<div class="formula">{shown}</div>\n' if block else shown)
    raise nodes.SkipNode


def show_inline(translator: Any, node: nodes.Element) -> None:
    """Write a formula within a line."""
    _show(translator, node, block=False)


def show_block(translator: Any, node: nodes.Element) -> None:
    """Write a formula on a line of its own."""
    _show(translator, node, block=True)


def keep_together(app: Any, document: nodes.document) -> None:
    """Put each formula on one line with the brackets and the punctuation that touch it: browsers part them."""
    for formula in list(document.findall(nodes.math)):
        parent, place = formula.parent, formula.parent.index(formula)
        whole = nodes.inline("", "", formula, classes=["together"])
        parent[place] = whole
        if place + 1 < len(parent) and isinstance(parent[place + 1], nodes.Text):
            text = str(parent[place + 1])
            rest = text.lstrip(CLOSING)
            whole += nodes.Text(text[: len(text) - len(rest)])
            parent[place + 1] = nodes.Text(rest)
        if place and isinstance(parent[place - 1], nodes.Text):
            text = str(parent[place - 1])
            rest = text.rstrip(OPENING)
            whole.insert(0, nodes.Text(text[len(rest) :]))
            parent[place - 1] = nodes.Text(rest)


def setup(app: Any) -> dict[str, object]:
    """Make the renderer known to Sphinx."""
    app.add_html_math_renderer(
        "mathml", inline_renderers=(show_inline, None), block_renderers=(show_block, None)
    )
    app.connect("doctree-read", keep_together)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
