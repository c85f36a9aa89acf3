"""Writes `quercus.estimators.classifiers` from the declarations of the learners: run ``make estimators``.

scikit-learn reads the parameters of an estimator from the signature of its ``__init__``, and clones it by them, so the
``__init__`` of each class is written out. For the learner of another package::

    python -m quercus.estimators.generate my_package.nearest:Nearest NearestClassifier > my_package/estimators.py
"""

from __future__ import annotations

import argparse
import inspect
import json
import re
import sys
from collections.abc import Collection, Iterable, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from importlib import import_module
from pathlib import Path
from textwrap import indent, wrap
from typing import Any, Final

from quercus.specification.distribution import DISTRIBUTION
from quercus.specification.learners import has_base
from quercus.specification.parameter import Parameter, describe_parameter
from quercus.specification.parameters import BINS, LEVEL, PRUNING_KIND, SEED
from quercus.specification.plugins import LEARNERS, package_of, plugins
from quercus.specification.strategies import MARGIN, RECOMMENDED
from quercus.trees import Learner

GENERATED: Final = Path(__file__).with_name("classifiers.py")
OUR_HEADER: Final = "# Generated from the declarations of the learners by `make estimators`; edit those."
OUR_DOC: Final = "The estimators, one class per learner."
LINE: Final = 110
"""Maximum line length, as configured for ruff."""


class GenerateError(Exception):
    """A learner for which no estimator can be generated, with the reason."""


@dataclass(frozen=True)
class Keyword:
    """A parameter of an estimator: its name, type and default in Python, and its meaning."""

    name: str
    type: str
    default: str
    meaning: str

    @classmethod
    def of(cls, parameter: Parameter) -> Keyword:
        """Return the parameter of an estimator for one of a learner."""
        return cls(
            parameter.name, _type_source(parameter), _default_source(parameter), describe_parameter(parameter)
        )


STRATEGY: Final = "str | QueryStrategy"
ASKING: Final = Keyword(
    "missing_label", "object", 'float("nan")', "Value of a missing label in `y`, besides None and NaN."
)


@dataclass(frozen=True)
class Estimator:
    """An estimator to generate.

    Parameters
    ----------
    name
        Name of its class.
    learner
        Its learner, as ``module:class``.
    note
        A sentence for its docstring, in addition to the learner's declarations.
    base
        Base class, as ``module:class``.
    more
        Further parameters, those of the base class.
    """

    name: str
    learner: str
    note: str = ""
    base: str = "quercus.estimators.base:TableClassifier"
    more: tuple[Keyword, ...] = ()


SETTLED: Final = (
    Estimator("ID3Classifier", "quercus.trees:Id3"),
    Estimator(
        "C45Classifier",
        "quercus.trees:C45",
        "A row whose value is missing goes down every branch, in parts; pruning is pessimistic.",
    ),
    Estimator("E2MTreeClassifier", "quercus.trees:E2m", "It learns from labels of any kind (theory §3.6)."),
    Estimator(
        "BeliefTreeClassifier",
        "quercus.trees:Averaging",
        "It learns from mass functions; other labels become the least committed ones.",
    ),
    Estimator("TotalUncertaintyTreeClassifier", "quercus.trees:TotalUncertainty"),
    Estimator(
        "BeliefEntropyTreeClassifier",
        "quercus.trees:BeliefEntropy",
        "A leaf predicts with the sum of its rows' contours (``\"OBE\"``), or with Dempster's rule: over the masses of "
        'the attributes on the way and of the leaf\'s rows (``"LBE"``), or of the row\'s own values (``"IBE"``).',
    ),
    Estimator(
        "EvidentialForestClassifier",
        "quercus.trees:Forest",
        "See theory §6. The classes and categorical features of `base` are ignored.",
        "quercus.estimators.base:ParallelClassifier",
        (
            Keyword(
                "n_jobs",
                "int | None",
                "None",
                "Processes that grow trees; None: this one. The forest is the same.",
            ),
            Keyword(
                "executor",
                "str | None",
                "None",
                'Executor that grows the trees, in place of `n_jobs`: ``"local"``, ``"processes:N"`` or '
                '``"dask://host:port"``. The forest is the same.',
            ),
        ),
    ),
    Estimator(
        "ActiveBeliefTreeClassifier",
        "quercus.trees:Abc45",
        "It asks: see `quercus.estimators.active.AskingTreeClassifier`. A lower `alpha` gives wider gain intervals and "
        "more queries.",
        "quercus.estimators.active:AskingTreeClassifier",
        (
            Keyword(
                "bins",
                "int | None",
                str(BINS.default),
                "Number of equal-width bins of a numeric column; None: binary thresholds, among `max_cuts` candidates.",
            ),
            Keyword(
                "strategy",
                STRATEGY,
                f'"{RECOMMENDED}"',
                "Strategy of `query`: the name of one that chooses for trees, or its value.",
            ),
            ASKING,
        ),
    ),
    Estimator(
        "ActiveForestClassifier",
        "quercus.trees:ActiveForest",
        "It asks, and learns in batches: see `quercus.estimators.active_forest.AskingForestClassifier`.",
        "quercus.estimators.active_forest:AskingForestClassifier",
        (
            Keyword(
                "strategy",
                STRATEGY,
                f'"{MARGIN}"',
                "Strategy of `query`: the name of one that gives the rows of a forest a worth, or its value.",
            ),
            ASKING,
        ),
    ),
)

