"""Guidance for the labellers of a model, a part of the specification that learning ignores."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from quercus.belief.errors import InvalidInput, field_prefix, shown
from quercus.specification.attributes import check_name
from quercus.specification.bounds import MAX_ID_CHARACTERS
from quercus.specification.presentation import check_text

MAX_TITLE: Final = 100
MAX_TEXT: Final = 20_000
MAX_EXAMPLES: Final = 100
MAX_REMARK: Final = 500


@dataclass(frozen=True, slots=True)
class ClassExample:
    """A row as an example of a class.

    Parameters
    ----------
    class_name
        The class.
    instance
        Id of the row; at most 200 characters.
    remark
        What to look at; at most 500 characters.
    """

    class_name: str
    instance: str
    remark: str = ""

    def __post_init__(self) -> None:
        check_name(self.class_name, "class_name")
        if not isinstance(self.instance, str) or not 1 <= len(self.instance) <= MAX_ID_CHARACTERS:
            raise InvalidInput(
                "instance", f"is {shown(self.instance)}, must be an id of 1 to {MAX_ID_CHARACTERS} characters"
            )
        check_text(self.remark, "remark", MAX_REMARK)


@dataclass(frozen=True, slots=True)
class Guidance:
    """The title of a model, and instructions and examples for labellers.

    Parameters
    ----------
    title
        Shown instead of the model's name; at most 100 characters.
    text
        Plain text: blank lines divide paragraphs, and addresses are links. At most 20,000 characters.
    examples
        At most 100 rows as examples of the classes.
    """

    title: str = ""
    text: str = ""
    examples: tuple[ClassExample, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "examples", tuple(self.examples))
        check_text(self.title, "title", MAX_TITLE)
        if not self.title.isprintable():
            raise InvalidInput("title", f"is {shown(self.title)}, and has a character that cannot be seen")
        check_text(self.text, "text", MAX_TEXT)
        if len(self.examples) > MAX_EXAMPLES:
            raise InvalidInput("examples", f"are {len(self.examples)}, at most {MAX_EXAMPLES} are allowed")
        for k, each in enumerate(self.examples):
            if each.instance in {other.instance for other in self.examples[:k]}:
                raise InvalidInput(
                    f"examples[{k}].instance", f"is {shown(each.instance)}, which is one already"
                )

    def check_classes(self, classes: Collection[str]) -> None:
        """Raise `InvalidInput` if an example has a class that the model does not have."""
        for k, each in enumerate(self.examples):
            if each.class_name not in classes:
                with field_prefix(f"examples[{k}]"):
                    raise InvalidInput(
                        "class_name", f"is {shown(each.class_name)}, must be one of {', '.join(classes)}"
                    )
