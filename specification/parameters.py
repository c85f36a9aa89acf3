"""The parameters of models and learners, each declared once: default, bounds and description."""

from dataclasses import MISSING

from quercus.belief import frame
from quercus.specification.parameter import Parameter
from quercus.specification.strategies import DEFAULT_STRATEGY

MAX_CLASSES = frame.MAX_CLASSES
MAX_NAME_CHARS = frame.MAX_NAME_CHARS  # of a class, an attribute, a value
MAX_ATTRIBUTES = 1_000
MAX_VALUES = 1_000  # of a nominal attribute, learned ones included
MAX_COUNT = 1_000_000  # of queries, of rows, of levels of a tree
MAX_BINS = 256
MAX_SEED = 2**63 - 1
MAX_MASS_CLASSES = 16  # 65,536 sets of classes
INSTANCES_PER_CLASS = 5  # of the smallest node that a belief-entropy tree splits, unless given

ALPHA = Parameter("alpha", float, 0.8, "Level of the likelihood cut", 0, 1)
PREDICTION_LEVEL = Parameter(
    "prediction_level",
    float,
    0.15,
    "Level of the likelihood cut for prediction sets: 1 returns only the most likely class, 0 every class",
    0,
    1,
)
"""The bounds of a prediction are taken over this likelihood cut; see docs/estimators.md."""
SPLIT_SIGNIFICANCE = Parameter(
    "split_significance",
    float,
    0.0,
    "Expected number of false splits per depth: the smaller, the fewer splits; 0 disables the test",
    0,
    1_000,
)
"""A false split is one that arises by chance (theory §12); docs/learners.md measures the effect.

The test is off in the functions, learners and estimators of the library, so that their trees are those of the papers.
"""
MODEL_SIGNIFICANCE = SPLIT_SIGNIFICANCE.with_changes(default=10.0)
"""`SPLIT_SIGNIFICANCE` of a model of the service, for its active tree or the tree beside another learner."""
FOREST_LEVEL = PREDICTION_LEVEL.with_changes(
    default=0.75,
    description="Level of the likelihood cuts of leaves, over which bounds and prediction sets are taken: 1 is least "
    "cautious, 0 returns every class",
)
"""`PREDICTION_LEVEL` of the forest (theory §10.4).

Even at level 1 the whole forest is trusted only to ``T / (T + l)`` after T labelled rows of l classes.
"""
MODEL_LEVEL = PREDICTION_LEVEL.with_changes(
    default=None, meaning_of_none=f"{PREDICTION_LEVEL.default}, or {FOREST_LEVEL.default} of active-forest"
)
"""`PREDICTION_LEVEL` of a model of the service; the default depends on its learner."""
BUDGET = Parameter("budget", int, 0, "Maximum number of answered queries; 0: never ask", 0, MAX_COUNT)
MIN_INSTANCES = Parameter("min_instances", int, 2, "A node with fewer rows is a leaf", 1, MAX_COUNT)
MODEL_INSTANCES = MIN_INSTANCES.with_changes(
    default=None,
    meaning_of_none=f"{MIN_INSTANCES.default}, or {INSTANCES_PER_CLASS} per class of belief-entropy trees",
)
"""`MIN_INSTANCES` of a model of the service; the default depends on its learner."""
MAX_DEPTH = Parameter(
    "max_depth", int, None, "Every node at this depth is a leaf", 0, MAX_COUNT, meaning_of_none="no limit"
)
WARMUP_ROWS = Parameter(
    "warmup_rows", int, 100, "Number of first rows that determine the bins", 1, MAX_COUNT, is_fixed=True
)
STRATEGY = Parameter(
    "strategy",
    str,
    None,
    "Query strategy, which selects the next instances (docs/strategies.md)",
    1,
    meaning_of_none=f"{DEFAULT_STRATEGY['tree']}, or {DEFAULT_STRATEGY['forest']} of active-forest",
)
"""Query strategy of a model; `quercus.specification.strategies` lists them."""
MEMORY_ROWS = Parameter(
    "memory_rows",
    int,
    None,
    "Number of last rows with an informative label from which the tree learns",
    1,
    MAX_COUNT,
    meaning_of_none="all rows",
    is_fixed=True,
)