RANDOM_STATE: Final = Keyword(
    "random_state",
    "Any",
    "None",
    "Seed of the random draws: a whole number, a ``numpy.random.RandomState``, or None.",
)
BASE: Final = Keyword(
    "base", "TableClassifier | None", "None", "Estimator of each tree, any but a forest; None: that of {}."
)
PRUNING: Final = (
    PRUNING_KIND.with_changes(name="pruning", default=None, meaning_of_none="no pruning"),
    LEVEL.with_changes(description="Significance level of the pruning; smaller prunes more"),
)
OURS: Final = (
    *SETTLED,
    *(
        Estimator(f"{each.attr}Classifier", f"{each.module}:{each.attr}")
        for each in plugins(LEARNERS)
        if package_of(each) == DISTRIBUTION
        and all(one.learner.partition(":")[2] != each.attr for one in SETTLED)
    ),
)
"""The estimators of all learners of Quercus; other packages generate theirs."""

HELPERS: Final = ("TableClassifier", "pruning_of", "seed_of", "tree_of")
STRATEGY_TYPE: Final = "quercus.specification.strategies:QueryStrategy"
RENAMED: Final = {"trees": "n_estimators"}
"""Parameters that have other names in scikit-learn."""

OF_ALL: Final = {"classes": "Sequence[Any] | None = None", "categorical_features": 'object = "from_dtype"'}
"""Parameters that every estimator has, with type and default."""


@dataclass(frozen=True)
class _Argument:
    """A field of a learner: the estimator's parameters for it, and the learner's value as an expression of them."""

    field: str
    parameters: tuple[Keyword, ...]
    value: str


def generated_module(
    estimators: Sequence[Estimator], doc: str, header: str, taken: Collection[str] = ()
) -> str:
    """Return the source of a module of estimators, formatted as ruff does.

    Parameters
    ----------
    estimators
        At least one.
    doc
        Its docstring.
    header
        The comment in its first line.
    taken
        Reserved names of parameters.

    Raises
    ------
    GenerateError
        If a learner cannot be imported, or has something that an estimator cannot have.
    """
    classes = [_class_source(each, taken) for each in estimators]
    body = "\n\n\n".join(classes)
    imports: dict[str, set[str]] = {}
    places = [place for each in estimators for place in (each.learner, each.base)]
    for place in [*places, *(f"quercus.estimators.base:{name}" for name in HELPERS), STRATEGY_TYPE]:
        module, _, name = place.partition(":")
        if re.search(rf"\b{name}\b", body):
            imports.setdefault(module, set()).add(name)
    names = ["Any", *(["Literal"] if "Literal[" in body else [])]
    standard = ["from collections.abc import Sequence", f"from typing import {', '.join(names)}"]
    ours = [_import_source(module, imports[module]) for module in sorted(imports)]
    every = [
        "__all__ = [",
        *(f'    "{each.name}",' for each in sorted(estimators, key=lambda each: each.name)),
        "]",
    ]
    head = "\n".join([header, f'"""{doc}"""', "", *standard, "", *ours, "", *every])
    return f"{head}\n\n\n{body}\n"


