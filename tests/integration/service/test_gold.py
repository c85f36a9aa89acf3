"""Gold questions on servers that are killed, and on two servers of one database: each is asked and counts once."""

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from integration.client.serving import Serving

from quercus.client import Client, Nominal, Numeric, Query, Specification
from quercus.storage.admin.verify import verify_store

pytestmark = pytest.mark.slow
CLASSES = ["oak", "ash"]
ROWS, MARKED = 60, 12
WAIT_S = 20.0


def class_of(row: str) -> str:
    number = int(row[1:])
    return CLASSES[(number % 7 + number // 7) % 2]


def is_gold(query: Query) -> bool:
    return int(query.instance[1:]) < MARKED


def create(client: Client, share: float) -> None:
    """Make a model of 60 rows, of which 12 are gold questions."""
    client.create_model("m", Specification([Nominal("X", [*"abcdefg"]), Numeric("Y")], CLASSES, budget=400))
    names = [f"r{k}" for k in range(ROWS)]
    client.push("m", [["abcdefg"[k % 7], float(k // 7)] for k in range(ROWS)], ids=names)
    client.mark_gold("m", {name: class_of(name) for name in names[:MARKED]}, labeller="lea")
    client.set_labelling_policy("m", replace(client.labelling_policy("m"), gold_share=share), ["gold_share"])


def scores(client: Client) -> dict[str, tuple[int, int]]:
    return {each.name: (each.gold_answered, each.gold_right) for each in client.labellers("m")}


def test_a_server_that_is_killed_counts_each_answer_once(tmp_path: Path) -> None:
    serving = Serving(tmp_path)
    port, right = serving.port, Counter[str]()
    asked: dict[str, list[str]] = {"ann": [], "bob": []}
    try:
        with Client(serving.address) as client:
            create(client, share=1.0)
            for turn, who in enumerate(["ann", "bob", "ann"]):
                (query,) = client.lease("m", who, lease_s=600.0, wait_s=WAIT_S).queries
                assert is_gold(query)
                assert query.instance not in asked[who]
                serving.kill()
                serving = Serving(tmp_path, port)
                client.wait_ready(WAIT_S)
                done = client.answer(query, CLASSES[turn % 2])
                if turn == 1:
                    serving.kill()
                    serving = Serving(tmp_path, port)
                    client.wait_ready(WAIT_S)
                assert client.answer(query, CLASSES[turn % 2]).committed_sequence == done.committed_sequence
                asked[who].append(query.instance)
                right[who] += CLASSES[turn % 2] == class_of(query.instance)
            assert scores(client) == {who: (len(rows), right[who]) for who, rows in asked.items()}
            assert {each.state for each in client.answers("m") if each.kind == "answered"} == {"gold"}
            assert client.get_model("m").queries_answered == 3
    finally:
        serving.stop()
    assert verify_store(serving.store) == []


class Labeller:
    """Somebody who labels through two servers in turn, holds two queries at a time, and keeps a record."""

    def __init__(self, clients: list[Client], name: str) -> None:
        self.clients, self.name = clients, name
        self.answered: list[str] = []
        self.skipped: list[str] = []
        self.right = 0

    def label(self, count: int) -> None:
        chance = random.Random(self.name)  # noqa: S311 - no secret
        for turn in range(count):
            held = [
                client.lease("m", self.name, wait_s=WAIT_S).queries
                for client in (self.clients[turn % 2], self.clients[1 - turn % 2])
            ]
            for (query,) in held:
                client = self.clients[chance.randrange(2)]
                act = chance.random()
                if act < 0.15:
                    client.release(query)
                elif act < 0.3:
                    client.skip(query)
                    self.skipped += [query.instance] if is_gold(query) else []
                else:
                    said = chance.choice(CLASSES)
                    client.answer(query, said)
                    if is_gold(query):
                        self.answered.append(query.instance)
                        self.right += said == class_of(query.instance)


def test_two_servers_of_one_database_ask_each_labeller_once(postgres_url: str, tmp_path: Path) -> None:
    servers = [Serving(tmp_path, store=postgres_url, grower=grower) for grower in (True, False)]
    clients = [Client(each.address) for each in servers]
    create(clients[0], share=0.5)
    crowd = [Labeller(clients, name) for name in ("ann", "bob", "cid")]
    with ThreadPoolExecutor(len(crowd)) as pool:
        for done in [pool.submit(each.label, 12) for each in crowd]:
            done.result(120.0)
    for each in crowd:
        known = each.answered + each.skipped
        assert len(known) > 3
        assert max(Counter(known).values()) == 1, (each.name, known)
    wanted = {each.name: (len(each.answered), each.right) for each in crowd}
    for client in clients:
        assert scores(client) == wanted
    for k in range(MARKED):
        known_now = clients[1].get_instance("m", f"r{k}").contour
        assert known_now[CLASSES.index(class_of(f"r{k}"))] == 1.0
        assert min(known_now) == 0.0
    for client in clients:
        client.close()
    assert [each.stop() for each in servers] == [0, 0]
    assert verify_store(postgres_url) == []
