"""A few kills of server and grower under load; ``make torture N=200`` makes more."""

from pathlib import Path

from support.torture import Torture


def test_nothing_acknowledged_is_lost_however_often_processes_are_killed(tmp_path: Path) -> None:
    outcome = Torture(tmp_path, seed=3).run(kills=6)
    assert outcome.kills.total() >= 6
    assert len(outcome.pushed) > 20
