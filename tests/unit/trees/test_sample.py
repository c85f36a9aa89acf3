import numpy as np

from quercus.trees.growth.sample import ContourTable, Sample


def test_equal_contours_share_a_number() -> None:
    table = ContourTable(2)
    assert table.intern(np.array([[1, 0.5], [0, 1], [1, 0.5]])).tolist() == [0, 1, 0]
    assert table.intern(np.array([[0.2, 0.1], [0, 1]])).tolist() == [2, 1]
    assert table.contours.tolist() == [[1, 0.5], [0, 1], [0.2, 0.1]]
    assert table.intern(np.empty((0, 2))).tolist() == []


def test_equality_is_exact_but_for_the_sign_of_zero() -> None:
    table = ContourTable(2)
    assert table.intern(np.array([[0.3, 0.0], [0.1 + 0.2, 0.0], [0.3, -0.0]])).tolist() == [0, 1, 0]


def test_what_contours_say() -> None:
    table = ContourTable(2)
    table.intern(np.array([[0.5, 0], [0.3, 0.3]]))
    table.intern(np.array([[1, 0.2]]))
    assert table.precise.tolist() == [True, False, False]
    assert table.vacuous.tolist() == [False, True, False]


def test_a_solver_learns_of_new_contours() -> None:
    table = ContourTable(2)
    table.intern(np.array([[1.0, 0.0]]))
    solver = table.solver(0.8)
    table.intern(np.array([[0.0, 1.0], [1.0, 1.0]]))
    assert table.solver(0.8) is solver
    lower, upper = table.solver(0.8).intervals(np.array([[0, 0, 3], [0, 0, 0]]))
    assert lower.tolist() == [0, 0]
    assert upper.tolist() == [1, 0]
    assert table.solver(0.5) is not solver


def test_counts() -> None:
    table = ContourTable(2)
    ids = table.intern(np.array([[1, 0], [0, 1], [1, 0], [1, 1]]))
    codes = np.array([[0, 2], [1, 0], [0, 2], [0, 0]], dtype=np.int16)
    rows = Sample(codes, (2, 3), ids, np.array([True, True, True, True]), table)
    every = np.arange(4)
    assert rows.counts(every).tolist() == [2, 1, 1]
    tables = rows.contingency(every, (0, 1))
    assert tables[0].tolist() == [[2, 0, 1], [0, 1, 0]]
    assert tables[1].tolist() == [[0, 1, 1], [0, 0, 0], [2, 0, 0]]
    assert rows.with_value(every, 1, 2).tolist() == [0, 2]
    assert rows.candidates(every).tolist() == [3]
