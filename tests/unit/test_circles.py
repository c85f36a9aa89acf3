"""No module imports itself, by whatever way round."""

import grimp
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Also inside functions; what a type checker alone imports does not count."""
    graph = grimp.build_graph("quercus", exclude_type_checking_imports=True)
    modules = sorted(graph.modules)
    number = {module: k for k, module in enumerate(modules)}
    edges = [(number[a], number[b]) for a in modules for b in graph.find_modules_directly_imported_by(a)]
    importers, imported = zip(*edges, strict=True)
    arrows = coo_matrix(([True] * len(edges), (importers, imported)), shape=2 * (len(modules),))
    count, circle_of = connected_components(arrows, connection="strong")
    circles = [[m for m in modules if circle_of[number[m]] == circle] for circle in range(count)]
    assert [circle for circle in circles if len(circle) > 1] == []
