"""Guidelines and examples at a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from quercus.client.results import Example, Model
from quercus.view.guidance import by_class, example_values, paragraphs_of


def guidance_parts(model: Model, examples: Sequence[Example]) -> Iterator[RenderableType]:
    """Yield the guidelines of a model, and its examples by class."""
    guidance = model.specification.guidance
    for paragraph in paragraphs_of("" if guidance is None else guidance.text):
        yield Text("\n".join("".join(part.text for part in line) for line in paragraph) + "\n")
    for name, rows in by_class(examples, model.specification.classes).items():
        yield Text(name, style="bold")
        for each in rows:
            values = ", ".join(f"{title} {text}" for title, text in example_values(each, model))
            remark = f": {each.remark}" if each.remark else ""
            yield Text.assemble("  ", each.instance, remark, (f"  ({values})", "dim"))
