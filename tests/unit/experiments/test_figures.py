"""Curves, tables and figures from measurements."""

import math
from itertools import product

import numpy as np
import pytest
from matplotlib.text import Text
from PIL import Image

from quercus.experiments.plots import _draw_dots, draw_all, draw_sweep
from quercus.experiments.results import Measurement, MeasurementKey
from quercus.experiments.summary import curves, in_order, markdown_table


def rows(sweep="V", levels=(0.0, 0.5), methods=("c45", "forest-precise"), sets=("iris", "wine"), repeats=2):
    """Measurements whose folds differ by .1, and whose repeats do by .04."""
    for data in sets:
        for level in levels:
            for (m, method), repeat, fold in product(enumerate(methods), range(repeats), range(2)):
                accuracy = 0.48 + 0.25 * m + 0.04 * repeat + 0.1 * fold
                key = MeasurementKey(data, method, sweep, level, repeat, fold)
                yield Measurement(key, 100, 10, accuracy, accuracy, accuracy, 0.2, 5, 0.002)


def test_curves_are_means_with_their_standard_errors_over_repeats():
    """The folds of a repeat share its corrupted labels, so they do not count as four independent values."""
    found = curves(rows(), "V")
    assert sorted(found) == ["iris", "wine"]
    points = found["iris"]["forest-precise"]
    assert [point.level for point in points] == [0.0, 0.5]
    assert points[0].mean == pytest.approx(0.8)
    assert points[0].error == pytest.approx(0.02)
    assert points[0].repeats == 2


def test_one_repeat_has_no_standard_error():
    points = curves(rows(repeats=1), "V")["iris"]["c45"]
    assert points[0].mean == pytest.approx(0.53)
    assert math.isnan(points[0].error)
    assert "| C4.5, precise rows | 53.0 | 53.0 |" in markdown_table(list(rows(repeats=1)), "V", 0.5)


def test_the_median_time_has_no_standard_error():
    assert math.isnan(curves(rows(), "V", "fit_s")["iris"]["c45"][0].error)


def draws_errors(measured, sweep):
    """Return whether a figure of one set and method has bands or bars."""
    return len(draw_sweep(list(measured), sweep).axes[0].collections) > 0


@pytest.mark.parametrize("levels", [(0.0, 0.5), (0.5,)])
def test_figures_show_errors_of_several_repeats_only(levels):
    several, one = (rows(levels=levels, sets=("iris",), repeats=repeats) for repeats in (2, 1))
    assert draws_errors(several, "V")
    assert not draws_errors(one, "V")


def test_a_table_has_the_best_of_a_column_in_bold():
    lines = markdown_table(list(rows()), "V", 0.5).splitlines()
    assert lines[0] == "| learner | iris | wine | u65 | u80 | nodes | fit, ms |"
    assert lines[2] == "| C4.5, precise rows | 55.0 ± 2.0 | 55.0 ± 2.0 | 55.0 | 55.0 | 5 | 2.0 |"
    assert "**80.0** ± 2.0" in lines[3]


def test_a_method_that_was_left_out_has_a_dash():
    some = [row for row in rows() if row.key.data == "iris" or row.key.method == "c45"]
    assert "| **80.0** ± 2.0 | – |" in markdown_table(some, "V", 0.5)


def test_unknown_methods_come_last():
    assert in_order(["a-new-one", "forest-precise", "c45"]) == ["c45", "forest-precise", "a-new-one"]


def test_no_dot_lies_on_the_frame():
    low, high = _draw_dots(curves(rows(levels=(0.5,)), "V"), "V", 0.5).axes[0].get_ylim()
    assert (low, high) == (-0.5, 1.5)


def test_there_is_a_figure_a_sweep_with_a_panel_a_set_and_it_is_the_same_again(tmp_path):
    measured = [*rows(), *rows("queries", levels=np.arange(3.0)), *rows("given", levels=(0.0,))]
    paths = draw_all(measured, tmp_path)
    assert [path.name for path in paths] == ["V.png", "given.png", "queries.png"]
    for path in paths:
        words = {text.get_text() for text in draw_sweep(measured, path.stem).findobj(Text)}
        assert {"iris", "wine", "C4.5, precise rows", "random forest, precise rows", "accuracy"} <= words
    before = [path.read_bytes() for path in paths]
    for path in paths:
        with Image.open(path) as picture:
            assert (picture.mode, picture.size[0] >= 700) == ("P", True)  # sharp, and small enough for a page
    assert [path.read_bytes() for path in draw_all(measured, tmp_path)] == before
