"""Guidelines for labellers: plain text as paragraphs, with addresses as links, and example rows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from quercus.client.results import Example, Model
from quercus.view.rows import value_text

SHOWN_VALUES = 8
"""Maximum number of values shown of an example: those of the first attributes that are not withheld."""
_ADDRESS = re.compile(r"https?://[^\s<>\"'\u202a-\u202e\u2066-\u2069]+")
_CLOSING = ".,;:!?)]}"


@dataclass(frozen=True)
class TextPart:
    """A part of a line; ``url`` is empty unless it is a link."""

    text: str
    url: str = ""


def paragraphs_of(text: str) -> list[list[list[TextPart]]]:
    r"""Return the paragraphs of a text, each as lines of parts.

    Examples
    --------
    >>> [[[(part.text, part.url) for part in line] for line in lines] for lines in paragraphs_of("a\nb\n\nc")]
    [[[('a', '')], [('b', '')]], [[('c', '')]]]
    >>> [part.url for part in paragraphs_of("See https://a.example/x, or javascript:alert(1).")[0][0]]
    ['', 'https://a.example/x', '']
    """
    blocks = re.split(r"\n[ \t]*\n", text.replace("\r\n", "\n").strip())
    return [[_parts_of(line) for line in block.splitlines()] for block in blocks if block.strip()]


def _parts_of(line: str) -> list[TextPart]:
    parts, end = [], 0
    for found in _ADDRESS.finditer(line):
        url = found[0].rstrip(_CLOSING)
        parts += [TextPart(line[end : found.start()]), TextPart(url, url)]
        end = found.start() + len(url)
    parts.append(TextPart(line[end:]))
    return [each for each in parts if each.text]


def example_values(example: Example, model: Model) -> list[tuple[str, str]]:
    """Return the first values of an example as titles and texts, without withheld attributes."""
    presentation = model.specification.presentation
    views = {} if presentation is None else {each.attribute: each for each in presentation.attributes}
    found = []
    for attribute in model.specification.attributes:
        view = views.get(attribute.name)
        if (view is None or not view.hidden) and example.values.get(attribute.name) is not None:
            title = view.title if view is not None and view.title else attribute.name
            form, unit = ("", "") if view is None else (view.format, view.unit)
            found.append((title, value_text(example.values.get(attribute.name), form, unit)))
    return found[:SHOWN_VALUES]


def by_class(examples: Sequence[Example], classes: Sequence[str]) -> Mapping[str, list[Example]]:
    """Return the examples of each class that has some, in declared order."""
    return {
        name: found for name in classes if (found := [each for each in examples if each.class_name == name])
    }


def title_of(model: Model) -> str:
    """Return the title of a model, or its name if it has none."""
    guidance = model.specification.guidance
    return guidance.title if guidance is not None and guidance.title else model.name
