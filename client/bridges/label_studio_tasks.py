"""The parts of Label Studio's tasks, annotations and labelling configurations that concern the class of a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from xml.parsers import expat

from quercus.specification.values import Spellings

MAX_CONFIG_CHARACTERS: Final = 1 << 18
"""Maximum length of a labelling configuration, in characters."""


class BadTaskError(ValueError):
    """A task, an annotation or a configuration that cannot be used; the text gives the reason."""


@dataclass(frozen=True)
class Control:
    """The question about the class in a project: an element ``Choices`` of its labelling configuration.

    Attributes
    ----------
    name, to_name : name of the element, and of the object that it labels.
    is_multiple : several choices may be chosen.
    choices : the choices that it offers.
    """

    name: str
    to_name: str
    is_multiple: bool
    choices: tuple[str, ...]

    def prediction_result(self, classes: Sequence[str]) -> list[dict[str, Any]]:
        """Return the result of a prediction that chooses classes.

        No classes, or several in a single-choice question, pre-select nothing: the annotator decides.

        Examples
        --------
        >>> Control("q", "row", False, ("o", "s")).prediction_result(["o", "s"])
        []
        >>> Control("q", "row", False, ("True", "False")).prediction_result(["true"])[0]["value"]
        {'choices': ['True']}
        """
        if not classes or (len(classes) > 1 and not self.is_multiple):
            return []
        value = {"choices": [_choice_of(name, [name], self.choices) for name in classes]}
        return [{"from_name": self.name, "to_name": self.to_name, "type": "choices", "value": value}]


def read_control(config: str, classes: Sequence[str], question: str = "") -> Control:
    """Return the question of a labelling configuration that offers all classes of a model.

    Parameters
    ----------
    config
        The configuration, XML.
    classes
        Classes of the model. A question may offer more, such as "unsure".
    question
        Name of the question, if several offer the classes.

    Raises
    ------
    BadTaskError
        If there is no such question, or several.

    Examples
    --------
    >>> read_control(
    ...     '<View><Text name="t" value="$id"/><Choices name="q" toName="t">'
    ...     '<Choice value="oak"/><Choice value="beech tree" alias="beech"/></Choices></View>',
    ...     ["oak", "beech"],
    ... )
    Control(name='q', to_name='t', is_multiple=False, choices=('oak', 'beech'))
    """
    controls = _parse_controls(config)
    if question:
        controls = [each for each in controls if each.name == question]
        if not controls:
            raise BadTaskError(f"the labelling configuration has no Choices named {question!r}")
    absent = [
        [name for name in classes if _choice_of(name, classes, each.choices) is None] for each in controls
    ]
    fitting = [each for each, lacks in zip(controls, absent, strict=True) if not lacks]
    if len(fitting) > 1:
        names = ", ".join(each.name for each in fitting)
        raise BadTaskError(f"several Choices offer the classes ({names}): name one with --question")
    if not fitting:
        missing = [
            f"{each.name} lacks {', '.join(lacks[:10])}" for each, lacks in zip(controls, absent, strict=True)
        ]
        raise BadTaskError(
            "the labelling configuration does not offer all classes of the model: "
            f"{'; '.join(missing) or 'there is no Choices'}"
        )
    return fitting[0]


def _choice_of(name: str, classes: Sequence[str], choices: Sequence[str]) -> str | None:
    """Return the choice for a class, as the project spells it; None if there is none."""
    if name in choices:
        return name
    spellings = Spellings(classes)
    return next((choice for choice in choices if spellings.of(choice) == name), None)


def _parse_controls(config: str) -> list[Control]:
    """Return every ``Choices`` of a configuration, in order."""
    if len(config) > MAX_CONFIG_CHARACTERS:
        raise BadTaskError(
            f"the labelling configuration has {len(config):,} characters, at most {MAX_CONFIG_CHARACTERS:,} are allowed"
        )
    controls: list[tuple[dict[str, str], list[str]]] = []
    inside = False

    def start_tag(tag: str, attributes: dict[str, str]) -> None:
        nonlocal inside
        if tag == "Choices":
            controls.append((attributes, []))
            inside = True
        elif tag == "Choice" and inside:
            controls[-1][1].append(attributes.get("alias") or attributes.get("value", ""))

    def end_tag(tag: str) -> None:
        nonlocal inside
        inside = inside and tag != "Choices"

    def refuse_doctype(*_: object) -> None:
        raise BadTaskError("the labelling configuration declares a document type: it must not")

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = start_tag, end_tag
    parser.StartDoctypeDeclHandler = refuse_doctype  # no entities, so no entity expansion
    try:
        parser.Parse(config, True)
    except expat.ExpatError as error:
        raise BadTaskError(f"the labelling configuration is not XML: {error}") from None
    return [
        Control(
            attributes.get("name", ""),
            attributes.get("toName", ""),
            attributes.get("choice") == "multiple",
            tuple(choices),
        )
        for attributes, choices in controls
    ]


def fields_of(value: object) -> dict[str, Any]:
    """Return a JSON object, or an empty one if the value is anything else."""
    return value if isinstance(value, dict) else {}


def item_of(places: Sequence[Mapping[str, Any]], id_field: str) -> str | None:
    """Return the id of an item: the named field of the first place that has it, as text."""
    for place in places:
        value = place.get(id_field)
        if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
            return str(value)
    return None


def labeller_of(annotation: Mapping[str, Any]) -> str:
    """Return the author of an annotation: the e-mail address if given, else the user's number; empty: unknown."""
    by = annotation.get("completed_by")
    who = by.get("email") or by.get("id") if isinstance(by, dict) else by
    return str(who) if isinstance(who, str | int) else ""


def choices_of(annotation: Mapping[str, Any], question: str = "") -> list[Any] | None:
    """Return the choices of an annotation; None if it was cancelled or has none.

    Raises
    ------
    BadTaskError
        If it answers several questions, and `question` is empty.
    """
    if annotation.get("was_cancelled"):
        return None
    results = annotation.get("result")
    chosen = [
        each
        for each in map(fields_of, results if isinstance(results, list) else [])
        if each.get("type") == "choices" and question in ("", each.get("from_name"))
    ]
    if not chosen:
        return None
    if len(chosen) > 1:
        names = ", ".join(str(each.get("from_name")) for each in chosen)
        raise BadTaskError(f"has several choices ({names}); name one with --question")
    choices = fields_of(chosen[0].get("value")).get("choices")
    return choices if isinstance(choices, list) and choices else [None]