MISSING_VALUE = Parameter(
    "missing",
    str,
    "branch",
    "Meaning of a missing value: a separate branch, or a reason to reject the row",
    choices=("branch", "reject"),
)
NOMINAL_VALUES = Parameter(
    "max_values",
    int,
    None,
    "Maximum number of names of a nominal attribute, declared and learned",
    1,
    MAX_VALUES,
    meaning_of_none=f"the max_values of the server, {MAX_VALUES:,} unless configured",
)
BUCKET, REFUSE = "bucket", "refuse"
OVERFLOW = Parameter(
    "overflow",
    str,
    BUCKET,
    "What becomes of further names once an attribute has max_values: they share one bucket, or their rows are refused",
    choices=(BUCKET, REFUSE),
)
BINS = Parameter("bins", int, 4, "Equal-width bins of numeric columns", 2, MAX_BINS)
CUTS = Parameter(
    "cuts",
    int,
    None,
    "Number of candidate thresholds at which numeric columns are split, instead of bins",
    1,
    MAX_BINS - 1,
    meaning_of_none="every bin is a branch",
)

PRUNING_KIND = Parameter(
    "kind",
    str,
    MISSING,
    "Test that a subtree must pass, else it is collapsed: of class counts, or the evidential likelihood ratio test",
    choices=("chi-square", "likelihood"),
)
LEVEL = Parameter(
    "level", float, 0.05, "Significance level of the test; smaller prunes more", 0, 1, excludes_bounds=True
)

MAX_CUTS = Parameter(
    "max_cuts",
    int,
    None,
    "Maximum number of thresholds of a numeric attribute that are tried at a node",
    1,
    MAX_COUNT,
    meaning_of_none="no limit",
)
CANDIDATE_CUTS = MAX_CUTS.with_changes(default=32, meaning_of_none="", is_served=False)
"""`MAX_CUTS` of evidential trees, which compute an interval for every candidate. A model's attributes have cuts."""
SIGNIFICANCE = Parameter(
    "significance",
    float,
    None,
    "Level of χ² pruning",
    0,
    1,
    excludes_bounds=True,
    meaning_of_none="no pruning",
)
MIN_BRANCH = Parameter(
    "min_branch", int, 2, "At least two branches must hold this weight of rows", 1, MAX_COUNT
)
CONFIDENCE = Parameter(
    "confidence",
    float,
    0.25,
    "Confidence factor of pessimistic error pruning",
    0,
    1,
    excludes_bounds=True,
    meaning_of_none="no pruning",
)
INFORMED_ONLY = Parameter("informed_only", bool, False, "Learn only from rows with an informative label")
LAM = Parameter("lam", float, None, "Weight λ of discord", 0, 1, meaning_of_none="chosen by cross-validation")
COMBINE = Parameter(
    "combine",
    str,
    "dempster",
    f"Combination of the trees, one per class; dempster for at most {MAX_MASS_CLASSES} classes",
    choices=("dempster", "mean"),
)
FOLDS = Parameter("folds", int, 10, "Folds of the cross-validation", 2, 1_000)
SEED = Parameter("seed", int, 0, "Seed of the random draws", 0, MAX_SEED)
LEAF = Parameter(
    "leaf",
    str,
    "LBE",
    f"Criterion with which a leaf predicts; LBE and IBE for at most {MAX_MASS_CLASSES} classes",
    choices=("OBE", "LBE", "IBE"),
)
MIN_WEIGHT = MIN_INSTANCES.with_changes(default=None, meaning_of_none=f"{INSTANCES_PER_CLASS} per class")
"""`MIN_INSTANCES` of belief-entropy trees, which fit a density per class at every node."""
TREES = Parameter("trees", int, 50, "Trees of the forest", 1, 1_000)
MEMBERS = TREES.with_changes(default=100)
"""`TREES` of the forest of many memories, which has three naive-Bayes members as well."""
VOTE = Parameter(
    "vote",
    str,
    "label",
    "label: the class of most trees; mass: Dempster's rule over the masses of the trees, for at most "
    f"{MAX_MASS_CLASSES} classes",
    choices=("label", "mass"),
)
MAX_FEATURES = Parameter(
    "max_features",
    int,
    "root",
    "How many of the attributes that are left are drawn at a node; root: ⌈√m⌉ of m, half: ⌈m/2⌉",
    1,
    MAX_COUNT,
    choices=("root", "half", "all"),
)
