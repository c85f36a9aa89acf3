"""Events to a real HTTP server: signed, in order, again until they are taken, from where they ended."""

import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import urllib3
from integration.client.serving import QUERCUS, Serving
from support.hooks import SECRET, Answer, Posted, RunningReceiver
from support.proxy import running_proxy

from quercus.client import (
    Client,
    FailedPrecondition,
    InvalidArgument,
    Nominal,
    QuercusError,
    Specification,
)
from quercus.client.bridges import webhook
from quercus.client.bridges.webhook import Receiver, WebhookBridge
from quercus.client.bridges.webhook_messages import Signer
from quercus.client.bridges.webhook_position import Position

ROWS = [{"X": "a"}, {"X": "b"}]
Receive = Callable[..., RunningReceiver]


@pytest.fixture
def receive() -> Iterator[Receive]:
    running: list[RunningReceiver] = []

    def start(answer: Callable[[Posted, int], Answer | None] = lambda *_: None) -> RunningReceiver:
        running.append(RunningReceiver(answer))
        return running[-1]

    yield start
    for each in running:
        each.close()


@pytest.fixture
def hooked(client: Client, name: str) -> str:
    client.create_model(name, Specification([Nominal("X", "ab")], ["o", "s"], budget=3))
    client.push(name, ROWS, ["o", {"o", "s"}], ids=["1", "two words"])
    return name


def bridge(client: Client, model: str, url: str, path: Path, most: int, **fields: object) -> WebhookBridge:
    attempts = fields.pop("most_attempts", None)
    position = Position(path, model)
    made = WebhookBridge(
        client,
        model,
        Receiver(url, attempts),  # type: ignore[arg-type]
        Signer(SECRET),
        position,
        **{"first_pause_s": 0.01, **fields},  # type: ignore[arg-type]
    )
    try:
        made.run(most)
    finally:
        position.close()
    return made


def test_events_are_posted_signed_and_in_order_and_go_on_where_they_ended(
    client: Client, hooked: str, tmp_path: Path, receive: Receive
) -> None:
    receiver = receive()
    first = bridge(client, hooked, receiver.url, tmp_path / "state", 2, with_values=True)
    assert (first.tally.delivered, first.tally.attempts, first.tally.sequence) == (2, 2, 2)
    client.push(hooked, [{"X": "b"}], [{"o": 1.0, "s": 0.25}], ids=["3"])
    bridge(client, hooked, receiver.url, tmp_path / "state", 1)
    uid = client.get_model(hooked).uid
    assert [each.id.rpartition("/")[0] for each in receiver.posted] == [f"{uid}/{n}" for n in (1, 2, 3)]
    assert all(each.is_signed and abs(each.timestamp - time.time()) < 60 for each in receiver.posted)
    one, two, three = (each.event for each in receiver.posted)
    assert (one["specversion"], one["type"], one["subject"]) == ("1.0", "quercus.instance", "1")
    assert (one["id"], one["source"]) == (receiver.posted[0].id, f"/models/{hooked}")
    assert (one["data"]["label"], one["data"]["values"]) == ("o", {"X": "a"})
    assert (two["subject"], two["data"]["instance"]) == ("two%20words", "two words")
    assert two["data"]["label"] in (["o", "s"], None)  # of two classes, that is nothing known
    assert three["data"]["label"] == {"plausibilities": {"o": 1.0, "s": 0.25}}
    assert "values" not in three["data"]
    assert receiver.posted[0].headers["content-type"] == "application/cloudevents+json"


