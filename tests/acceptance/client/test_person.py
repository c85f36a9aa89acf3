"""A person at a terminal: keys go in through a pty, the screen comes out."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration.client.serving import Serving
from support.command_line import quercus
from support.terminals import PROMPT, Screen
from support.waiting import until

from quercus.client import Client, Numeric, Specification


@pytest.fixture
def model(server: str, name: str, table_t: Path, contours_t: Path) -> str:
    created = quercus(
        "models",
        "create",
        name,
        str(table_t),
        "--class",
        "class",
        "--budget",
        "6",
        "--learner",
        "abc45",
        "--split-significance",
        "0",
        "--strategy",
        "published",
        server=server,
    )
    assert created.returncode == 0, created.stderr
    assert quercus("push", name, str(table_t), "--label-file", str(contours_t), server=server).returncode == 0
    return name


@pytest.fixture
def screen(server: str, model: str) -> Iterator[Screen]:
    opened = Screen("label", model, "--labeller", "ann", server=server)
    yield opened
    opened.close()


def test_a_person_answers_in_every_way(screen: Screen, server: str, model: str) -> None:
    shown = screen.expect(PROMPT)
    assert "instance 0  ·  query 1  ·  answer 1 of 6" in shown
    assert re.search(r"X +a .*\n.*Y +e", shown)  # in declared order
    assert re.search(r"o +o +▯+ +0\.80", shown)
    assert "undecided at the root (21 rows)" in shown
    assert re.search(r"X +├─+┤ +gain ratio +0\.\d+ to +0\.\d+", shown)
    assert "This label tells most about the rows where X = a" in shown
    assert "2 tests compete to split its node: X, Y" in shown
    screen.press("?")
    assert "The class cannot be known. The row is not queried again." in screen.expect(PROMPT)
    screen.press("w")
    assert "rival: An attribute that may be the best test" in screen.expect(PROMPT)
    screen.press("9")
    assert "'9' has no meaning here" in screen.expect(PROMPT)
    screen.press("+o")  # s is a class
    assert "[x] o o   [ ] s s" in screen.expect("[x] o o   [ ] s s")
    screen.press("x\n")
    screen.expect("→ o or x")
    screen.expect(PROMPT)
    screen.press("u")
    screen.expect("> ")
    screen.press("1 2 0\n")
    screen.expect("2 is not between 0 and 1")
    screen.press("1 .5\x7f\x7f0 1\n")
    screen.expect("→ o 1, s 0, x 1")
    screen.expect(PROMPT)
    screen.press("u\x1b")
    screen.expect(PROMPT)
    screen.press("s")
    screen.expect("→ s")
    screen.expect(PROMPT)
    screen.press("r")
    screen.expect("→ refused")
    screen.expect(PROMPT)
    screen.press("k")
    screen.expect("→ skipped")
    screen.expect(PROMPT)
    screen.press("q")
    screen.expect("ann: 3 answered, 1 refused, 1 skipped")
    assert screen.ended() == 0
    with Client(server) as client:
        now = client.get_model(model)
        assert (now.queries_answered, now.queries_refused) == (3, 1)
        labels = [
            client.get_instance(model, query.instance) for query in client.list_queries(model, ["answered"])
        ]
        said = [instance.history[-1].label for instance in labels]
    assert said == [frozenset({"o", "x"}), {"o": 1.0, "s": 0.0, "x": 1.0}, "s"]
    assert [instance.history[-1].author for instance in labels] == ["ann"] * 3


def test_ctrl_c_gives_the_query_back_and_the_terminal_its_mode(
    screen: Screen, server: str, model: str
) -> None:
    screen.expect(PROMPT)
    screen.interrupt()
    screen.expect("ann: 0 answered")
    assert screen.ended() == 130
    with Client(server) as client:
        # The lease was for a minute; the budget has room for six, so query 1 must come back for the sixth.
        numbers = [client.lease(model, "bob", wait_s=20.0).queries[0].number for _ in range(6)]
    assert 1 in numbers


def test_the_last_answer_of_the_budget_ends_the_session(screen: Screen) -> None:
    for _ in range(6):
        screen.expect(PROMPT)
        screen.press("s")
    screen.expect("the budget of 6 answers is spent")
    screen.expect("ann: 6 answered")
    assert screen.ended() == 0


def test_an_answer_is_taken_back_before_it_is_sent(screen: Screen, server: str, model: str) -> None:
    shown = screen.expect(PROMPT)
    first = re.search(r"instance (\d+) ", shown)
    screen.press("c")
    screen.press("a twin\r")
    screen.expect(PROMPT)
    screen.press("o")
    screen.expect("→ o")
    assert "answer 2 of 6" in screen.expect(PROMPT)
    screen.press("b")
    screen.expect("taken back before it was sent: o, instance")
    shown = screen.expect(PROMPT)
    assert first is not None
    assert f"instance {first[1]} " in shown
    assert "answer 1 of 6" in shown
    screen.press("s")
    screen.expect("→ s")
    screen.interrupt()  # it is sent all the same
    screen.expect("ann: 1 answered")
    assert screen.ended() == 130
    with Client(server) as client:
        (answer,) = client.answers(model)
        assert (answer.instance, answer.text, answer.comment) == (first[1], "s", "a twin")
        assert re.fullmatch(r"presentation=- display=- tree=\d+( guess=\d)?", answer.shown)
        assert client.get_model(model).queries_leased == 0


def test_keys_before_a_query_can_be_read_are_no_answer(screen: Screen, server: str, model: str) -> None:
    screen.expect(PROMPT)
    screen.press("ssss")  # a key that was held for too long
    screen.expect("→ s")
    assert "answer 2 of 6" in screen.expect(PROMPT)
    screen.press("q")
    screen.expect("ann: 1 answered")


def test_comments_corrections_skips_and_postponements(screen: Screen, server: str, model: str) -> None:
    screen.expect(PROMPT)
    screen.press("b")
    screen.expect("there is no earlier answer")
    screen.press("c")
    screen.expect("A comment for your next answer")
    screen.press("a twin of row 3\r")
    screen.expect(PROMPT)
    screen.press("s")
    screen.expect("→ s")
    screen.expect("answer 2 of 6")
    screen.expect(PROMPT)
    with Client(server) as client:
        until(lambda: client.get_model(model).queries_answered)  # now it is corrected, and not taken back
    screen.press("z")  # another name of b
    screen.expect("your answer was: s")
    screen.expect(PROMPT)
    screen.press("x")
    screen.expect("corrected")
    screen.expect(PROMPT)
    screen.press("a")
    assert re.search(r"1 +\d+ +x ", screen.expect("> "))
    screen.press("1\r")
    screen.expect("your answer was: x")
    screen.expect(PROMPT)
    screen.press("a")
    screen.expect("finish this correction first")
    screen.expect(PROMPT)
    screen.press("o")
    screen.expect("corrected")
    screen.expect(PROMPT)
    screen.press("k")
    screen.expect("→ skipped")
    screen.expect(PROMPT)
    screen.press("p")
    screen.expect("→ postponed")
    screen.expect(PROMPT)
    screen.press("q")
    screen.expect("ann: 1 answered, 1 skipped, 1 postponed, 2 corrected")
    assert screen.ended() == 0
    with Client(server) as client:
        (answered,) = client.list_queries(model, ["answered"])
        said, corrected, again = client.get_instance(model, answered.instance).history[-3:]
        assert (said.label, said.comment, said.kind) == ("s", "a twin of row 3", "answer")
        assert (corrected.label, corrected.kind, corrected.query) == ("x", "correction", answered.number)
        assert (again.label, again.kind) == ("o", "correction")
        assert said.took_s is not None
        assert 0.3 < said.took_s < 60
        kinds = [step.kind for step in client.query_history(model) if step.labeller]
        assert [kind for kind in kinds if kind not in {"leased", "released"}] == [
            *("answered", "corrected", "corrected", "skipped", "postponed")
        ]
        assert client.get_model(model).queries_leased == 0
        (ann,) = client.labellers(model)
        assert (ann.name, ann.answered, ann.corrected, ann.skipped, ann.agreement) == ("ann", 1, 2, 1, None)


@pytest.mark.slow
def test_keys_work_after_the_program_was_stopped(screen: Screen) -> None:
    screen.expect(PROMPT)
    screen.stop_and_continue()
    screen.expect(PROMPT)
    screen.press("s")  # without Enter
    screen.expect("→ s")
    assert "answer 2 of 6" in screen.expect(PROMPT)
    screen.press("q")
    screen.expect("ann: 1 answered")
    assert screen.ended() == 0


@pytest.mark.slow
def test_an_answer_waits_for_a_server_that_went_away(tmp_path: Path, table_t: Path) -> None:
    (tmp_path / "store").mkdir()
    serving = Serving(tmp_path / "store")
    address, port = serving.address, serving.port
    try:
        made = quercus(
            "models",
            "create",
            "m",
            str(table_t),
            "--budget",
            "6",
            "--learner",
            "abc45",
            "--strategy",
            "published",
            server=address,
        )
        assert made.returncode == 0, made.stderr
        assert quercus("push", "m", str(table_t), server=address).returncode == 0
        screen = Screen("label", "m", "--labeller", "ann", server=address)
        try:
            assert "answer 1 of 6" in screen.expect(PROMPT)
            with Client(address) as client:
                until(lambda: client.get_model("m").queries_leased >= 2)  # the next one is held too
            time.sleep(1.0)  # the answer that brings it may still be on its way
            serving.kill()
            screen.press("s")
            killed_at = time.monotonic()
            screen.expect("→ s")
            assert "answer 2 of 6" in screen.expect(PROMPT)  # the next one was there
            screen.expect(f"the server at {address} does not answer; your answers are kept")
            assert "\n" in screen.expect(
                "then retrying"
            )  # the line ends at a blank, not where the screen does
            assert time.monotonic() - killed_at < 30  # not when the client has given up, after a minute
            screen.expect(PROMPT)
            screen.press("x")
            screen.expect("→ x")
            serving = Serving(tmp_path / "store", port)
            assert "answer 3 of 6" in screen.expect(PROMPT)
            screen.press("q")
            screen.expect("ann: 2 answered")
            assert screen.ended() == 0
        finally:
            screen.close()
        with Client(address) as client:
            assert [each.text for each in client.answers("m")] == ["s", "x"]
    finally:
        serving.kill()


def test_a_waiting_labeller_gets_the_reason(server: str, model: str) -> None:
    with Client(server) as client:
        held = [client.lease(model, "bob", wait_s=20.0).queries[0] for _ in range(6)]
        screen = Screen("label", model, "--labeller", "ann", server=server)
        try:
            screen.expect(f"waiting for a query of {model} ... (Ctrl-C stops)")
            screen.expect("Other labellers hold all open queries.")
            client.refuse(held[0])
            assert "answer 1 of 6" in screen.expect(PROMPT)
            screen.press("q")
            assert screen.ended() == 0
        finally:
            screen.close()


def test_watch_draws_a_live_table(server: str, model: str, table_t: Path) -> None:
    screen = Screen("watch", model, server=server)
    try:
        screen.expect("undecided")
        screen.expect("21")
        done = quercus("label", model, "--truth", str(table_t), "--stop-after", "1", "--json", server=server)
        assert json.loads(done.stdout)["answered"] == 1
        screen.expect("1 of 6")
        screen.interrupt()
        screen.expect("stopped")
        assert screen.ended() == 130
    finally:
        screen.close()


@pytest.mark.slow
def test_push_shows_its_progress(server: str, model: str, tmp_path: Path) -> None:
    big = tmp_path / "big.csv"
    big.write_text("X,Y\n" + "a,d\n" * 20_000)
    screen = Screen("push", model, str(big), "--id-prefix", "big-", server=server)
    try:
        shown = screen.expect("pushed 20,000 rows")
        assert re.search(r"big\.csv .*20000/20000 \d:\d\d:\d\d", shown)
        assert screen.ended() == 0
    finally:
        screen.close()


@pytest.mark.slow
def test_a_terminal_without_utf_8_gets_ascii(
    server: str, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    for command, ends in (("label", PROMPT), ("tree", "\n"), ("--help", "Commands")):
        screen = Screen(*((command, model) if command in ("label", "tree") else (command,)), server=server)
        try:
            shown = screen.expect(ends)
        finally:
            screen.close()
        if command == "label":
            assert "instance 0  |  query 1  |  answer 1 of 6" in shown
            assert re.search(r"o +o +o+ +0\.80", shown)
            assert re.search(r"X +\+-+\+ +gain ratio +0\.\d+ to +0\.\d+", shown)
            for asked in ("class?", "? help", "Is it o, s or x?"):
                shown = shown.replace(asked, "")
        assert "?" not in shown
        assert shown.isascii()


@pytest.fixture
def many(server: str, name: str) -> str:
    """A model of 22 attributes whose forest guesses."""
    with Client(server) as client:
        attributes = [Numeric(f"attribute_{k}", cuts=8) for k in range(22)]
        client.create_model(name, Specification(attributes, ["edible", "poisonous"], budget=20))
        rows = [[(k * (j + 3)) % 17 / 4 for j in range(22)] for k in range(90)]
        labels = [["edible", "poisonous"][int(row[0] > 2)] if k % 2 else None for k, row in enumerate(rows)]
        client.push(name, rows, labels, ids=[f"mushroom-{k}" for k in range(90)])
        client.wait_grown(name)
    return name


@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_a_row_of_22_attributes_fits_on_80_by_24(server: str, many: str, term: str) -> None:
    """The terminal answers nothing that it might be asked, and the program waits for no answer."""
    screen = Screen("label", many, "--labeller", "zoe", server=server, size=(80, 24), term=term)
    try:
        lines = (screen.expect(PROMPT) + "\n").split("instance mushroom-", 1)[1].splitlines()
        assert len(lines) <= 23  # the cursor stands on the last one
        shown = "\n".join(lines)
        assert "answer 1 of 20" in lines[0]
        assert "Is it edible or poisonous?" in lines[1]
        assert re.search("The model (guesses|wavers|leans)", lines[2])
        assert len(set(re.findall(r"attribute_(\d+) ", shown))) >= 15
        assert "e  edible" in shown
        screen.press("d")
        assert "you are: rather sure" in screen.expect(PROMPT)
        screen.press("v")
        whole = screen.expect(PROMPT)
        assert len(set(re.findall(r"attribute_(\d+) ", whole))) == 22
        assert "why this one" in whole
        screen.press("e")
        screen.expect("→ edible (rather sure)")
        for _ in range(20):
            if "the guess, " in (keys := screen.expect(PROMPT)):
                break
            screen.press("e")
        guess = re.search(r"the guess, (\w+)", keys)
        assert guess is not None
        screen.press("\n")
        screen.expect(f"→ {guess[1]}")
        screen.expect(PROMPT)
        screen.press("q")
        assert screen.ended() == 0
    finally:
        screen.close()
    with Client(server) as client:
        first, *_, last = [each.label for each in client.answers(many)]
    assert first == {"edible": 1.0, "poisonous": 0.3}
    assert last == guess[1]


def test_what_the_screen_has_no_room_for_is_said_and_listed_by_a_key(server: str, name: str) -> None:
    with Client(server) as client:
        attributes = [Numeric(f"attribute_of_a_long_name_{k}", cuts=8) for k in range(60)]
        client.create_model(name, Specification(attributes, ["edible", "poisonous"], budget=20))
        client.push(name, [[float((k * (j + 3)) % 17) for j in range(60)] for k in range(20)])
        client.wait_grown(name)
    screen = Screen("label", name, "--labeller", "zoe", server=server, size=(80, 24))
    try:
        shown = screen.expect(PROMPT).split("·  query", 1)[1]
        assert len(shown.splitlines()) <= 23
        left = re.search(r"and (\d+) more attributes", shown)
        assert left is not None
        assert int(left[1]) + len(re.findall(r"long_name_\d+ ", shown)) == 60
        assert "v shows all" in shown
    finally:
        screen.close()
