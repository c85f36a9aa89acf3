"""However a grid is worked through, by how many and in how many sittings, its results are the same."""

import multiprocessing

import pytest

from quercus.estimators.executors import open_executor
from quercus.experiments.datasets import built_in
from quercus.experiments.protocols import LabelProtocol, QueryProtocol
from quercus.experiments.results import RESULTS, Results
from quercus.experiments.running import run_cells


def labels(**changes):
    (iris,) = built_in(["iris"])
    settings = {"data": {"iris": iris}, "methods": ("c45", "ek-nn"), "seed": 7, "repeats": 1}
    settings |= {"folds": 3, "sweeps": {"V": (0.0, 0.8), "N": (0.5,)}}
    return LabelProtocol(**settings | changes)


def queries():
    (iris,) = built_in(["iris"])
    methods = ("published", "random")
    return QueryProtocol({"iris": iris}, methods, 7, 1, folds=3, levels=(0.0, 4.0))


def worked(work, folder, executor="local", stop_after=None):
    """Work through a grid, or begin to; return the results but for the seconds."""
    with Results(folder) as results, open_executor(executor) as pool:
        cells = results.missing_cells(work.cells())
        left = iter(range(len(cells) if stop_after is None else stop_after - 1))

        def done(_cell):
            if next(left, None) is None and stop_after is not None:
                raise KeyboardInterrupt

        if stop_after is None:
            assert run_cells(work, cells, results, pool, done) == []
        else:
            with pytest.raises(KeyboardInterrupt):
                run_cells(work, cells, results, pool, done)
    lines = (folder / RESULTS).read_text().splitlines()
    return [line.rpartition(",")[0] for line in lines]


def test_processes_and_interruptions_change_nothing(tmp_path):
    once = worked(labels(), tmp_path / "once")
    assert len(once) == 1 + 3 * 2 * 3
    assert worked(labels(), tmp_path / "parallel", executor="processes:2") == once
    assert len(worked(labels(), tmp_path / "torn", stop_after=5)) == 1 + 5
    assert worked(labels(), tmp_path / "torn") == once


@pytest.mark.slow
def test_interrupted_processes_are_gone_and_what_they_did_is_kept(tmp_path):
    others = set(multiprocessing.active_children())  # of other tests, such as the shared server
    once = worked(labels(), tmp_path / "once")
    part = worked(labels(), tmp_path / "torn", executor="processes:2", stop_after=5)
    assert set(multiprocessing.active_children()) <= others
    assert len(part) == 1 + 5
    assert set(part) <= set(once)
    assert worked(labels(), tmp_path / "torn", executor="processes:2") == once


def test_a_grid_grows_without_being_done_again(tmp_path):
    small = worked(labels(methods=("c45",)), tmp_path / "grown")
    large = worked(labels(repeats=2), tmp_path / "grown")
    assert set(small) <= set(large)
    assert large == worked(labels(repeats=2), tmp_path / "once")


@pytest.mark.slow
def test_curves_are_the_same_in_processes(tmp_path):
    once = worked(queries(), tmp_path / "once")
    assert len(once) == 1 + 3 * 2 * 2
    assert worked(queries(), tmp_path / "parallel", executor="processes:2") == once


def test_another_seed_gives_other_results(tmp_path):
    assert worked(labels(), tmp_path / "one") != worked(labels(seed=8), tmp_path / "other")