def test_a_recorded_message_can_be_sent_again_and_not_be_changed(
    client: Client, hooked: str, tmp_path: Path, receive: Receive
) -> None:
    """A receiver recognises a replay: by the id that it has had, and by a time that cannot be moved."""
    receiver = receive()
    bridge(client, hooked, receiver.url, tmp_path / "state", 1)
    (recorded,) = receiver.posted
    later = str(recorded.timestamp + 3600)
    body = json.dumps(recorded.event, ensure_ascii=False)
    for changed, sent in (
        ({}, body),
        ({"webhook-timestamp": later}, body),
        ({"webhook-id": "another"}, body),
        ({}, body.replace('"o"', '"s"')),
    ):
        headers = {name: value for name, value in recorded.headers.items() if name.startswith("webhook-")}
        urllib3.request("POST", receiver.url, body=sent.encode(), headers=headers | changed)
    replayed, *altered = receiver.posted[1:]
    assert (replayed.is_signed, replayed.id, replayed.timestamp) == (True, recorded.id, recorded.timestamp)
    assert [each.is_signed for each in altered] == [False] * 3


def test_what_is_not_taken_is_posted_again_under_its_id(
    client: Client, hooked: str, tmp_path: Path, receive: Receive
) -> None:
    """A failure, a redirect (which nobody follows), a wish for a pause."""
    answers: list[Answer] = [
        (500, {}),
        (302, {"location": "http://127.0.0.1:1/"}),
        (429, {"retry-after": "0"}),
    ]
    receiver = receive(lambda _, before: answers[before] if before < len(answers) else None)
    told: list[str] = []
    made = bridge(client, hooked, receiver.url, tmp_path / "state", 2, notify=told.append)
    assert (made.tally.delivered, made.tally.attempts) == (2, 5)
    assert [each.event["data"]["sequence"] for each in receiver.posted] == [1, 1, 1, 1, 2]
    assert len({each.id for each in receiver.posted[:4]}) == 1
    assert ["500" in told[0], "redirects are not followed" in told[1], "429" in told[2]] == [True] * 3


def test_an_event_that_is_never_taken_is_kept_aside_if_that_is_wanted(
    client: Client, hooked: str, tmp_path: Path, receive: Receive
) -> None:
    receiver = receive(lambda posted, _: (500, {}) if posted.event["data"]["sequence"] == 1 else None)
    kept = tmp_path / "given-up.jsonl"
    with kept.open("a") as stream:
        made = bridge(client, hooked, receiver.url, tmp_path / "state", 2, most_attempts=3, given_up=stream)
    assert (made.tally.delivered, made.tally.given_up, made.tally.attempts) == (1, 1, 4)
    (line,) = [json.loads(each) for each in kept.read_text().splitlines()]
    assert (line["event"]["data"]["sequence"], line["reason"]) == (1, "HTTP 500")


def test_a_receiver_that_is_away_is_waited_for(
    client: Client, hooked: str, tmp_path: Path, receive: Receive
) -> None:
    gone = receive()
    url = gone.url
    gone.close()
    made = WebhookBridge(
        client,
        hooked,
        Receiver(url),
        Signer(SECRET),
        Position(tmp_path / "state", hooked),
        first_pause_s=0.01,
    )
    away = threading.Event()
    made._notify = lambda _: away.set()
    thread = threading.Thread(target=made.run)
    thread.start()
    try:
        assert away.wait(60)
    finally:
        made.stop()
        thread.join(60)
    assert not thread.is_alive()
    assert made.tally.delivered == 0


def test_an_event_may_be_refused_for_days(
    client: Client, hooked: str, tmp_path: Path, receive: Receive
) -> None:
    """After 1,024 attempts a power of two is not a float any more; at 5 min each these are three and a half days."""
    receiver = receive(lambda _, before: (500, {}) if before < 1_030 else None)
    made = bridge(client, hooked, receiver.url, tmp_path / "state", 1, first_pause_s=0.0)
    assert (made.tally.delivered, made.tally.attempts) == (1, 1_031)


def test_events_arrive_over_a_line_that_is_slower_than_the_poll(
    serving: Serving, hooked: str, tmp_path: Path, receive: Receive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook, "STOP_POLL_S", 0.1)
    receiver = receive()
    with running_proxy(serving.address) as proxy, Client(proxy.address) as client:
        proxy.concerns, proxy.delay_s = "/WatchEvents", 0.5
        position = Position(tmp_path / "state", hooked)
        made = WebhookBridge(client, hooked, Receiver(receiver.url), Signer(SECRET), position)
        ended = threading.Timer(20.0, made.stop)
        ended.start()
        made.run(2)
        ended.cancel()
        position.close()
    assert made.tally.delivered == 2


