"""Asking for a row ahead of its turn: the machine is asked, and nothing else happens."""

import numba
import numpy as np
import pytest

from quercus.trees.growth.incremental.prefetch import fetch


@pytest.mark.parametrize("column", [np.arange(6, dtype=np.int32), np.arange(12, dtype=np.int8).reshape(6, 2)])
def test_the_memory_is_asked_and_the_column_stays_as_it_is(column):
    @numba.njit
    def ask(column, rows):
        for row in rows:
            fetch(column, row)

    before = column.copy()
    ask(column, np.array([0, 5], dtype=np.int32))
    assert (column == before).all()
    (code,) = ask.inspect_llvm().values()
    assert "call void @llvm.prefetch" in code
