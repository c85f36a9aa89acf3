"""The two kinds of doubt: told apart where the truth is known, as further answers come, and as a rule to stop asking.

Run: python bench/accuracy/doubt.py [--generated --seeds 3]
     python bench/accuracy/doubt.py --keel FOLDER --sets bands,bupa,… [--seeds 5] [--tree]

`--generated`: seven kinds of rows whose class probabilities are known (two or four Gaussian clouds, twelve and fifteen
clouds of which a third are of two classes, a half of the plane in which classes are noise, a dense overlap beside a
sparse clean pair, a checkerboard beside a slope). 1,000 rows, 40 or 120 answers, drawn at random or asked for by the
forest. Of 300 other rows those with a probability below .85 are doubtful. Columns: the AUC of each measure as a sign
that the likeliest class has a probability below .8, against above .97; and its rank correlation with the fall of the
entropy until four times as many rows, drawn at random, have labels (of an ignorance it should be positive).

`--keel`: FOLDER as in `few_labels.py`. Half of the rows, 400 at most, are asked about, 100 answers; the others, 400 at
most, are predicted. For each set: mean ignorance and overlap of the rows to ask about, after 10, 20, 40 and 80 answers.
Then the rules to stop: answers until then, the accuracy that is lost against all answers, on the mean and on the worst
set. `while-contested` stops as soon as the tree beside the forest contests no split and each of its leaves has a
labelled row; `ignorance` stops when the mean ignorance of the rows to ask about has been below so many bits over ten
answers. `--tree`: of a tree alone, which asks by its own strategy.
"""

import argparse
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
from few_labels import read
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

from quercus.belief.frame import Frame
from quercus.experiments.datasets import DataSet
from quercus.specification.attributes import Nominal
from quercus.specification.model import Specification
from quercus.specification.parameters import MODEL_SIGNIFICANCE
from quercus.trees import (
    Abc45,
    Answered,
    Doubt,
    GrowthState,
    MemoryForest,
    Observed,
    UncertainValues,
    grow,
)
from quercus.trees.ask.query import QueryContext, QueryPosition
from quercus.trees.learners.doubt import entropies
from quercus.trees.learners.predicting import TreeModel
from quercus.trees.memory_forest.asking import choose_rows

ROWS, OTHERS, ANSWERS, LATER, TREES, LEVEL = 1_000, 300, (40, 120), 4, 40, 0.75
DOUBTFUL, OVERLAPS, CLEAN, ENOUGH = 0.85, 0.8, 0.97, 10
BUDGET, MOST, MEAN_OF, SHOWN = 100, 400, 10, (10, 20, 40, 80)

Rows = tuple[np.ndarray, np.ndarray]
"""Values and class probabilities of rows."""


def checkerboard(count: int, rng: np.random.Generator) -> Rows:
    x = rng.random((count, 2))
    slope = 1 / (1 + np.exp(-6 * (x[:, 1] - 0.5)))
    p = np.where(x[:, 0] < 0.5, slope, (np.floor(x[:, 0] * 10) + np.floor(x[:, 1] * 6)) % 2)
    return x, np.column_stack([1 - p, p])


def gaussians(numbers: int, distance: float, size: int) -> Callable[[int, np.random.Generator], Rows]:
    def draw(count: int, rng: np.random.Generator) -> Rows:
        centre = np.zeros((size, numbers))
        centre[np.arange(size), np.arange(size) % numbers] = distance / np.sqrt(2)
        x = centre[rng.integers(size, size=count)] + rng.normal(size=(count, numbers))
        p = np.exp(-0.5 * ((x[:, None] - centre) ** 2).sum(axis=2))
        return x, p / p.sum(axis=1, keepdims=True)

    return draw