def test_a_position_that_cannot_be_written_ends_the_bridge_in_words(
    client: Client, hooked: str, tmp_path: Path, receive: Receive
) -> None:
    position = Position(tmp_path / "state", hooked)
    position._base.execute("PRAGMA query_only = 1")
    made = WebhookBridge(client, hooked, Receiver(receive().url), Signer(SECRET), position)
    with pytest.raises(QuercusError, match=r"the position cannot be written to .*state: attempt to write"):
        made.run(1)
    position.close()


def test_a_receiver_that_wants_no_more_ends_the_bridge(
    client: Client, hooked: str, tmp_path: Path, receive: Receive
) -> None:
    receiver = receive(lambda *_: (410, {}))
    with pytest.raises(FailedPrecondition, match="410"):
        bridge(client, hooked, receiver.url, tmp_path / "state", 1)


def test_kinds_that_are_not_wanted_are_passed_and_the_place_is_kept(
    client: Client, hooked: str, tmp_path: Path, receive: Receive
) -> None:
    receiver = receive()
    client.update_model(hooked, budget=4)
    bridge(client, hooked, receiver.url, tmp_path / "state", 1, kinds=["specification"])
    (only,) = receiver.posted
    assert (only.event["type"], only.event["data"]["instance"]) == ("quercus.specification", "")
    position = Position(tmp_path / "state", hooked)
    assert position.sequence == 3
    position.close()


def test_a_position_belongs_to_one_model_and_one_bridge(client: Client, hooked: str, tmp_path: Path) -> None:
    held = Position(tmp_path / "state", hooked)
    held.record_delivered("uid", 7)
    with pytest.raises(InvalidArgument, match="in use by a running bridge"):
        Position(tmp_path / "state", hooked)
    held.close()
    with pytest.raises(InvalidArgument, match=f"is of the model '{hooked}'"):
        Position(tmp_path / "state", "other")
    again = Position(tmp_path / "state", hooked)
    assert (again.model_uid, again.sequence) == ("uid", 7)
    again.close()
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o600
    (tmp_path / "note").write_text("no database" * 100)
    with pytest.raises(InvalidArgument, match="is not a file of this bridge"):
        Position(tmp_path / "note", hooked)
    with pytest.raises(InvalidArgument, match="cannot open"):
        Position(tmp_path / "no" / "state", hooked)


def test_a_later_model_of_the_name_is_not_mistaken_for_it(
    client: Client, hooked: str, tmp_path: Path, receive: Receive
) -> None:
    receiver = receive()
    bridge(client, hooked, receiver.url, tmp_path / "state", 1)
    client.delete_model(hooked)
    client.create_model(hooked, Specification([Nominal("X", "ab")], ["o", "s"]))
    with pytest.raises(FailedPrecondition, match="another has its name"):
        bridge(client, hooked, receiver.url, tmp_path / "state", 1)
    assert len(receiver.posted) == 1


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://hooks.example/in", "without TLS"),
        ("ftp://hooks.example/in", "is not https://"),
        ("https://ann:secret@hooks.example/in", "a name or a password"),
        ("hooks.example", "is not https://"),
        ("https://[::1", "url"),
    ],
)
def test_receivers_that_are_none_are_refused(url: str, why: str) -> None:
    with pytest.raises(InvalidArgument, match=why) as caught:
        Receiver(url)
    assert "secret" not in str(caught.value)
    assert Receiver("https://hooks.example/in").url


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_c2hvcnQ=", SECRET.removeprefix("whsec_"), "whsec_é"])
def test_secrets_that_are_none_are_refused_and_not_shown(secret: str) -> None:
    with pytest.raises(InvalidArgument, match="24 to 64 random bytes") as caught:
        Signer(secret)
    assert "c2hvcnQ" not in str(caught.value)


