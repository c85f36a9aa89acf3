"""The queries that a person at a terminal holds, on a live server."""

import threading
from contextlib import closing
from functools import partial

from quercus.cli.label_queue import TerminalQueue, UnsentAnswer
from quercus.client import Client, Nominal, Specification
from quercus.client.results import Model, Query
from quercus.client.sync.held_queries import HeldQueries

LEASE_S = 1.0
WAIT_S = 60.0


def answer(client: Client, query: Query) -> None:
    client.answer(query, "o")


def test_who_leaves_the_keyboard_holds_one_query_and_not_the_next(client: Client, name: str) -> None:
    """The next one, which nobody saw, is for others; with the first key the person is there again."""
    client.create_model(name, Specification([Nominal("X", ["a", "b", "c"])], ["o", "s"], budget=9))
    client.push(name, [["a"], ["b"], ["c"]])
    client.wait_grown(name)
    with Client(client.address) as mine:
        queue = TerminalQueue(mine, HeldQueries(mine, name, "ann", lease_s=LEASE_S), None)
        with closing(queue):
            queue.open()
            shown = queue.next_query(WAIT_S)
            assert shown is not None
            client.lease(name, "bob", lease_s=WAIT_S, wait_s=WAIT_S)  # one is left, besides what ann has
            (taken,) = client.lease(name, "bob", lease_s=WAIT_S, wait_s=WAIT_S / 2).queries
            leased = {query.name: query.labeller for query in client.list_queries(name, ["leased"])}
            assert leased[shown.name] == "ann"
            assert leased[taken.name] == "bob"
            client.release(taken)
            queue.submit_answer(UnsentAnswer("o", partial(answer, mine, shown), shown, name))
            following = queue.next_query(WAIT_S)
            assert following is not None
            assert following.name == taken.name


class HeldBack(Client):
    """A client whose calls for a model wait, once an answer was sent, until they may go on."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.sent, self.may_go_on = threading.Event(), threading.Event()

    def get_model(self, name: str) -> Model:
        if self.sent.is_set():
            assert self.may_go_on.wait(WAIT_S)
        return super().get_model(name)


def test_an_answer_counts_between_its_sending_and_the_next_reading_of_the_model(
    client: Client, name: str
) -> None:
    client.create_model(name, Specification([Nominal("X", ["a", "b"])], ["o", "s"], budget=9))
    client.push(name, [["a"], ["b"]])
    client.wait_grown(name)
    with HeldBack(client.address) as mine:
        queue = TerminalQueue(mine, HeldQueries(mine, name, "ann", lease_s=WAIT_S), None)

        def send(query: Query) -> None:
            answer(mine, query)
            mine.sent.set()

        with closing(queue):
            queue.open()
            shown = queue.next_query(WAIT_S)
            assert shown is not None
            assert queue.counted_model(name).queries_answered == 0
            queue.submit_answer(UnsentAnswer("o", partial(send, shown), shown, name))
            assert queue.counted_model(name).queries_answered == 1
            assert queue.is_sent(WAIT_S)
            assert queue.counted_model(name).queries_answered == 1
            mine.may_go_on.set()