def clouds(numbers: int, clouds: int, size: int) -> Callable[[int, np.random.Generator], Rows]:
    def draw(count: int, rng: np.random.Generator) -> Rows:
        same = np.random.default_rng(5 + numbers)
        centre, of = same.normal(size=(clouds, numbers)) * 2.5, np.zeros((clouds, size))
        for cloud in range(clouds):
            if cloud % 3:
                of[cloud, same.integers(size)] = 1.0
            else:
                of[cloud, same.choice(size, 2, replace=False)] = 0.55, 0.45
        share = same.dirichlet(np.full(clouds, 0.7)) * 0.7 + 0.3 / clouds
        x = centre[rng.choice(clouds, count, p=share)] + rng.normal(size=(count, numbers)) * 0.6
        p = share * np.exp(-0.5 * (((x[:, None] - centre) / 0.6) ** 2).sum(axis=2))
        return x, p / p.sum(axis=1, keepdims=True) @ of

    return draw


def half_noise(count: int, rng: np.random.Generator) -> Rows:
    x = rng.normal(size=(count, 4))
    p = np.where(x[:, 0] > 0.3, 0.5 + 0.15 * np.sign(x[:, 1]), x[:, 1] * x[:, 2] > 0)
    return x, np.column_stack([1 - p, p])


def sparse_pair(count: int, rng: np.random.Generator) -> Rows:
    dense, side = rng.random(count) < 0.9, rng.integers(2, size=count)
    x = rng.normal(size=(count, 3))
    x[:, 0] += np.where(dense, 1.2 * side, 8 + 3.5 * side)
    shift, middle = np.where(dense, 1.2, 3.5), np.where(dense, 0.6, 9.75)
    p = 1 / (1 + np.exp(-shift * (x[:, 0] - middle)))
    return x, np.column_stack([1 - p, p])


GENERATED = {
    "checkerboard": checkerboard,
    "two clouds": gaussians(5, 2.0, 2),
    "four clouds": gaussians(4, 3.0, 4),
    "12 clouds": clouds(3, 12, 3),
    "15 clouds": clouds(8, 15, 4),
    "half noise": half_noise,
    "sparse pair": sparse_pair,
}


def measures(forest: MemoryForest, x: np.ndarray) -> dict[str, np.ndarray]:
    """Return what may be a sign of overlap, each as far as it rises with it."""
    found = forest.predict(x)
    entropy, doubt = entropies(found.theta), Doubt.of(found.theta, forest.overlaps(UncertainValues(x)))
    top, members = np.sort(found.theta, axis=1), forest.members()
    each = members.member_estimates(x, members.book.codes(x))
    return {
        "entropy": entropy,
        "1 - margin": 1 - top[:, -1] + top[:, -2],
        "narrow bounds": (found.belief - found.plausibility).mean(axis=1),
        "agreement of members": -forest.weights @ (0.5 * np.abs(each - found.theta).sum(axis=2)),
        "overlap": doubt.overlap,
        "- ignorance": -doubt.ignorance,
    }


def on_generated(name: str, seed: int, *, asked: bool) -> dict[tuple[str, int], tuple[float, float]]:
    """Return AUC and rank correlation of each measure after each number of answers."""
    rng, draw = np.random.default_rng(seed), GENERATED[name]
    (x, p), (other, truth) = draw(ROWS, rng), draw(OTHERS, np.random.default_rng(1_000 + seed))
    l, y = p.shape[1], (rng.random(ROWS)[:, None] > p.cumsum(axis=1)).sum(axis=1).clip(max=p.shape[1] - 1)
    forest = MemoryForest(np.zeros(x.shape[1], bool), l, trees=TREES, seed=seed, level=LEVEL)
    forest.observe(x, np.ones((ROWS, l)))
    free, seen = np.ones(ROWS, bool), {}
    for count in range(1, LATER * ANSWERS[-1] + 1):
        if asked and count <= ANSWERS[-1]:
            (chosen,) = choose_rows(forest, np.flatnonzero(free), 1)
            row = chosen.row
        else:
            row = int(rng.choice(np.flatnonzero(free)))
        free[row] = False
        forest.replace_contour(row, np.eye(l)[y[row]], asked=asked)
        if count in ANSWERS:
            seen[count] = forest.theta(other), measures(forest, other)
    end, found = entropies(forest.theta(other)), {}
    for count, (theta, each) in seen.items():
        likeliest, doubtful = truth.max(axis=1), theta.max(axis=1) < DOUBTFUL
        told = doubtful & ((likeliest < OVERLAPS) | (likeliest > CLEAN))
        overlaps, fall = likeliest[told] < OVERLAPS, entropies(theta) - end
        both = min(overlaps.sum(), (~overlaps).sum()) > ENOUGH
        for measure, value in each.items():
            auc = roc_auc_score(overlaps, value[told]) if both else np.nan
            found[measure, count] = auc, -spearmanr(value[doubtful], fall[doubtful])[0]
    return found


