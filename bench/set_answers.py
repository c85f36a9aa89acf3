"""Answers that are sets: what a committee learns from labellers who cannot always tell two classes apart.

Run: python bench/set_answers.py [--repeats 3] [--answers 50] [--sets iris,wine,breast_cancer]

Rows come without labels, and a labeller is asked about so many. Classes are paired, first with second and so on;
asked about a row of a pair, the labeller says "one of these two" with chance .7, drawn once a row, else the class.
Printed is the accuracy on the third of the rows held out of a forest of 20 E2M trees, learned from the rows of which
something is known, with rows chosen by lot and by committee.
"""

import argparse

import numpy as np
from sklearn import datasets
from sklearn.model_selection import train_test_split

from quercus.belief.frame import Frame
from quercus.specification.algorithms import E2m, Forest
from quercus.specification.attributes import Numeric
from quercus.specification.model import Specification
from quercus.trees.learners.model import fit
from quercus.trees.learners.table import Table
from quercus.trees.stream import Answered, GrowthState, Observed, grow

SETS = {
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
    "breast_cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
}
STRATEGIES = ("random", "committee", "covering-committee")
CANNOT_TELL = 0.7
TREES = 20


def accuracy(name: str, strategy: str, answers: int, seed: int) -> float:
    """Return the accuracy after so many answers."""
    data = SETS[name]()
    train, test = train_test_split(
        np.arange(len(data.target)), test_size=1 / 3, random_state=seed, stratify=data.target
    )
    rng = np.random.default_rng((seed, len(train)))
    size = int(data.target.max()) + 1
    said = labels(data.target[train], size, rng)
    contours = np.ones(said.shape)
    attributes = tuple(Numeric(f"x{k}", cuts=32) for k in range(data.data.shape[1]))
    if strategy == "random":
        asked = rng.permutation(len(train))[:answers]
        contours[asked] = said[asked]
    else:
        frame = Frame(tuple(map(str, range(size))))
        spec = Specification(attributes, frame, budget=answers, warmup_rows=len(train), strategy=strategy)
        state = grow(GrowthState.initial(spec), [Observed(data.data[train], contours)])
        for _ in range(answers):
            queries = state.agenda(1)
            if not queries:
                break
            row = queries[0].instance
            contours[row] = said[row]
            state = grow(state, [Answered(row, said[row], 1.0, queries[0].asked)])
    table = Table.of_contours(data.data[train], attributes, contours)
    forest = fit(Forest(E2m(informed_only=True), trees=TREES, seed=seed), table)
    return float((forest.predict(data.data[test]).klass == data.target[test]).mean())


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
    options = parser.parse_args()
    print(
        f"accuracy after {options.answers} answers, percent, mean ± standard error of {options.repeats} runs"
    )
    for name in options.sets.split(","):
        for strategy in options.strategies.split(","):
            found = 100 * np.array(
                [accuracy(name, strategy, options.answers, seed) for seed in range(options.repeats)]
            )
            error = found.std(ddof=1) / np.sqrt(len(found)) if len(found) > 1 else float("nan")
            print(f"{name:14} {strategy:20} {found.mean():5.1f} ± {error:.1f}", flush=True)


if __name__ == "__main__":
    main()
