"""Answers that are sets: what a committee learns from labellers who cannot always tell two classes apart.

Run: python bench/accuracy/set_answers.py [--repeats 3] [--answers 50]
     [--sets iris,wine,breast_cancer] [--learner members]

Rows come without labels, and a labeller is asked about so many. Classes are paired, first with second and so on;
asked about a row of a pair, the labeller says "one of these two" with chance .7, drawn once a row, else the class.
Printed is the accuracy on the third of the rows held out, with rows chosen by lot and by committee, of a forest of
20 E2M trees, learned from the rows of which something is known; or, with `--learner members`, of the mean of the class
probabilities of 50 trees such as committees are made of, which are grown in compiled code: the forest takes minutes
where classes and attributes are as many as those of digits.
"""

import argparse
from math import isqrt

import numpy as np
from sklearn import datasets
from sklearn.model_selection import train_test_split

from quercus.belief.frame import Frame
from quercus.kernels.forest import mean_probabilities
from quercus.specification.attributes import Numeric
from quercus.specification.model import Specification
from quercus.trees import Abc45, E2m, Forest
from quercus.trees.growth.stream import Answered, GrowthState, Observed, grow
from quercus.trees.learners.learner import fit
from quercus.trees.learners.table import Table

SETS = {
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
    "breast_cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
}
STRATEGIES = ("random", "committee", "covering-committee")
CANNOT_TELL = 0.7
CUTS = 32
TREES = 20
MEMBERS = 50


def accuracy(name: str, strategy: str, answers: int, seed: int, learner: str) -> float:
    """Return the accuracy after so many answers."""
    data = SETS[name]()
    train, test = train_test_split(
        np.arange(len(data.target)), test_size=1 / 3, random_state=seed, stratify=data.target
    )
    rng = np.random.default_rng((seed, len(train)))
    size = int(data.target.max()) + 1
    said = labels(data.target[train], size, rng)
    if strategy == "random":
        contours = np.ones(said.shape)
        asked = rng.permutation(len(train))[:answers]
        contours[asked] = said[asked]
    else:
        contours = answered(strategy, data.data[train], said, answers)
    found = LEARNERS[learner](data.data[train], contours, data.data[test], seed)
    return float((found == data.target[test]).mean())


def answered(strategy: str, values: np.ndarray, said: np.ndarray, answers: int) -> np.ndarray:
    """Return the contours after so many queries: what was `said` of the rows asked about, else nothing.

    The model's own tree is a root alone: a committee does not look at it, and it costs more than all the rest.
    """
    contours = np.ones(said.shape)
    frame = Frame(tuple(map(str, range(said.shape[1]))))
    spec = Specification(
        attributes(values),
        frame,
        budget=answers,
        warmup_rows=len(values),
        strategy=strategy,
        max_depth=0,
        learner=Abc45(),
    )
    state = grow(GrowthState.initial(spec), [Observed(values, contours)])
    for _ in range(answers):
        queries = state.agenda(1)
        if not queries:
            break
        row = queries[0].instance
        contours[row] = said[row]
        state = grow(state, [Answered(row, said[row], 1.0, queries[0].asked)])
    return contours


def attributes(values: np.ndarray) -> tuple[Numeric, ...]:
    return tuple(Numeric(f"x{k}", cuts=CUTS) for k in range(values.shape[1]))


def of_forest(values: np.ndarray, contours: np.ndarray, test: np.ndarray, seed: int) -> np.ndarray:
    """Return the classes that a forest of E2M trees predicts for the rows of `test`."""
    table = Table.of_contours(values, attributes(values), contours)
    return fit(Forest(E2m(informed_only=True), trees=TREES, seed=seed), table).predict(test).klass


def of_members(values: np.ndarray, contours: np.ndarray, test: np.ndarray, seed: int) -> np.ndarray:
    """Return the classes of largest mean probability over the members of a committee, for the rows of `test`."""
    inner = [np.unique(np.quantile(column, np.arange(1, CUTS) / CUTS)) for column in values.T]
    codes, asked = (
        np.column_stack(
            [np.searchsorted(cuts, column) for cuts, column in zip(inner, rows.T, strict=True)]
        ).astype(np.int16)
        for rows in (values, test)
    )
    told = np.flatnonzero(contours.min(axis=1) < 1)
    drawn = np.random.default_rng(seed).integers(len(told), size=(MEMBERS, len(told)))
    weights = np.stack([np.bincount(draw, minlength=len(told)) for draw in drawn]).astype(float)
    K = values.shape[1]
    arities = np.array([len(cuts) + 1 for cuts in inner])
    chances = mean_probabilities(
        codes[told],
        contours[told],
        weights,
        np.ones(K, dtype=np.int64),
        arities,
        isqrt(K - 1) + 1,
        asked,
        np.ones((len(test), contours.shape[1])),
    )
    return chances.argmax(axis=1)


LEARNERS = {"forest": of_forest, "members": of_members}


def labels(truth: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return what the labeller says of each row, as contours."""
    contours = np.eye(size)[truth]
    partner = np.minimum(truth ^ 1, size - 1)  # the last of an odd number has none
    torn = np.flatnonzero(rng.random(len(truth)) < CANNOT_TELL)
    contours[torn, partner[torn]] = 1.0
    return contours


def main() -> None:
    """Print a line a set and strategy."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--answers", type=int, default=50)
    parser.add_argument("--sets", default="iris,wine,breast_cancer")
    parser.add_argument("--strategies", default=",".join(STRATEGIES))
    parser.add_argument("--learner", choices=LEARNERS, default="forest")
    options = parser.parse_args()
    print(
        f"accuracy of the {options.learner} after {options.answers} answers, percent, "
        f"mean ± standard error of {options.repeats} runs"
    )
    for name in options.sets.split(","):
        for strategy in options.strategies.split(","):
            found = 100 * np.array(
                [
                    accuracy(name, strategy, options.answers, seed, options.learner)
                    for seed in range(options.repeats)
                ]
            )
            error = found.std(ddof=1) / np.sqrt(len(found)) if len(found) > 1 else float("nan")
            print(f"{name:14} {strategy:20} {found.mean():5.1f} ± {error:.1f}", flush=True)


if __name__ == "__main__":
    main()
