"""32 labellers with delays, deaths and late answers under a jumping wall clock; ``make leases`` runs 2,000 queries."""

from pathlib import Path

from support.leases import Trial


def test_a_query_has_one_holder_whatever_happens(tmp_path: Path) -> None:
    trial = Trial(tmp_path, 300, seed=5)
    trial.run(100.0)
    steps = trial.check()
    assert steps["ANSWERED"] == 300
    assert steps["EXPIRED"] > 0
    assert steps["RELEASED"] > 0
