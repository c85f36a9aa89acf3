"""The answers until each split of the tree beside the forest is decided and each leaf has a label; the accuracy then.

Run: python bench/accuracy/stopping.py [SEEDS [LEVEL [SETS]]]

The forest (100 trees) starts without labels and asks for one answer at a time; half of the rows are held out. The
script prints for each data set the answers after which the tree first has no contested split and no leaf without a
labelled row, the forest's held-out accuracy then, and that after 100 answers.
"""

import sys

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.model_selection import train_test_split

from quercus.belief.frame import Frame
from quercus.specification.attributes import Numeric
from quercus.specification.model import Specification
from quercus.specification.parameters import MODEL_SIGNIFICANCE
from quercus.trees import Abc45, Answered, GrowthState, MemoryForest, Observed, grow
from quercus.trees.ask.query import QueryPosition
from quercus.trees.ask.settled import is_settled
from quercus.trees.memory_forest.asking import choose_rows

SETS = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer, "digits": load_digits}
BUDGET = 100


def run(name: str, seed: int, level: float) -> tuple[list[bool], list[float]]:
    """Return, after each number of answers, whether the tree is decided, and its accuracy."""
    data = SETS[name]()
    train, test = train_test_split(
        np.arange(len(data.target)), test_size=0.5, stratify=data.target, random_state=seed
    )
    train = train[:500]
    X, y, size = data.data[train], data.target[train], len(data.target_names)
    specification = Specification(
        tuple(Numeric(f"x{k}") for k in range(X.shape[1])),
        Frame(tuple(f"c{c}" for c in range(size))),
        budget=BUDGET,
        learner=Abc45(),
        split_significance=level,
    )
    silent = np.ones((len(X), size))
    state = grow(GrowthState.initial(specification), [Observed(X, silent)])
    forest = MemoryForest(np.zeros(X.shape[1], bool), size, trees=100, seed=seed, level=0.75)
    forest.observe(X, silent)
    left, decided, accuracy = set(range(len(X))), [], []
    while left and len(decided) < BUDGET:
        (choice,) = choose_rows(forest, np.array(sorted(left)), 1)
        left.discard(choice.row)
        contour = np.eye(size)[y[choice.row]]
        forest.replace_contour(choice.row, contour)
        asked = QueryPosition((), None, None, ())
        state = grow(state, [Answered(choice.row, contour, 1.0, asked)])
        decided.append(is_settled(state.context()))
        accuracy.append(float((forest.predict(data.data[test]).klass == data.target[test]).mean()))
    return decided, accuracy


def main() -> None:
    seeds, level, sets = [
        *sys.argv[1:],
        *("3", str(MODEL_SIGNIFICANCE.default), ",".join(SETS))[len(sys.argv) - 1 :],
    ]
    print(
        "set, seed: answers until decided, accuracy then, accuracy at the end, share of later answers decided"
    )
    for name in sets.split(","):
        for seed in range(int(seeds)):
            decided, accuracy = run(name, seed, float(level))
            at = decided.index(True) if any(decided) else -1
            share = float(np.mean(decided[at:])) if at >= 0 else 0.0
            then = f"{at + 1} answers, {accuracy[at]:.3f}" if at >= 0 else "never"
            print(
                f"{name}, {seed}: {then}; {accuracy[-1]:.3f} after {len(accuracy)}; {share:.2f}", flush=True
            )


if __name__ == "__main__":
    main()
