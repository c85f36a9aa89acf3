"""Labellers with delays and deaths, staters, an operator under a jumping wall clock; ``make leases`` has more."""

from pathlib import Path

import pytest
from support.leases import Trial


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_query_has_one_holder_whatever_happens(tmp_path: Path) -> None:
    trial = Trial(tmp_path, 120, 2, seed=5)
    trial.run(250.0)
    steps = trial.check()
    assert steps["ANSWERED"] > 120
    assert steps["EXPIRED"] > 0
    assert steps["RELEASED"] >= trial.did["torn"] > 0
    assert trial.did["late and taken"] + trial.did["refused: late"] > 0
    assert trial.did["given back"] > 0
    assert trial.did["evicted"] > 0
    assert steps["EVICTED with a token"] > 0
    assert steps["CORRECTED"] >= trial.did["corrected"] > 0
    assert steps["UNDONE"] >= trial.did["undone"] > 0
    assert trial.did["retracted"] > 0


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_so_it_is_where_the_forest_asks(tmp_path: Path) -> None:
    """The forest of the server, which is the default, asks about every row until all are settled."""
    trial = Trial(tmp_path, 25, 2, grows=True, labellers=12, seed=6)
    trial.run(250.0)
    steps = trial.check()
    assert steps["ANSWERED"] > 25
    assert trial.did["retracted"] > 0
