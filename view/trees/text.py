"""A tree as lines of text, for files and programs; `quercus.view.terminal.trees` shows the same words at a terminal.

That module colours and wraps its lines with Rich, which is six times slower, and not needed by server and estimators.
"""

from quercus.trees import FlatTree, Node, TreeNames, fold_tree
from quercus.view.trees.words import NodeWords


def to_text(tree: FlatTree | Node, names: TreeNames, depth: int | None = None) -> str:
    """Return the tree as indented lines, one per node.

    A line has the branch, the class, the number of instances, the class probabilities and the split below the node;
    undecided nodes are marked. Nodes deeper than `depth` are counted, not shown.

    Examples
    --------
    >>> leaf = dict(attribute=None, theta=(1.0, 0.0), belief=(1.0, 0.0), plausibility=(1.0, 0.0))
    >>> below = {0: Node(klass=0, count=2, **leaf), 1: Node(klass=0, count=1, **leaf)}
    >>> root = Node(klass=0, count=3, children=below, **{**leaf, "attribute": 0})
    >>> print(to_text(root, TreeNames(("yes", "no"), ("wind",), (("weak", "strong"),))))
    yes  n=3  (yes 1.00  no 0.00)  by wind
    ├── weak: yes  n=2  (yes 1.00  no 0.00)
    └── strong: yes  n=1  (yes 1.00  no 0.00)
    """
    folded = fold_tree(tree, depth)
    parents = folded.flat.parent.tolist()
    last_child = {parent: index for index, parent in enumerate(parents)}
    indent, lines = [""], []
    for index, parent in enumerate(parents):
        line = "".join(text for _, text in NodeWords.of(folded, index, names).parts)
        if index:
            is_last = last_child[parent] == index
            indent.append(indent[parent] + ("    " if is_last else "│   "))
            line = f"{indent[parent]}{'└── ' if is_last else '├── '}{line}"
        lines.append(line)
    return "\n".join(lines)
