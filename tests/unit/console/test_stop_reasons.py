"""The page of a tree has words for every reason to stop that the protocol knows."""

from quercus.console.pages.tree import STOPS
from quercus.v1 import tree_pb2


def test_every_reason_to_stop_has_words() -> None:
    names = {
        name.removeprefix("STOP_REASON_").lower() for name, number in tree_pb2.StopReason.items() if number
    }
    assert set(STOPS) == names
