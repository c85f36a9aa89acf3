"""Results as HTML for notebooks: small plain tables, escaped, without external resources.

Names and values come from sensors and labellers, so they are shown as text: without markup, mathematics for the
notebook to typeset, or characters that change the writing direction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Final

from quercus.client.values import Value, cell_of
from quercus.specification.attributes import plain_number
from quercus.specification.shares import decimal_text, percent_text
from quercus.specification.written_labels import write_set

if TYPE_CHECKING:
    from quercus.client.classifications import Classification, Classifications
    from quercus.client.results import Model, Query, Tree
    from quercus.client.tree_nodes import TreeNode

MOST_ROWS: Final = 30
"""Maximum number of rows in a table; a last line has the number of the others."""
MOST_CLASSES: Final = 8
"""Maximum number of classes with a column each."""
MOST_CHARACTERS: Final = 80
"""Maximum number of characters in a cell."""


def cell_text(value: object) -> str:
    r"""Return a value as the text of a cell, escaped and on one line.

    Examples
    --------
    >>> cell_text("<b onclick='x'>\u202e" + "$"), cell_text(1.5), cell_text(None)
    ('&lt;b onclick=&#x27;x&#x27;&gt;�$', '1.5', '')
    """
    text = "" if value is None else plain_number(value) if isinstance(value, float) else str(value)
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in " ".join(text.split()))
    return escape(text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…")


def table_html(title: str, header: Sequence[str], rows: Iterable[Sequence[object]], size: int) -> str:
    """Return a table.

    Parameters
    ----------
    title
        Title of the table.
    header
        Names of the columns.
    rows
        The cells, with numbers already formatted. Rows beyond `MOST_ROWS` are not consumed.
    size
        Number of all rows.
    """
    shown = [each for each, _ in zip(rows, range(MOST_ROWS), strict=False)]
    lines = [f"<tr>{''.join(f'<td>{cell_text(cell)}</td>' for cell in row)}</tr>" for row in shown]
    if size > len(shown):
        lines.append(f'<tr><td colspan="{len(header)}">… {size - len(shown):,} more</td></tr>')
    names = (f'<th scope="col">{cell_text(name)}</th>' for name in header)
    return (
        '<table class="tex2jax_ignore mathjax_ignore">'  # so that MathJax ignores it: names are not mathematics
        f"<caption>{cell_text(title)}</caption>"
        f"<thead><tr>{''.join(names)}</tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table>"
    )


def model_html(model: Model) -> str:
    """Return the state of a model as a table."""
    specification = model.specification
    learner = specification.learner
    accuracy = model.accuracy.accuracy if model.accuracy is not None else None
    rows = [
        ("classes", ", ".join(specification.classes)),
        ("attributes", f"{len(specification.attributes):,}"),
        ("learner", learner["name"] if isinstance(learner, Mapping) else learner),
        ("rows", f"{model.instance_count:,}"),
        ("answers", f"{model.queries_answered:,} of {model.budget:,}" if model.budget else "never asks"),
        ("refused", f"{model.queries_refused:,}"),
        ("open queries", f"{model.queries_open:,}"),
        ("leased queries", f"{model.queries_leased:,}"),
        ("newest tree", f"version {model.tree_version:,}" if model.tree_version else "none yet"),
        ("events not yet in it", f"{model.lag:,}"),
        ("recent accuracy", "not known yet" if accuracy is None else percent_text(accuracy, 1)),
    ]
    return table_html(f"model {model.name}", ("what", "value"), rows, len(rows))


def classification_html(found: Classification) -> str:
    """Return the prediction for a row as a table of the classes."""
    columns = (found.theta, found.pignistic, found.belief, found.plausibility)
    rows = ((name, *map(decimal_text, cells)) for name, *cells in zip(found.classes, *columns, strict=True))
    title = f"{found.label}, by tree {found.version}; not dominated: {write_set(found.label_set)}"
    if found.overlap is not None and found.ignorance is not None:
        title += f"; doubt in bits: overlap {found.overlap:.2f}, ignorance {found.ignorance:.2f}"
    return table_html(title, ("class", *_COLUMNS), rows, len(found.classes))


_COLUMNS: Final = ("probability", "pignistic", "belief", "plausibility")


def classifications_html(found: Classifications) -> str:
    """Return the predictions for rows as a table of classes and numbers."""

    def rows() -> Iterator[tuple[Any, ...]]:
        columns = (found.theta, found.pignistic, found.belief, found.plausibility)
        for row, index in enumerate(found.indices):
            values = (decimal_text(float(column[row, index])) for column in columns)
            yield (
                row,
                found.classes[index],
                *values,
                write_set(found.label_set(row)),
                *(decimal_text(float(bits[row])) for bits in kinds.values()),
            )

    kinds = {
        name: bits
        for name, bits in (("overlap", found.overlap), ("ignorance", found.ignorance))
        if bits is not None
    }
    title = f"{len(found):,} predictions, by tree {found.version}"
    return table_html(title, ("row", "class", *_COLUMNS, "not dominated", *kinds), rows(), len(found))


def query_html(query: Query) -> str:
    """Return a query as tables: the values of its row, and what is known of its class."""
    title = f"query {query.number} of {query.model}, {query.state}: row {query.instance}"
    values: Mapping[str, Value] = query.values
    shown = table_html(
        title, ("attribute", "value"), ((k, cell_of(v)) for k, v in values.items()), len(values)
    )
    if not query.contour:  # withheld from labellers
        return shown
    known = zip(query.classes, map(decimal_text, query.contour), strict=True)
    return shown + table_html("known of its class", ("class", "plausibility"), known, len(query.classes))


def tree_html(tree: Tree) -> str:
    """Return a tree as a table of its nodes in pre-order, each indented below its parent."""
    classes = tree.node_classes if len(tree.node_classes) <= MOST_CLASSES else ()

    def cells(node: TreeNode) -> tuple[object, ...]:
        branch = "\N{BOX DRAWINGS LIGHT VERTICAL}" * max(0, node.depth - 1)
        branch += "\N{BOX DRAWINGS LIGHT UP AND RIGHT}" * (node.depth > 0)
        shares = map(decimal_text, node.theta) if classes else ()
        split = "" if node.attribute is None else f"by {node.attribute}"
        return (
            f"{branch} {node.branch or ''}",
            node.class_name,
            f"{node.count:,}",
            *shares,
            split,
            ("undecided" if node.undecided else ""),
        )

    title = f"tree {tree.version} of {tree.model}, with {tree.as_of:,} events"
    header = ("branch", "class", "rows", *classes, "split", "state")
    return table_html(title, header, map(cells, tree.nodes), len(tree.nodes))
