import numpy as np
import pytest
from scipy import stats
from support.growing import id3, prune_pessimistic

from quercus.belief.errors import InvalidInput
from quercus.specification.attributes import Nominal
from quercus.trees.learners.pruning import chi_square, pessimistic_rate, prune_chi_square
from quercus.trees.learners.table import Table
from quercus.trees.tree.node import Node, Stop


def leaf(*counts):
    total = sum(counts)
    theta = tuple(c / total for c in counts)
    return Node(None, int(np.argmax(counts)), theta, total, stop=Stop.PURE)


def split(*children, attribute=0):
    counts = sum(np.array(child.theta) * child.size for child in children)
    total = round(counts.sum())
    below = dict(enumerate(children))
    return Node(attribute, int(np.argmax(counts)), tuple(counts / total), total, children=below)


@pytest.mark.parametrize("seed", range(15))
def test_deviation_and_freedom_are_those_of_a_contingency_test(seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 6, rng.integers(2, 5, 2)).astype(float) + np.eye(1, 1)  # every cell can occur
    deviation, freedom = chi_square(counts)
    expected = stats.chi2_contingency(counts, correction=False)
    assert deviation == pytest.approx(expected.statistic, abs=1e-9)
    assert freedom == expected.dof


def test_empty_branches_and_classes_leave_no_degree_of_freedom():
    counts = np.array([[3.0, 0, 1], [0, 0, 0], [2, 0, 5]])
    assert chi_square(counts) == chi_square(np.array([[3.0, 1], [2, 5]]))
    assert chi_square(counts)[1] == 1


def test_a_split_is_pruned_when_its_deviation_is_below_the_quantile():
    tree = split(leaf(8, 2), leaf(2, 8))  # deviation 7.2, one degree of freedom: p = .0073
    assert stats.chi2.sf(7.2, 1) == pytest.approx(0.00729, abs=1e-5)
    assert prune_chi_square(tree, 0.01) == tree
    pruned = prune_chi_square(tree, 0.005)
    assert (pruned.attribute, pruned.children, pruned.stop) == (None, {}, Stop.PRUNED)
    assert (pruned.theta, pruned.count) == (tree.theta, tree.count)


def test_pruning_goes_up_as_long_as_all_children_are_leaves():
    idle = split(leaf(5, 5), leaf(5, 5), attribute=1)
    assert prune_chi_square(split(idle, split(leaf(4, 6), leaf(5, 5), attribute=2)), 0.05).is_leaf
    kept = split(leaf(9, 1), leaf(1, 9), attribute=2)
    tree = prune_chi_square(split(idle, kept), 0.05)
    assert tree.children[0].is_leaf
    assert tree.children[1] == kept  # so the root, idle itself, is not a candidate
    assert tree.attribute == 0


def test_noise_is_pruned_away_and_a_rule_is_not():
    rng = np.random.default_rng(5)
    attributes = [Nominal(f"a{k}", ("x", "y", "z")) for k in range(4)]
    values = rng.integers(0, 3, (300, 4))
    noise = Table.of_classes(values, attributes, rng.integers(0, 2, 300), 2)
    rule = Table.of_classes(values, attributes, (values[:, 2] == 1).astype(int), 2)
    assert (
        sum(1 for _ in id3(noise, significance=0.001).preorder()) < sum(1 for _ in id3(noise).preorder()) / 5
    )
    assert id3(rule, significance=0.001) == id3(rule)
    assert id3(rule).attribute == 2


def test_the_pessimistic_rate_is_the_upper_limit_of_a_binomial():
    for count in (1, 2, 7, 40):
        for errors in range(count):
            for confidence in (0.05, 0.25, 0.5):
                rate = pessimistic_rate(errors, count, confidence)
                assert stats.binom.cdf(errors, count, rate) == pytest.approx(confidence, abs=1e-9)
    assert pessimistic_rate(3, 3, 0.25) == 1.0


def test_rates_between_whole_errors_lie_between_theirs():
    rates = [pessimistic_rate(errors, 5.5, 0.25) for errors in (0, 0.5, 1, 2.25, 5, 5.5)]
    assert rates == sorted(set(rates))


def test_the_worked_case_of_quinlan_1993():
    # leaves of 6, 9 and 1 rows without error: 6 * .206 + 9 * .143 + 1 * .750 = 3.273 errors; one leaf: 2.55
    tree = split(leaf(6, 0), leaf(9, 0), leaf(0, 1))
    assert 6 * pessimistic_rate(0, 6, 0.25) + 9 * pessimistic_rate(0, 9, 0.25) + 0.75 == pytest.approx(
        3.273, abs=5e-3
    )
    assert 16 * pessimistic_rate(1, 16, 0.25) == pytest.approx(2.55, abs=5e-3)
    pruned = prune_pessimistic(tree)
    assert pruned.is_leaf
    assert pruned.klass == 0


def test_a_split_that_lowers_the_pessimistic_errors_stays():
    tree = split(leaf(30, 0), leaf(0, 30))
    assert prune_pessimistic(tree) == tree
    above = split(tree, leaf(5, 0), attribute=1)
    assert prune_pessimistic(above) == above


def test_no_more_is_pruned_at_a_higher_confidence():
    rng = np.random.default_rng(3)
    attributes = [Nominal(f"a{k}", ("x", "y", "z")) for k in range(5)]
    values = rng.integers(0, 3, (200, 5))
    classes = np.where(rng.random(200) < 0.3, rng.integers(0, 3, 200), values[:, 0])
    tree = id3(Table.of_classes(values, attributes, classes, 3))
    sizes = [sum(1 for _ in prune_pessimistic(tree, cf).preorder()) for cf in (0.01, 0.25, 0.9)]
    assert sizes == sorted(sizes)
    assert 1 <= sizes[0] < sizes[2] <= sum(1 for _ in tree.preorder())


@pytest.mark.parametrize("level", [0, 1, -0.1, float("nan"), True, "x"])
def test_levels_lie_between_0_and_1(level):
    with pytest.raises(InvalidInput, match="significance"):
        prune_chi_square(leaf(1, 1), level)