def test_the_command_goes_on_after_it_was_killed(
    client: Client, hooked: str, serving: Serving, tmp_path: Path, receive: Receive
) -> None:
    """SIGKILL while the receiver has the second event and has not answered: it comes again, and the first does not."""
    there, killed = threading.Event(), threading.Event()

    def answer(_: Posted, before: int) -> Answer | None:
        if before == 1:
            there.set()
            killed.wait(60)
        return None

    receiver = receive(answer)
    (tmp_path / "secret").write_text(SECRET + "\n")
    command = [
        *(QUERCUS, "bridge", "webhook", "--model", hooked, "--server", serving.address, "--json"),
        *(
            "--url",
            receiver.url,
            "--secret-file",
            str(tmp_path / "secret"),
            "--state",
            str(tmp_path / "state"),
        ),
    ]
    process = subprocess.Popen(command)
    try:
        assert there.wait(60)
    finally:
        process.kill()
        process.wait(60)
        killed.set()
    done = subprocess.run(
        [*command, "--stop-after", "1"], capture_output=True, text=True, check=True, timeout=60
    )
    assert json.loads(done.stdout) == {"delivered": 1, "attempts": 1, "given_up": 0, "sequence": 2}
    assert [each.event["data"]["sequence"] for each in receiver.posted] == [1, 2, 2]
    assert SECRET not in done.stderr


def test_a_restored_backup_ends_the_bridge_and_its_new_events_have_new_ids(
    tmp_path: Path, receive: Receive
) -> None:
    """The numbers behind a backup are given to other events, which a receiver would take for those that it has."""
    receiver, backup = receive(), tmp_path / "backup.db"
    serving = Serving(tmp_path, grower=False)
    store = tmp_path / "quercus.db"
    with Client(serving.address) as client:
        client.create_model("m", Specification([Nominal("X", "ab")], ["o", "s"]))
        client.push("m", ROWS)
        subprocess.run([QUERCUS, "backup", str(backup), "--store", str(store)], check=True)
        client.push("m", ROWS, ids=["lost-1", "lost-2"])
        bridge(client, "m", receiver.url, tmp_path / "state", 4)
    serving.stop()
    subprocess.run([QUERCUS, "restore", str(backup), "--store", str(store), "--force"], check=True)
    serving = Serving(tmp_path, grower=False)
    with Client(serving.address) as client:
        with pytest.raises(FailedPrecondition, match=r"reset to an earlier state.*event 4.*--state"):
            bridge(client, "m", receiver.url, tmp_path / "state", 1)
        client.push("m", ROWS * 2, ids=["new-1", "new-2", "new-3", "new-4"])
        with pytest.raises(FailedPrecondition, match=r"reset to an earlier state.*event 4.*--state"):
            bridge(client, "m", receiver.url, tmp_path / "state", 1)
        assert len(receiver.posted) == 4
        bridge(client, "m", receiver.url, tmp_path / "again", 6)
    serving.stop()
    before, after = receiver.posted[:4], receiver.posted[4:]
    assert [each.id for each in after[:2]] == [each.id for each in before[:2]]
    assert {each.id for each in before[2:]}.isdisjoint(each.id for each in after[2:])
    assert [each.event["subject"] for each in after[2:]] == ["new-1", "new-2", "new-3", "new-4"]


def test_an_event_that_was_passed_over_is_known_again_after_a_restored_backup(
    client: Client, hooked: str, tmp_path: Path, receive: Receive
) -> None:
    """The position may lie behind events that were not wanted; a log that has other ones there was put back."""
    receiver = receive()
    client.update_model(hooked, budget=4)
    bridge(client, hooked, receiver.url, tmp_path / "state", 1, kinds=["specification"])
    position = Position(tmp_path / "state", hooked)
    assert position.event.startswith(f"{position.model_uid}/3/")
    position.record_delivered(position.model_uid, 2, f"{position.model_uid}/2/0")
    position.close()
    with pytest.raises(FailedPrecondition, match="event 2 is not the one that was delivered"):
        bridge(client, hooked, receiver.url, tmp_path / "state", 1)