def generated(seeds: int) -> None:
    """Print, for each measure, the means over all kinds of rows."""
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for name in GENERATED:
        for asked in (False, True):
            for seed in range(seeds):
                for (measure, _), pair in on_generated(name, seed, asked=asked).items():
                    found[measure].append(pair)
    print(f"{'measure':22} {'AUC':>6} {'rank correlation with the fall':>32}")
    for measure, pairs in found.items():
        auc, fall = np.nanmean(pairs, axis=0)
        print(f"{measure:22} {auc:6.3f} {fall:32.3f}")


def halves(data: DataSet, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows to ask about, and the others."""
    order = np.random.default_rng(seed).permutation(len(data.targets))
    mine, others = np.split(order, [min(len(order) // 2, MOST)])
    return mine, others[:MOST]


def untold_tree(data: DataSet, x: np.ndarray) -> GrowthState:
    """Return the tree of rows without labels."""
    specification = Specification(
        data.attributes,
        Frame(tuple(f"c{c}" for c in range(len(data.classes)))),
        budget=BUDGET,
        learner=Abc45(),
        split_significance=MODEL_SIGNIFICANCE.default,
    )
    return grow(GrowthState.initial(specification), [Observed(x, np.ones((len(x), len(data.classes))))])


def told(state: GrowthState, row: int, contour: np.ndarray) -> GrowthState:
    return grow(state, [Answered(row, contour, 1.0, QueryPosition((), None, None, ()))])


def is_settled(context: QueryContext) -> bool:
    """Return whether no split of a tree is contested, and every leaf has a labelled row.

    A tree of one answer is a leaf of one class, and contests nothing. So a tree is never settled before every class has
    a row that is known to belong to it, or twice as many rows as there are classes are labelled.
    """
    sample, contours = context.sample, context.sample.table.contours
    labelled = ~sample.table.vacuous[sample.ids]
    if labelled.sum() < 2 * contours.shape[1]:
        precise = np.unique(sample.ids[sample.table.precise[sample.ids]])
        if np.unique(contours[precise].argmax(axis=1)).size < contours.shape[1]:
            return False
    if next(iter(context.growth.contested_nodes()), None) is not None:
        return False
    leaf, _ = context.growth.row_leaves()
    return len(np.unique(leaf[labelled])) == len(np.unique(leaf))


def on_tree(data: DataSet, seed: int) -> list[tuple[bool, float]]:
    """Return after each answer to a tree alone whether it is settled, and its accuracy."""
    mine, others = halves(data, seed)
    state, found = untold_tree(data, data.values[mine]), []
    while queries := state.agenda(1):
        row = queries[0].instance
        state = told(state, row, np.eye(len(data.classes))[data.targets[mine[row]]])
        model = TreeModel(data.attributes, len(data.classes), state.flat, state.edges)
        right = model.predict(data.values[others]).klass == data.targets[others]
        found.append((is_settled(state.context()), right.mean()))
    return found


def on_set(data: DataSet, seed: int) -> list[tuple[bool, float, float, float]]:
    """Return after each answer whether the tree is settled, the accuracy, and mean ignorance and overlap."""
    mine, others = halves(data, seed)
    x, y, size = data.values[mine], data.targets[mine], len(data.classes)
    silent = np.ones((len(x), size))
    state = untold_tree(data, x)
    named = np.array([isinstance(attribute, Nominal) for attribute in data.attributes])
    forest = MemoryForest(named, size, trees=TREES, seed=seed, level=LEVEL)
    forest.observe(x, silent)
    left, look, found = set(range(len(x))), np.arange(len(x)), []
    while left and len(found) < BUDGET:
        (chosen,) = choose_rows(forest, np.array(sorted(left)), 1)
        left.discard(chosen.row)
        contour = np.eye(size)[y[chosen.row]]
        forest.replace_contour(chosen.row, contour, asked=True)
        state = told(state, chosen.row, contour)
        doubt = forest.doubt_of_rows(look, forest.theta_of_rows(look))
        right = forest.theta(data.values[others]).argmax(axis=1) == data.targets[others]
        found.append(
            (is_settled(state.context()), right.mean(), doubt.ignorance.mean(), doubt.overlap.mean())
        )
    return found


Course = list[tuple[bool, float, float, float]]


def settled(path: Course) -> int:
    return next((n for n, each in enumerate(path, 1) if each[0]), len(path))


def below(bits: float) -> Callable[[Course], int]:
    def stop(path: Course) -> int:
        ignorance = [each[2] for each in path]
        ends = range(MEAN_OF, len(path) + 1)
        return next((n for n in ends if np.mean(ignorance[n - MEAN_OF : n]) < bits), len(path))

    return stop


RULES: dict[str, Callable[[Course], int]] = {
    "while-contested": settled,
    **{f"ignorance < {bits}": below(bits) for bits in (0.05, 0.1, 0.15)},
    **{f"{count} answers": lambda path, count=count: min(count, len(path)) for count in (40, 60, 80)},
}


def on_sets(keel: Path, names: list[str], seeds: int) -> None:
    """Print the doubt of each set as answers come, and the rules to stop."""
    paths: dict[str, list[Course]] = {}
    for name in names:
        data = read(keel, name)
        paths[name] = [on_set(data, seed) for seed in range(seeds)]
        at = [np.mean([path[min(n, len(path)) - 1] for path in paths[name]], axis=0) for n in SHOWN]
        print(
            f"{name}: after {SHOWN} answers ignorance {[round(float(each[2]), 2) for each in at]}, "
            f"overlap {[round(float(each[3]), 2) for each in at]}, right {[round(float(each[1]), 3) for each in at]}",
            flush=True,
        )
    show_rules(paths, RULES)


def show_rules(paths: dict[str, list], rules: dict[str, Callable[[Course], int]]) -> None:
    """Print the answers until each rule stops, and what is lost."""
    print(f"{'rule':18} {'answers':>8} {'lost, points':>13} {'on the worst set':>17}")
    for rule, stop in rules.items():
        answers = [[stop(path) for path in each] for each in paths.values()]
        lost = [
            100 * np.mean([path[-1][1] - path[n - 1][1] for path, n in zip(each, counts, strict=True)])
            for each, counts in zip(paths.values(), answers, strict=True)
        ]
        print(
            f"{rule:18} {np.mean([np.mean(each) for each in answers]):8.1f} {np.mean(lost):13.2f} {max(lost):17.1f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--generated", action="store_true")
    parser.add_argument("--keel", type=Path)
    parser.add_argument("--sets", default="bands,bupa,chess,crx,german,hayes-roth,housevotes,magic")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--tree", action="store_true")
    options = parser.parse_args()
    if options.generated:
        generated(options.seeds)
    if options.keel and options.tree:
        paths = {}
        for name in options.sets.split(","):
            paths[name] = [on_tree(read(options.keel, name), seed) for seed in range(options.seeds)]
            print(f"{name}: settled after {[settled(path) for path in paths[name]]} answers", flush=True)
        show_rules(paths, {rule: stop for rule, stop in RULES.items() if "ignorance" not in rule})
    elif options.keel:
        on_sets(options.keel, options.sets.split(","), options.seeds)


if __name__ == "__main__":
    main()
