"""Tokens by call: what a thief, a guest or a careless administrator could try, and what a crash leaves."""

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from integration.client.serving import Serving
from support.workers import client_of_each

from quercus.client import (
    Client,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    QuercusError,
    Unauthenticated,
)
from quercus.server.gate.access import issue_token
from quercus.server.gate.rpcs import ROLES
from quercus.server.gate.throttle import CallRates
from quercus.storage import Store, access, file_url
from quercus.storage.admin.verify import verify_store
from quercus.v1 import admin_pb2, admin_pb2_grpc

CALLS: tuple[Callable[[Client], Any], ...] = (
    lambda client: client.create_token("eve", ["operator"]),
    lambda client: list(client.tokens()),
    lambda client: client.revoke_token("000000000000"),
    lambda client: client.audit(),
)
PATIENCE_S = 20.0


class Office:
    """A server that asks for tokens, and its administrator."""

    def __init__(self, live: Any) -> None:
        self.address: str = live.server.address
        self.store: Store = live.server.core.store
        self.root = issue_token(self.store.access, "root", ["operator"])[1]
        self.secret, self.record = issue_token(self.store.access, "olga", ["operator"])
        self.olga = Client(self.address, token=self.secret)

    def raw(self, **fields: Any) -> admin_pb2.CreateTokenResponse:
        """Make a token without the client's own checks and repetitions."""
        with grpc.insecure_channel(self.address) as channel:
            stub = admin_pb2_grpc.AdminServiceStub(channel)
            metadata = (("authorization", f"Bearer {self.secret}"),)
            return stub.CreateToken(admin_pb2.CreateTokenRequest(**fields), metadata=metadata, timeout=30)


@pytest.fixture
def office(start_live: Callable[..., Any], tmp_path: Path) -> Iterator[Office]:
    made = Office(start_live(tmp_path / "store.db", access="tokens", grower=False))
    yield made
    made.olga.close()


