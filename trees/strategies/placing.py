"""Where in the tree a row stands: what a query says of itself that no round of a node has brought about."""

from quercus.trees.query import Asked, Desk, Query


def query_at(desk: Desk, instance: int, score: float) -> Query:
    """Return the query about `instance`, which stands for the node in which it ends."""
    flat = desk.flat()
    node = int(flat.route(desk.sample.codes[instance : instance + 1])[0])
    path = flat.path(node)
    return Query(
        instance=instance,
        path=path,
        attribute=None,
        code=None,
        score=score,
        rivals=(),
        asked=Asked(path, None, None, ()),
        node_count=int(flat.count[node]),
    )
