"""One kill of each process under load; ``make torture N=200`` makes more."""

from pathlib import Path

import pytest
from support.torture import TARGETS, WORKERS, Torture
from support.unbroken import ASKED, BATCH_ROWS

pytestmark = pytest.mark.slow


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("workers", "targets"), [(1, TARGETS), pytest.param(2, (TARGETS[0], *WORKERS), marks=pytest.mark.release)]
)
def test_nothing_acknowledged_is_lost_however_often_processes_are_killed(
    tmp_path: Path, workers: int, targets: tuple[str, ...]
) -> None:
    torture = Torture(tmp_path, seed=3, rest_s=0.1, workers=workers)
    torture.targets = targets
    outcome = torture.run(len(targets))
    assert outcome.kills == dict.fromkeys(targets, 1)
    assert outcome.calm == 2  # before the first kill and the third
    assert len(outcome.pushed) >= BATCH_ROWS * outcome.calm
    assert outcome.classified >= outcome.calm
    for model in ASKED:
        answers = sum(name.startswith(f"models/{model}/") for name in outcome.answered)
        assert model in outcome.spent or answers >= outcome.calm