def _import_source(module: str, names: set[str]) -> str:
    in_order = sorted(names, key=lambda name: (not name.isupper(), name.islower(), name))
    line = f"from {module} import {', '.join(in_order)}"
    if len(line) <= LINE:
        return line
    return f"from {module} import (\n" + "".join(f"    {name},\n" for name in in_order) + ")"


def _class_source(estimator: Estimator, taken: Collection[str]) -> str:
    learner = _learner_class(estimator.learner)
    arguments = _arguments_of(learner, taken)
    parameters = [*(parameter for each in arguments for parameter in each.parameters), *estimator.more]
    signature = ["self,", "*,", *(f"{each.name}: {each.type} = {each.default}," for each in parameters)]
    if has_base(learner):
        signature.insert(1, signature.pop(2 + [each.name for each in parameters].index("base")))
    signature += [f"{name}: {rest}," for name, rest in OF_ALL.items()]
    names = [each.name for each in parameters] + list(OF_ALL)
    made = [f"{each.field}={each.value}," for each in arguments]
    making = _lines(f"return {learner.__name__}(", *_indented(made), ")")
    if not made:
        making = f"return {learner.__name__}()"
    return _lines(
        f"class {estimator.name}({estimator.base.partition(':')[2]}):",
        *_indented(_docstring(estimator, learner, parameters).splitlines()),
        "",
        "    def __init__(",
        *_indented(signature, 2),
        "    ) -> None:",
        *(f"        self.{name} = {name}" for name in names),
        "",
        f"    def _make_learner(self) -> {learner.__name__}:",
        indent(making, " " * 8),
    )


def _docstring(estimator: Estimator, learner: type, parameters: Iterable[Keyword]) -> str:
    """Return the docstring: the learner's own, then the parameters as declared."""
    text = inspect.cleandoc(learner.__doc__ or "").partition("\nParameters\n")[0].strip()
    summary, *more = [each for each in text.split("\n\n") if not each.startswith("Source:")] or [
        f"Classifier of the learner {learner.__name__}."
    ]
    summary = " ".join(summary.split())
    paragraphs = [*more, *([estimator.note] if estimator.note else [])]
    entries = [_lines(each.name, *_indented(wrap(each.meaning, LINE))) for each in parameters]
    said = _lines(
        summary,
        "",
        *("\n".join([*wrap(each, LINE), ""]) for each in paragraphs),
        "Parameters",
        "----------",
        *entries,
        ", ".join(OF_ALL),
        "    See `quercus.estimators.base.BeliefClassifier`.",
        "",
        "Examples",
        "--------",
        '>>> X = [["sun", 1], ["rain", 1], ["rain", 5]]',
        f'>>> {estimator.name}().fit(X, ["no", "no", "yes"]).classes_.tolist()',
        "['no', 'yes']",
    )
    escaped = said.replace("\\", r"\\").replace('"""', r"\"\"\"")
    return f'"""{escaped}\n"""'


def _arguments_of(learner: type, taken: Collection[str]) -> list[_Argument]:
    if not is_dataclass(learner):
        raise GenerateError(f"{learner.__name__} is not `parametric` (quercus.specification.parameter)")
    found = [_argument_of(learner, each) for each in fields(learner)]
    names = [*OF_ALL, *taken]
    for parameter in (parameter for each in found for parameter in each.parameters):
        if parameter.name in names:
            raise GenerateError(
                f"{learner.__name__} has a parameter {parameter.name!r}, which is reserved in estimators: rename it"
            )
        names.append(parameter.name)
    return found


