"""32 labellers with delays, deaths and late answers under a jumping wall clock; ``make leases`` runs 2,000 queries."""

from pathlib import Path

import pytest
from support.leases import Trial


@pytest.mark.slow
def test_a_query_has_one_holder_whatever_happens(tmp_path: Path) -> None:
    trial = Trial(tmp_path, 300, seed=5)
    trial.run(100.0)
    steps = trial.check()
    assert steps["ANSWERED"] == 300
    assert steps["EXPIRED"] >= trial.did["deaths"] > 0
    assert steps["RELEASED"] >= trial.did["torn"] > 0
    assert trial.did["late and taken"] + trial.did["refused: late"] > 0
    assert trial.did["given back"] > 0
