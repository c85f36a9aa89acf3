"""Plug-ins of other packages, which lie in a folder of their own."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from quercus.belief.errors import InvalidInput
from quercus.specification.distribution import DISTRIBUTION
from quercus.specification.learners import ACTIVE_FOREST, SpecifiedLearner, declarations, learner_classes
from quercus.specification.plugins import (
    GROUPS,
    LEARNERS,
    STRATEGIES,
    PluginError,
    foreign_package,
    load_plugin,
    package_of,
    plugin_class,
    plugin_names,
    plugins,
    use_packages,
)
from quercus.specification.strategies import strategies, strategy_class

Install = Callable[[str, str, str, str], None]
LEARNER = """\
from quercus.trees import Id3
class Mine(Id3):
    '''My own.'''
    name = "mine"
"""

PARAMETRIC = LEARNER.replace(
    "class", "from quercus.specification.parameter import parametric\n@parametric\nclass"
)


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Yields what installs a package of one module with one entry point; afterwards all are gone."""
    monkeypatch.syspath_prepend(tmp_path)
    made = []

    def make(package: str, group: str, entry: str, source: str) -> None:
        module = entry.partition("=")[2].partition(":")[0].strip()
        (tmp_path / f"{module}.py").write_text(source)
        about = tmp_path / f"{package}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(f"[{group}]\n{entry}\n")
        made.append(module)
        use_packages(None)

    yield make
    for module in made:
        sys.modules.pop(module, None)
    monkeypatch.undo()
    use_packages(None)


def test_ours_are_installed_under_their_own_names() -> None:
    for group in GROUPS:
        assert {package_of(each) for each in plugins(group)} == {DISTRIBUTION}
    for name, each in learner_classes().items():
        assert each.name == name
    assert {*strategies("tree"), *strategies("forest")} == set(plugin_names(STRATEGIES))


def test_one_of_another_package_is_there_like_ours(install: Install) -> None:
    install("acme", LEARNERS, "mine = acme_learner:Mine", PARAMETRIC)
    assert plugin_names(LEARNERS)[-1] == "mine"
    assert foreign_package(LEARNERS, "mine") == "acme 1.0"
    assert foreign_package(LEARNERS, "id3") == ""
    declared = declarations()[-1]
    assert (declared.name, declared.summary, declared.package) == ("mine", "My own.", "acme 1.0")
    assert (
        "mine" in declarations()[-2].bases
        or "mine" in next(each for each in declarations() if each.bases).bases
    )
    assert plugin_class(SpecifiedLearner, "mine")(min_instances=3).min_instances == 3


def test_a_package_that_is_not_chosen_is_not_used(install: Install) -> None:
    install("acme", LEARNERS, "mine = acme_learner:Mine", PARAMETRIC)
    use_packages(["quercus"])
    with pytest.raises(InvalidInput, match=r"name: is 'mine', must be one of abc45, .*total-uncertainty$"):
        plugin_class(SpecifiedLearner, "mine")
    assert "acme_learner" not in sys.modules
    use_packages(["acme"])
    assert plugin_class(SpecifiedLearner, "mine").name == "mine"
    assert plugin_class(SpecifiedLearner, ACTIVE_FOREST).name == ACTIVE_FOREST
    with pytest.raises(
        PluginError, match="'nobody' is not an installed package with plug-ins; installed are: acme"
    ):
        use_packages(["nobody"])


def test_a_model_of_a_package_that_is_not_chosen_says_what_to_do(install: Install) -> None:
    install("acme", LEARNERS, "mine = acme_learner:Mine", PARAMETRIC)
    use_packages([])
    said = (
        "a learner of the package acme 1.0, which this server does not use. Add acme to its setting plugins"
    )
    with pytest.raises(InvalidInput, match=f"name: is 'mine', {said} and restart the server"):
        plugin_class(SpecifiedLearner, "mine", "acme 1.0")


def test_of_two_packages_with_one_name_neither_is_chosen(install: Install) -> None:
    install("acme", LEARNERS, "id3 = acme_learner:Mine", PARAMETRIC)
    said = "is brought by quercus.trees.learners.id3:Id3 of quercus .* and acme_learner:Mine of acme 1.0: uninstall one"
    with pytest.raises(InvalidInput, match=f"name: is 'id3', {said}"):
        plugin_class(SpecifiedLearner, "id3")
    assert "id3" not in learner_classes()
    assert "c45" in learner_classes()


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import no_such_thing", "cannot be imported: No module named 'no_such_thing'"),
        ("Other = 1", "cannot be imported: module 'broken' has no attribute 'Mine'"),
        ("1 / 0", "cannot be imported: division by zero"),
        ("Mine = 7", "which is not derived from quercus.specification.learners.SpecifiedLearner"),
        ("class Mine: pass", "which is not derived from quercus.specification.learners.SpecifiedLearner"),
        (LEARNER, "which is not decorated with quercus.specification.parameter.parametric"),
        (PARAMETRIC.replace("mine", "theirs"), "which calls itself 'theirs'"),
    ],
)
def test_a_broken_one_says_so_and_harms_no_other(install: Install, source: str, said: str) -> None:
    install("acme", LEARNERS, "mine = broken:Mine", source)
    with pytest.raises(
        InvalidInput, match=r"name: is 'mine', is brought by broken:Mine of acme 1\.0, which "
    ) as caught:
        plugin_class(SpecifiedLearner, "mine")
    assert caught.value.reason.endswith(said)
    assert "mine" not in learner_classes()
    assert "id3" in learner_classes()


@pytest.mark.parametrize("name", ["my_rule", "My-Rule", "my rule", "my--rule", "-rule", "règle"])
def test_a_name_that_nobody_can_ask_for_is_refused(install: Install, name: str) -> None:
    """Clients send ``my-rule`` for ``my_rule``, so a learner of the latter name could never be had."""
    install("acme", LEARNERS, f"{name} = acme_learner:Mine", PARAMETRIC.replace("mine", name))
    said = f"is brought by acme_learner:Mine of acme 1.0 as '{name}', which is not a name of lower-case letters, digits"
    for asked in (name, name.replace("_", "-")):
        with pytest.raises(InvalidInput, match=f"name: is '{asked}', {said}"):
            plugin_class(SpecifiedLearner, asked)
    assert name not in learner_classes()
    assert "id3" in learner_classes()


def test_a_strategy_with_such_a_name_is_refused_too(install: Install) -> None:
    install("acme", STRATEGIES, "my_rule = acme_strategy:Mine", "")
    with pytest.raises(
        InvalidInput, match=r"name: is 'my-rule', is brought by acme_strategy:Mine of acme 1\.0 as"
    ):
        strategy_class("my-rule", "tree")
    assert "my_rule" not in strategies("tree")


def test_the_package_of_a_model_is_named_where_it_is_missing() -> None:
    absent = (
        r"of the package acme 2\.1, which is not installed on this server\. "
        r"Install it \(pip install acme\) and restart the server\.$"
    )
    with pytest.raises(InvalidInput, match=f"name: is 'mine', a learner {absent}"):
        plugin_class(SpecifiedLearner, "mine", "acme 2.1")
    with pytest.raises(InvalidInput, match=f"name: is 'mine', a strategy {absent}"):
        strategy_class("mine", "tree", "acme 2.1")
    assert load_plugin(LEARNERS, "c45") is plugin_class(SpecifiedLearner, "c45", "acme 2.1")
