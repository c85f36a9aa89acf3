"""The words of labellers to a store: labels on eight classes, as the log keeps them, and the calls in short."""

from quercus.belief.codec import encode
from quercus.belief.label import ClassSet
from quercus.storage import Amendment, AnswerOutcome, KnownModel, Store, Words

A, B, C, D = (encode(ClassSet(1 << place)) for place in range(4))
"""Labels that name one class."""
ANYTHING = encode(ClassSet(0xFF))
KNOWN = KnownModel(8)
"""A model of eight classes."""


def answer(
    store: Store,
    model: str,
    number: int,
    token: str,
    label: bytes = A,
    reliability: float | None = 1.0,
    *,
    known: KnownModel = KNOWN,
    **more: object,
) -> AnswerOutcome:
    """Answer a query."""
    return store.answer(model, number, token, Words(label, reliability, **more), known)  # type: ignore[arg-type]


def refuse(
    store: Store, model: str, number: int, token: str, *, known: KnownModel = KNOWN, **more: object
) -> AnswerOutcome:
    """Refuse a query."""
    return store.answer(model, number, token, Words(None, **more), known)  # type: ignore[arg-type]


def amend(
    store: Store,
    model: str,
    number: int,
    labeller: str,
    label: bytes | None,
    reliability: float | None = 1.0,
    *,
    known: KnownModel = KNOWN,
    **more: object,
) -> AnswerOutcome:
    """Correct an answer, or take it back."""
    change = Amendment(labeller, label, reliability, **more)  # type: ignore[arg-type]
    return store.amend(model, number, change, known)