def refusal_of(client: Client) -> str:
    """Call until the server refuses the client's token, and return its words."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            client.caller()
        except Unauthenticated as error:
            return str(error)
    raise AssertionError("the token still counts")


def audit_of(store: Store) -> list[tuple[str, str, str, str]]:
    return [(each.who, each.action, each.target, each.outcome) for each in store.access.newest_audit(50)]


def test_a_token_is_made_used_listed_and_revoked(office: Office) -> None:
    made = office.olga.create_token("ann", ["labeller", "reader"], models=["wine"], lifetime_s=3600)
    assert (made.caller, made.roles, made.models, made.live) == (
        "ann",
        ("labeller", "reader"),
        ("wine",),
        True,
    )
    assert made.expires_at is not None
    assert (made.expires_at - made.created_at).total_seconds() == pytest.approx(3600)
    with Client(office.address, token=made.secret) as ann:
        caller = ann.caller()
        assert (caller.name, caller.roles, caller.models) == ("ann", ("labeller", "reader"), ("wine",))
        listed = {each.id: each for each in office.olga.tokens()}
        assert vars(listed[made.id]) == {k: v for k, v in vars(made).items() if k != "secret"}
        gone = office.olga.revoke_token(made.id)
        assert (gone.live, gone.id) == (False, made.id)
        assert gone.revoked_at is not None
        assert office.olga.revoke_token(made.id) == gone  # a second time changes nothing
        assert "the token of ann was revoked" in refusal_of(ann)
    with pytest.raises(NotFound, match="token 000000000000 does not exist"):
        office.olga.revoke_token("000000000000")


def test_nobody_but_an_operator_touches_tokens(office: Office) -> None:
    for role in ROLES:
        if role == "operator":
            continue
        token, _ = issue_token(office.store.access, "guest", [role])
        before = office.store.access.tokens()
        with Client(office.address, token=token) as guest:
            for call in CALLS:
                with pytest.raises(PermissionDenied, match=f"has the role {role}"):
                    call(guest)
        assert office.store.access.tokens() == before


def test_an_operator_of_some_models_gives_itself_no_others(office: Office) -> None:
    """Nor does it read who else there is: the names of tokens and models are not its own."""
    token, _ = issue_token(office.store.access, "lead", ["operator"], ["wine"])
    before = office.store.access.tokens()
    with Client(office.address, token=token) as lead:
        for call in CALLS:
            with pytest.raises(PermissionDenied, match="is for some models only"):
                call(lead)
        assert not {name for name in lead.caller().methods if "Token" in name or "Audit" in name}
    assert office.store.access.tokens() == before


def test_a_server_that_asks_for_no_token_makes_none(start_live: Callable[..., Any], tmp_path: Path) -> None:
    """A token made now would still be there on the day on which the server asks for tokens."""
    live = start_live(tmp_path / "store.db", grower=False)
    with Client(live.server.address) as anyone:
        for call in CALLS[:3]:
            with pytest.raises(FailedPrecondition, match="asks for no token, so anybody could create one"):
                call(anyone)
    assert live.server.core.store.access.tokens() == []


def test_a_token_that_expires_makes_none_that_outlives_it(office: Office) -> None:
    token, _ = issue_token(office.store.access, "temp", ["operator"], None, 600.0)
    with Client(office.address, token=token) as temp:
        for lifetime_s in (None, 660.0):
            with pytest.raises(PermissionDenied, match="would outlive that of temp"):
                temp.create_token("eve", ["operator"], lifetime_s=lifetime_s)
        assert temp.create_token("helper", ["reader"], lifetime_s=60.0).live
    assert [each.name for each in office.store.access.tokens()] == ["root", "olga", "temp", "helper"]


def test_nobody_revokes_the_token_by_which_it_calls(office: Office) -> None:
    with pytest.raises(FailedPrecondition, match="is the one of this call"):
        office.olga.revoke_token(office.record.id)
    assert office.olga.revoke_token(office.root.id).live is False
    assert office.olga.caller().name == "olga"


NO_TOKENS = [
    ({"caller": ""}, "caller: is '', must be 1 to 63 of A-Z"),
    ({"caller": "ann smith"}, "caller: is 'ann smith'"),
    ({"caller": "ann\nroot"}, r"caller: is 'ann\\nroot'"),
    ({"caller": "a" * 64}, "must be 1 to 63"),
    ({"caller": "än"}, "must be 1 to 63"),
    ({"roles": []}, "roles: are none, must be some of reader"),
    ({"roles": ["king"]}, "roles: are king"),
    ({"roles": ["reader operator"]}, "roles: are reader operator"),  # the store joins roles with blanks
    ({"all_models": False}, "neither given"),
    ({"models": ["wine"]}, "both given"),
    ({"all_models": False, "models": ["Wine"]}, "models: 'Wine' is not 1 to 63 characters"),
    ({"all_models": False, "models": ["models/wine"]}, "models: 'models/wine' is not"),
    ({"all_models": False, "models": [f"m{i}" for i in range(1001)]}, "models: are 1,001, at most 1,000"),
    ({"lifetime": Duration(seconds=0)}, "lifetime: is 0 s, must be positive"),
    ({"lifetime": Duration(seconds=-5)}, "must be positive and at most 100 years"),
    ({"lifetime": Duration(seconds=101 * 366 * 86_400)}, "at most 100 years"),
]


def test_what_makes_no_token_is_refused_and_leaves_nothing(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CallRates, "admit_call", lambda *_: None)
    before = office.store.access.tokens()
    for fields, said in NO_TOKENS:
        with pytest.raises(grpc.RpcError) as caught:
            office.raw(**({"caller": "ann", "roles": ["reader"], "all_models": True} | fields))
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT, fields  # type: ignore[attr-defined]
        assert re.search(said, caught.value.details()), fields  # type: ignore[attr-defined]
    assert office.store.access.tokens() == before


def test_what_names_no_token_is_refused(office: Office) -> None:
    for token_id in ("", "x", "../../1", "000000000000/x", "A" * 12, "0" * 12 + "\n"):
        with pytest.raises(InvalidArgument, match="must be tokens/ and the id"):
            office.olga.revoke_token(token_id)


def test_tokens_are_made_slowly_and_only_so_many(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    fields = {"roles": ["reader"], "all_models": True}
    refused: list[Any] = []
    for i in range(12):
        try:
            office.raw(caller=f"bot-{i}", **fields)
        except grpc.RpcError as error:
            refused.append(error)
    assert refused
    for each in refused:
        assert each.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "makes more than 2 tokens a second" in each.details()
    live = len(office.store.access.tokens())
    monkeypatch.setattr(access, "MAX_TOKENS", live)
    with pytest.raises(FailedPrecondition, match="the most allowed: revoke some"):
        office.olga.create_token("one-more", ["reader"])
    office.olga.revoke_token(office.root.id)
    assert office.olga.create_token("one-more", ["reader"]).live


def test_the_secret_is_nowhere_but_in_the_answer(
    office: Office, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    with caplog.at_level("DEBUG"):
        made = office.olga.create_token("ann", ["reader"])
        listed = list(office.olga.tokens())
        office.olga.audit()
    secret = made.secret.split("_", 2)[2]
    assert len(secret) == 43
    assert secret not in repr(made)
    assert secret not in str(listed) + str(office.olga.audit()) + caplog.text
    assert admin_pb2.CreateTokenResponse.DESCRIPTOR.fields_by_name["secret"].GetOptions().debug_redact
    for each in tmp_path.iterdir():
        if each.is_file():
            assert secret.encode() not in each.read_bytes(), each
    assert f"olga made the token {made.id} of ann: reader" in caplog.text


def test_what_was_done_and_tried_is_in_the_audit_log_in_one_line_each(office: Office) -> None:
    made = office.olga.create_token("ann", ["reader", "labeller"], models=["wine"])
    office.olga.revoke_token(made.id)
    for caller, roles in (("a\nroot", ["reader"]), ("ann", ["king\n"])):
        with suppress(InvalidArgument):
            office.olga.create_token(caller, roles)
    token, _ = issue_token(office.store.access, "guest", ["reader"])
    with Client(office.address, token=token) as guest, suppress(PermissionDenied):
        guest.create_token("eve", ["operator"])
    assert audit_of(office.store) == [
        ("olga", "CreateToken", "a token of 'ann': 'reader, labeller'", "OK"),
        ("olga", "RevokeToken", f"tokens/{made.id}", "OK"),
        ("olga", "CreateToken", r"a token of 'a\nroot': 'reader'", "INVALID_ARGUMENT"),
        ("olga", "CreateToken", r"a token of 'ann': 'king\n'", "INVALID_ARGUMENT"),
        ("guest", "CreateToken", "a token of 'eve': 'operator'", "PERMISSION_DENIED"),
    ]
    assert [(each.who, each.action) for each in office.olga.audit(2)] == [
        ("olga", "CreateToken"),
        ("guest", "CreateToken"),
    ]
    with pytest.raises(InvalidArgument, match=r"newest: is 1001, must lie in \[0, 1000\]"):
        office.olga.audit(1001)


def test_lists_are_read_page_by_page(office: Office) -> None:
    for i in range(5):
        issue_token(office.store.access, f"caller-{i}", ["reader"])
    with grpc.insecure_channel(office.address) as channel:
        stub = admin_pb2_grpc.AdminServiceStub(channel)
        metadata = (("authorization", f"Bearer {office.secret}"),)
        found, request = [], admin_pb2.ListTokensRequest(page_size=3)
        while True:
            page = stub.ListTokens(request, metadata=metadata, timeout=30)
            assert len(page.tokens) <= 3
            found += [each.caller for each in page.tokens]
            request.page_token = page.next_page_token
            if not request.page_token:
                break
    assert found == [each.name for each in office.store.access.tokens()]


def test_a_server_that_is_killed_keeps_every_token_it_has_promised(tmp_path: Path) -> None:
    """SIGKILL falls between the write and the answer, or beside it; the store opens, and nobody is locked out."""
    store_path = tmp_path / "quercus.db"
    with Store.open(file_url(store_path)) as store:
        secret, _ = issue_token(store.access, "olga", ["operator"])
    promised: list[Any] = []
    serving = Serving(tmp_path, 0, "--access", "tokens", grower=False)

    def make() -> None:
        with Client(serving.address, token=secret, outage_s=0.0) as olga, suppress(QuercusError):
            promised.extend(olga.create_token(f"ann-{i}", ["reader"], models=["wine"]) for i in range(1000))

    maker = threading.Thread(target=make)
    maker.start()
    deadline = time.monotonic() + PATIENCE_S
    while len(promised) < 3 and time.monotonic() < deadline:
        time.sleep(0.001)
    serving.kill()
    maker.join()
    assert len(promised) >= 3
    assert verify_store(file_url(store_path)) == []
    serving = Serving(tmp_path, 0, "--access", "tokens", grower=False)
    try:
        with Client(serving.address, token=secret) as olga:
            stored = {each.id: each for each in olga.tokens()}
            for each in promised:
                assert stored[each.id].live
            with Client(serving.address, token=promised[-1].secret) as ann:
                assert ann.caller().models == ("wine",)
            assert len(stored) - 1 - len(promised) in (0, 1)  # one may have been written and not answered
    finally:
        serving.stop()


@pytest.mark.slow
def test_all_workers_know_what_was_made_and_what_was_revoked(tmp_path: Path) -> None:
    with Store.open(file_url(tmp_path / "quercus.db")) as store:
        secret, _ = issue_token(store.access, "olga", ["operator"])
    serving = Serving(tmp_path, 0, "--access", "tokens", grower=False, workers=2)
    try:
        with ExitStack() as closing:
            olgas = client_of_each(serving, closing, token=secret)
            made = {n: olga.create_token(f"of-{n}", ["reader"]) for n, olga in olgas.items()}
            for each in made.values():
                anns = client_of_each(serving, closing, token=each.secret)
                assert {ann.caller().name for ann in anns.values()} == {each.caller}
                next(iter(olgas.values())).revoke_token(each.id)
                for ann in anns.values():
                    assert "was revoked" in refusal_of(ann)
    finally:
        serving.stop()
