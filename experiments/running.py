"""Running the cells of a grid on an executor."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial

from quercus.belief.errors import InvalidInput
from quercus.estimators.executors import Executor
from quercus.experiments.protocols import Protocol
from quercus.experiments.results import ExperimentJob, Measurement, Results


@dataclass(frozen=True)
class UnsuitableData:
    """A cell that cannot be run, because the learner does not accept such data."""

    cell: ExperimentJob
    reason: str


def run_cells(
    work: Protocol,
    cells: Sequence[ExperimentJob],
    results: Results,
    executor: Executor,
    done: Callable[[ExperimentJob], None],
) -> list[UnsuitableData]:
    """Run cells and append their measurements.

    Parameters
    ----------
    work
        The protocol, which may run in other processes.
    cells
        Cells to compute, in this order.
    results
        Receives the measurements as they arrive.
    executor
        Executor of the cells; the measurements do not depend on it.
    done
        Called with each finished cell.

    Returns
    -------
    list of UnsuitableData
        The cells that the learner refused.
    """
    refusals = []
    with closing(executor.as_finished(partial(_try_cell, work), cells)) as outcomes:
        for number, outcome in outcomes:
            if isinstance(outcome, UnsuitableData):
                refusals.append(outcome)
            else:
                results.append_measurements(outcome)
            done(cells[number])
    return refusals


def _try_cell(work: Protocol, cell: ExperimentJob) -> list[Measurement] | UnsuitableData:
    try:
        return work.run_cell(cell)
    except InvalidInput as error:
        return UnsuitableData(cell, str(error))
    except Exception as error:
        error.add_note(f"in the cell {cell}")
        raise
