"""A tree in Graphviz's language."""

from quercus.specification.class_marks import PATTERNS
from quercus.trees import FlatTree, Node, TreeNames, fold_tree
from quercus.view.trees.words import NodeWords, shortened_text


def to_dot(tree: FlatTree | Node, names: TreeNames, depth: int | None = None) -> str:
    """Return the tree in Graphviz's language, down to a depth, if given.

    A node has the colour of its class. Graphviz has no patterns, so the number of border lines, one to four, stands for
    the pattern of the class. Undecided nodes are dashed.
    """
    folded = fold_tree(tree, depth)
    flat = folded.flat
    nodes, edges = [], []
    for index in range(flat.size):
        words = NodeWords.of(folded, index, names)
        mark = names.mark_of(int(flat.klass[index]))
        label = "\\n".join(map(quoted_text, words.picture_lines))
        style = f"rounded,filled{',dashed' if words.undecided else ''}"
        lines = 1 + PATTERNS.index(mark.pattern)
        border = f", peripheries={lines}" if lines > 1 else ""
        nodes.append(
            f'  n{index} [label="{label}", color="{mark.light}", fillcolor="{mark.light}22", style="{style}"{border}];'
        )
        if index:
            branch = quoted_text(shortened_text(words.branch))
            edges.append(f'  n{int(flat.parent[index])} -> n{index} [label="{branch}"];')
    head = [
        "digraph tree {",
        '  node [shape=box, style="rounded,filled", fontname="Helvetica", fontsize=10];',
        '  edge [fontname="Helvetica", fontsize=9];',
    ]
    return "\n".join([*head, *nodes, *edges, "}"])


def quoted_text(text: str) -> str:
    """Return `text` escaped for a quoted DOT label."""
    return text.replace("\\", "\\\\").replace('"', '\\"')