def _argument_of(learner: type, own: Field[Any]) -> _Argument:
    declared: Parameter | None = own.metadata.get("parameter")
    if declared is None and own.name == "pruning":
        return _Argument(own.name, tuple(map(Keyword.of, PRUNING)), "pruning_of(self.pruning, self.level)")
    if declared is None and own.name == BASE.name:
        base = replace(BASE, meaning=BASE.meaning.format(type(learner().base).__name__))
        return _Argument(own.name, (base,), f"tree_of(self.base, {learner.__name__}().base)")
    if declared is None:
        raise GenerateError(
            f"the field {own.name!r} of {learner.__name__} must be declared by `parameter(...)`, and is not"
        )
    if declared.default is MISSING:
        raise GenerateError(
            f"the parameter {own.name!r} of {learner.__name__} must have a default, and has none"
        )
    if own.name == SEED.name and declared.kind is int:
        return _Argument(own.name, (RANDOM_STATE,), "seed_of(self.random_state)")
    name = RENAMED.get(own.name, own.name)
    return _Argument(own.name, (Keyword.of(declared.with_changes(name=name)),), f"self.{name}")


def _learner_class(place: str) -> type[Learner]:
    module, _, name = place.partition(":")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, ValueError) as error:
        raise GenerateError(f"{place!r} cannot be imported, must be module:class: {error}") from None
    except AttributeError:
        raise GenerateError(f"{place!r}: the module {module} has no {name!r}") from None
    if not (isinstance(found, type) and issubclass(found, Learner)):
        raise GenerateError(f"{place!r} is not a subclass of quercus.trees.Learner")
    return found


def _type_source(parameter: Parameter) -> str:
    """Return the type of a parameter.

    Examples
    --------
    >>> _type_source(Parameter("vote", int, 1, "Vote", 1, 9, choices=("all",), meaning_of_none="nobody"))
    'Literal["all"] | int | None'
    """
    words = ", ".join(f'"{each}"' for each in parameter.choices)
    parts = [f"Literal[{words}]"] if words else []
    if parameter.kind is not str or not words:
        parts.append(parameter.kind.__name__)
    if parameter.meaning_of_none:
        parts.append("None")
    return " | ".join(parts)


def _default_source(parameter: Parameter) -> str:
    default: Any = parameter.default
    if isinstance(default, str):
        return json.dumps(default, ensure_ascii=False)
    if isinstance(default, float) and repr(default) in ("inf", "-inf", "nan"):
        return f'float("{default}")'
    return repr(default)


def _lines(*lines: str) -> str:
    return "\n".join(lines)


def _indented(lines: Iterable[str], levels: int = 1) -> list[str]:
    """Return indented lines; empty ones stay empty."""
    return [indent(each, "    " * levels) for each in lines]


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m quercus.estimators.generate", description=__doc__.partition("\n")[0]
    )
    parser.add_argument(
        "learner", nargs="?", help="the learner, as my_package.nearest:Nearest; default: ours, into trees.py"
    )
    parser.add_argument(
        "name", nargs="?", help="name of the estimator; default: that of the learner and Classifier"
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> str | None:
    """Write our estimators, or print that of the given learner; return an error message, if any."""
    given = _parse(arguments)
    if given.learner is None:
        GENERATED.write_text(generated_module(OURS, OUR_DOC, OUR_HEADER))
        return None
    from quercus.estimators.base import TableClassifier  # noqa: PLC0415  (it imports the generated module)

    name = given.name or f"{given.learner.partition(':')[2]}Classifier"
    if not name.isidentifier():
        return f"{name!r} is not the name of a class"
    header = f"# Generated from the declaration: python -m quercus.estimators.generate {given.learner} {name}"
    doc = f"The estimator of `{given.learner.replace(':', '.')}`."
    try:
        source = generated_module([Estimator(name, given.learner)], doc, header, dir(TableClassifier))
    except GenerateError as error:
        return str(error)
    sys.stdout.write(source)
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
