"""No module imports itself, by whatever way round."""

import grimp
import pytest
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

TYPES_ALONE = [
    # the results are generated, and their base classes and tables in notebooks name them
    [f"quercus.client.{name}" for name in ("additions", "classifications", "notebooks", "results")],
    # a prepared statement is run by a backend, whose methods take it
    [f"quercus.storage.{name}" for name in ("backend", "prepared")],
]


@pytest.mark.parametrize("known", [[], TYPES_ALONE], ids=["at run time", "for a type checker too"])
def test_no_modules_import_each_other_in_a_circle(known: list[list[str]]) -> None:
    """Also inside functions."""
    # without its cache, which mixes up the two graphs
    graph = grimp.build_graph("quercus", exclude_type_checking_imports=not known, cache_dir=None)
    modules = sorted(graph.modules)
    number = {module: k for k, module in enumerate(modules)}
    edges = [(number[a], number[b]) for a in modules for b in graph.find_modules_directly_imported_by(a)]
    importers, imported = zip(*edges, strict=True)
    arrows = coo_matrix(([True] * len(edges), (importers, imported)), shape=2 * (len(modules),))
    count, circle_of = connected_components(arrows, connection="strong")
    circles = [[m for m in modules if circle_of[number[m]] == circle] for circle in range(count)]
    assert [circle for circle in circles if len(circle) > 1] == known
