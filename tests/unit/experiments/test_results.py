"""The results file: read back as written, whole after an interruption, refused when it is something else."""

import pytest

from quercus.experiments.results import (
    COLUMNS,
    RESULTS,
    SETTINGS,
    ExperimentJob,
    Measurement,
    MeasurementKey,
    Results,
    agree_on,
    read_rows,
)
from quercus.files import FileError


def row(fold, level=0.5, accuracy=0.9):
    key = MeasurementKey("iris", "c45", "V", level, 0, fold)
    return Measurement(key, 135, 15, accuracy, 0.8, 0.85, 0.25, 7, 0.001)


def cell(fold, *levels):
    return ExperimentJob("iris", "c45", "V", levels or (0.5,), 0, fold)


def test_rows_come_back_sorted(tmp_path):
    with Results(tmp_path) as results:
        results.append_measurements([row(1)])
        results.append_measurements([row(0)])
        assert list(read_rows(results.path)) == [row(1), row(0)]
    assert list(read_rows(tmp_path / RESULTS)) == [row(0), row(1)]


def test_a_line_cut_off_in_the_writing_is_forgotten(tmp_path):
    with Results(tmp_path) as results:
        results.append_measurements([row(0), row(1)])
    path = tmp_path / RESULTS
    path.write_text(path.read_text()[:-5])
    assert Results(tmp_path).missing_cells([cell(0), cell(1)]) == [cell(1)]
    assert list(read_rows(path)) == [row(0)]  # and the file is whole again


def test_a_curve_with_a_missing_level_is_done_again_and_counts_once(tmp_path):
    with Results(tmp_path) as results:
        results.append_measurements([row(0, 0.0), row(0, 0.5)])
    with Results(tmp_path) as results:
        longer = cell(0, 0.0, 0.5, 1.0)
        assert results.missing_cells([cell(0, 0.0, 0.5), longer]) == [longer]
        results.append_measurements([row(0, 0.0), row(0, 0.5), row(0, 1.0)])
    assert list(read_rows(tmp_path / RESULTS)) == [row(0, level) for level in (0.0, 0.5, 1.0)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,2\n", "line 1: is not a results file"),
        (",".join(COLUMNS) + "\nx,y\n", "line 2: is not a measurement"),
        (
            ",".join(COLUMNS) + "\niris,c45,V,high,0,0,1,1,1,1,1,1,1,1\n",
            "line 2: is not a measurement: .*high",
        ),
    ],
)
def test_another_file_of_that_name_is_refused_and_kept(tmp_path, text, said):
    path = tmp_path / RESULTS
    path.write_text(text)
    with pytest.raises(FileError, match=said):
        Results(tmp_path)
    assert path.read_text() == text


def test_other_settings_or_other_data_are_refused(tmp_path):
    agree_on(tmp_path, {"seed": 0, "folds": 10}, {"iris": "a"})
    agree_on(tmp_path, {"seed": 0, "folds": 10}, {"wine": "b"})
    with pytest.raises(FileError, match="made with folds 10, not 5; give another --output"):
        agree_on(tmp_path, {"seed": 0, "folds": 5}, {"iris": "a"})
    with pytest.raises(FileError, match="wine was a different one"):
        agree_on(tmp_path, {"seed": 0, "folds": 10}, {"iris": "a", "wine": "c"})
    (tmp_path / SETTINGS).write_text("[]")
    with pytest.raises(FileError, match="not what this command writes"):
        agree_on(tmp_path, {"seed": 0, "folds": 10}, {})


def test_results_without_their_settings_are_refused(tmp_path):
    with Results(tmp_path) as results:
        results.append_measurements([row(0)])
    with pytest.raises(FileError, match=r"is missing beside results\.csv"):
        agree_on(tmp_path, {"seed": 0}, {})
