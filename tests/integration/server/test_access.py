"""Access control: every role with every RPC, invalid tokens, and the models that each caller may use."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from support.waiting import until

from quercus.client import (
    AnswerFilter,
    Client,
    FailedPrecondition,
    LabellingPolicy,
    PermissionDenied,
    Statement,
    Unauthenticated,
)
from quercus.inference import open_inference_pb2
from quercus.server.app import SERVICES
from quercus.server.gate import access
from quercus.server.gate.rpcs import ROLES, RPCS
from quercus.storage import AgendaEntry
from quercus.v1 import (
    admin_pb2,
    classify_pb2,
    instance_pb2,
    model_pb2,
    query_pb2,
    tree_pb2,
    values_pb2,
)

SERVICE_FILES = (
    *(admin_pb2, model_pb2, instance_pb2, query_pb2, classify_pb2, tree_pb2),
    open_inference_pb2,
)
PROBES = {"GRPCInferenceService/ServerLive", "GRPCInferenceService/ServerReady"}
METHODS = {
    f"{service.name}/{method.name}": method
    for module in SERVICE_FILES
    for service in module.DESCRIPTOR.services_by_name.values()
    for method in service.methods
}
REFUSED = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)
DEADLINE_S = 30.0


class Guarded:
    """A server that asks for tokens, and callers of it."""

    def __init__(self, live: Any) -> None:
        self.live = live
        self.address = live.server.address
        self.tokens = live.server.core.store.access
        self.channels: list[grpc.Channel] = []
        self.issued = {role: self.issue(f"the-{role}", role) for role in ROLES}
        self.operator = Client(self.address, token=self.issued["operator"])

    def issue(self, name: str, *roles: str, **fields: Any) -> str:
        token, _ = access.issue_token(self.tokens, name, roles, **fields)
        return token

    def call(self, method: str, token: str | None, request: Any = None) -> grpc.StatusCode:
        """Return the status of a call, with an empty request unless one is given."""
        descriptor = METHODS[method]
        channel = grpc.insecure_channel(self.address)
        self.channels.append(channel)
        message = request if request is not None else message_class(descriptor.input_type)()
        kind = ("stream" if descriptor.client_streaming else "unary") + "_"
        kind += "stream" if descriptor.server_streaming else "unary"
        stub = getattr(channel, kind)(
            f"/{descriptor.containing_service.full_name}/{descriptor.name}",
            request_serializer=lambda each: each.SerializeToString(),
            response_deserializer=message_class(descriptor.output_type).FromString,
        )
        metadata = None if token is None else (("authorization", f"Bearer {token}"),)
        try:
            result = stub(
                iter([message]) if descriptor.client_streaming else message,
                metadata=metadata,
                timeout=DEADLINE_S,
            )
            if descriptor.server_streaming:
                next(result, None)
                result.cancel()
        except grpc.RpcError as error:
            return error.code()  # type: ignore[attr-defined]
        finally:
            channel.close()
        return grpc.StatusCode.OK

    def close(self) -> None:
        self.operator.close()


def message_class(descriptor: Any) -> Any:
    if descriptor.full_name == "google.protobuf.Empty":
        from google.protobuf import empty_pb2

        return empty_pb2.Empty
    module = next(m for m in (*SERVICE_FILES, values_pb2) if hasattr(m, descriptor.name))
    return getattr(module, descriptor.name)


@pytest.fixture
def guarded(start_live: Callable[..., Any], tmp_path: Path) -> Iterator[Guarded]:
    """A server of its own, which grows no tree."""
    made = Guarded(start_live(tmp_path / "store.db", access="tokens", grower=False))
    yield made
    made.close()


@pytest.fixture(scope="module")
def growing(start_for_all: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One server that grows trees, for all tests that need one."""
    return start_for_all(tmp_path_factory.mktemp("growing") / "store.db", access="tokens", poll_ms=50)


@pytest.fixture
def asking(growing: Any) -> Iterator[Guarded]:
    """The server that grows trees; the test leaves no model behind."""
    made = Guarded(growing)
    yield made
    for model in list(made.operator.models()):
        made.operator.delete_model(model.name)
    made.close()


def test_every_rpc_of_the_server_is_described() -> None:
    assert set(METHODS) == {rpc.name for rpc in RPCS.values()}
    assert {name.rpartition(".")[2] for name in SERVICES} == {name.partition("/")[0] for name in METHODS}


def test_every_role_may_call_what_the_table_says_and_nothing_else(guarded: Guarded) -> None:
    for method, allowed in ((rpc.name, rpc.roles) for rpc in RPCS.values()):
        for role in ROLES:
            code = guarded.call(method, guarded.issued[role])
            assert (code not in REFUSED) == (role in allowed), (method, role, code)
        nobody = grpc.StatusCode.OK if method in PROBES else grpc.StatusCode.UNAUTHENTICATED
        assert guarded.call(method, None) is nobody, method


def test_every_caller_learns_what_it_may_do(guarded: Guarded) -> None:
    for role in ROLES:
        with Client(guarded.address, token=guarded.issued[role]) as client:
            caller = client.caller()
        assert (caller.name, caller.roles, caller.models) == (f"the-{role}", (role,), None)
        assert caller.needs_token
        assert caller.methods == {rpc.name for rpc in RPCS.values() if role in rpc.roles}
    with Client(guarded.address, token=guarded.issue("one", "operator", models={"wine"})) as client:
        caller = client.caller()
    assert caller.models == ("wine",)
    assert (caller.may_use("wine"), caller.may_use("iris")) == (True, False)
    assert caller.may_call("ModelService/DeleteModel")
    assert not caller.may_call("AdminService/SetLogLevel")  # it changes the whole server


def test_without_tokens_everybody_may_do_everything(live: Any) -> None:
    with Client(live.server.address) as client:
        caller = client.caller()
    assert (caller.name, caller.roles, caller.models) == ("", tuple(sorted(ROLES)), None)
    assert not caller.needs_token
    assert caller.methods == {rpc.name for rpc in RPCS.values()}


def test_roles_add_up(guarded: Guarded) -> None:
    both = guarded.issue("both", "reader", "sensor")
    assert guarded.call("InstanceService/PushInstances", both) not in REFUSED
    assert guarded.call("TreeService/GetTree", both) not in REFUSED
    assert guarded.call("ModelService/DeleteModel", both) is grpc.StatusCode.PERMISSION_DENIED


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda token: token[:-1], "malformed"),
        (lambda token: token + "x", "malformed"),
        (lambda token: "", "malformed"),
        (lambda token: "quercus_" + "0" * 12 + token[20:], "not known"),
        (lambda token: token[:21] + ("A" if token[21] != "A" else "B") + token[22:], "not known"),
    ],
)
def test_a_token_that_is_not_right_in_every_character_is_none(
    guarded: Guarded, spoil: Callable[[str], str], said: str
) -> None:
    metadata = (("authorization", f"Bearer {spoil(guarded.issued['operator'])}"),)
    with grpc.insecure_channel(guarded.address) as channel:
        get = channel.unary_unary("/quercus.v1.ModelService/ListModels")
        with pytest.raises(grpc.RpcError, match=said) as caught:
            get(b"", metadata=metadata, timeout=DEADLINE_S)
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
        with pytest.raises(grpc.RpcError, match="malformed"):
            get(b"", metadata=(("authorization", f"Basic {guarded.issued['operator']}"),), timeout=DEADLINE_S)


def test_an_expired_token_counts_no_more(guarded: Guarded) -> None:
    token = guarded.issue("brief", "reader", lifetime_s=0.001)
    time.sleep(0.01)  # what is tested is that time passes
    with (
        Client(guarded.address, token=token) as client,
        pytest.raises(Unauthenticated, match="brief expired"),
    ):
        list(client.models())


def test_a_revoked_token_ends_also_streams_that_are_open(asking: Guarded, tools: Any) -> None:
    asking.operator.create_model("m", specification())
    token = asking.issue("watcher", "reader")
    with Client(asking.address, token=token) as client:
        watch = client.watch("m")
        assert next(watch).tree.version >= 1
        token_id = token.split("_")[1]
        asking.tokens.revoke_token(token_id)
        with pytest.raises(Unauthenticated, match="watcher was revoked"):
            push_until_the_watch_ends(asking.operator, watch)
        with pytest.raises(Unauthenticated, match="watcher was revoked"):
            client.get_model("m")


def push_until_the_watch_ends(operator: Client, watch: Any) -> None:
    for _ in range(1000):  # each push brings another tree
        operator.push("m", [{"X": "a", "Y": None}] * 3, ["o", "s", "x"])
        next(watch)


def test_only_granted_models_exist_for_a_caller(guarded: Guarded) -> None:
    for name in ("a", "b", "c"):
        guarded.operator.create_model(name, specification())
    token = guarded.issue("ab", "reader", "sensor", models=["a", "b", "later"])
    with Client(guarded.address, token=token) as client:
        assert [model.name for model in client.models()] == ["a", "b"]
        assert client.get_model("a").name == "a"
        for refused in (lambda: client.get_model("c"), lambda: client.get_model("unheard-of")):
            with pytest.raises(PermissionDenied, match="not for the model"):
                refused()
        with pytest.raises(PermissionDenied, match="the model c"):
            client.push("c", [{"X": "a", "Y": None}], ["o"])
        with pytest.raises(PermissionDenied, match="the model c"):
            client.tree("c")
    creator = guarded.issue("creator", "operator", models=["mine"])
    with Client(guarded.address, token=creator) as client:
        client.create_model("mine", specification())
        with pytest.raises(PermissionDenied, match="the model yours"):
            client.create_model("yours", specification())


def test_a_labeller_labels_under_the_name_of_the_token(asking: Guarded, tools: Any) -> None:
    asked(asking, tools)
    ann, bob = asking.issue("ann", "labeller"), asking.issue("bob", "labeller")
    with Client(asking.address, token=ann) as first, Client(asking.address, token=bob) as second:
        with pytest.raises(PermissionDenied, match="speaks for 'ann'"):
            first.lease("m", labeller="bob")
        (query,) = first.lease("m", labeller="ann", wait_s=60).queries
        assert query.labeller == "ann"
        seen = {each.labeller for each in second.list_queries("m")}
        assert "ann" not in seen
        for refused in (lambda: second.answer(query, "s"), lambda: second.refuse(query)):
            with pytest.raises(PermissionDenied, match="another labeller"):
                refused()  # bob has the lease's token, as if it were stolen
        assert "ann" in {each.labeller for each in asking.operator.list_queries("m")}
        first.answer(query, "s")
    nameless = query_pb2.LeaseQueriesRequest(model="models/m")
    assert asking.call("QueryService/LeaseQueries", ann, nameless) is grpc.StatusCode.OK


def test_a_labeller_states_under_the_name_of_the_token_and_sees_its_own_answers(
    asking: Guarded, tools: Any
) -> None:
    asked(asking, tools)
    (row, *_) = (each.id for each in asking.operator.instances("m"))
    ann, bob = asking.issue("ann", "labeller"), asking.issue("bob", "labeller")
    with Client(asking.address, token=ann) as first, Client(asking.address, token=bob) as second:
        first.state("m", [Statement(row, "s")])
        with pytest.raises(PermissionDenied, match="speaks for 'bob'"):
            second.state("m", [Statement(row, "x", labeller="ann")])
        second.state("m", [Statement(row, "x")])
        assert [each.labeller for each in second.answers("m")] == ["bob"]
        with pytest.raises(PermissionDenied, match="labellers: has 'ann', but the token speaks for 'bob'"):
            list(second.answers("m", AnswerFilter(labellers=["ann"])))
    for role in ("reader", "corrector", "operator"):
        with Client(asking.address, token=asking.issued[role]) as other:
            assert [each.labeller for each in other.answers("m")] == ["ann", "bob"]
    asking.operator.state("m", [Statement(row, "o", labeller="cleo")])


def asked(asking: Guarded, tools: Any) -> None:
    """A model that has queries."""
    names = asking.operator
    names.create_model("m", specification(budget=5, alpha=0.9))
    rows = [{"X": "abc"[int(x)], "Y": "de"[int(y)]} for x, y in tools.rows_t[:, :2]]
    names.push("m", rows, list(tools.rows_t[:, 2:]))


def specification(**fields: Any) -> Any:
    from support.published import published_model

    from quercus.client import Nominal

    return published_model(
        [Nominal("X", "abc"), Nominal("Y", "de")], ["o", "s", "x"], strategy="published", **fields
    )


def test_health_needs_no_token_and_reflection_does(guarded: Guarded) -> None:
    with grpc.insecure_channel(guarded.address) as channel:
        health = health_pb2_grpc.HealthStub(channel).Check(
            health_pb2.HealthCheckRequest(), timeout=DEADLINE_S
        )
        assert health.status == health_pb2.HealthCheckResponse.SERVING
        reflect = channel.stream_stream("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")
        with pytest.raises(grpc.RpcError) as caught:
            next(reflect(iter([b""]), timeout=DEADLINE_S))
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


def test_administrative_calls_are_audited(guarded: Guarded) -> None:
    guarded.operator.create_model("m", specification())
    reader = Client(guarded.address, token=guarded.issued["reader"])
    with reader, pytest.raises(PermissionDenied, match=r"has the role reader; this needs operator$"):
        reader.delete_model("m")
    with Client(guarded.address) as stranger, pytest.raises(Unauthenticated, match="asks for a token"):
        stranger.delete_model("m")
    guarded.operator.delete_model("m")
    found = [(each.who, each.action, each.target, each.outcome) for each in guarded.tokens.audit()]
    assert found[:2] == [
        ("the-operator", "CreateModel", "models/m", "OK"),
        ("the-reader", "DeleteModel", "models/m", "PERMISSION_DENIED"),
    ]
    assert found[2][0].startswith("a stranger at ")
    assert found[2][1:] == ("DeleteModel", "unread", "UNAUTHENTICATED")
    assert found[3] == ("the-operator", "DeleteModel", "models/m", "OK")


def test_only_an_operator_of_all_models_sets_the_log_level_of_all(guarded: Guarded) -> None:
    request = admin_pb2.SetLogLevelRequest(level="info")
    restricted = guarded.issue("of-one", "operator", models=["m"])
    method = "AdminService/SetLogLevel"
    assert guarded.call(method, restricted, request) is grpc.StatusCode.PERMISSION_DENIED
    assert guarded.call(method, guarded.issued["operator"], request) is grpc.StatusCode.OK


def test_without_tokens_anyone_on_this_machine_may_call_and_is_audited(api: Any, live: Any) -> None:
    api.create("open-door")
    last = live.server.core.store.access.newest_audit(1)[0]
    assert (last.action, last.target, last.outcome) == ("CreateModel", "models/open-door", "OK")
    assert last.who.startswith("anyone at ")


def test_no_secret_is_logged_or_shown(
    guarded: Guarded, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    token = guarded.issued["reader"]
    secret = token.split("_", 2)[2]
    with caplog.at_level("DEBUG"), Client(guarded.address, token=token) as client:
        with pytest.raises(PermissionDenied) as caught:
            client.delete_model("nothing")
        assert secret not in repr(client.__dict__)
    assert secret not in caplog.text
    assert secret not in str(caught.value)
    for file in tmp_path.iterdir():
        assert secret.encode() not in file.read_bytes()


def test_grants_apply_to_every_message_on_a_stream(asking: Guarded, tools: Any) -> None:
    asked(asking, tools)
    asking.operator.create_model("mine", specification(budget=5))
    (query,) = asking.operator.lease("m", labeller="ann", wait_s=60).queries
    asking.operator.answer(query, "s")
    token = asking.issue("ann", "labeller", models=["mine"])
    correction = query_pb2.CorrectAnswerRequest(
        name=f"models/m/queries/{query.number}", label=values_pb2.Label(class_name="o")
    )
    for said in (
        {"correction": correction},
        {"undo": query_pb2.UndoAnswerRequest(name=correction.name)},
        {"answer": query_pb2.AnswerQueryRequest(name=correction.name, lease_token="guessed")},
        {"refusal": query_pb2.RefuseQueryRequest(name=correction.name)},
    ):
        for model in ("models/mine", "models/-"):
            request = query_pb2.StreamQueriesRequest(model=model, **said)
            code = asking.call("QueryService/StreamQueries", token, request)
            assert code is grpc.StatusCode.PERMISSION_DENIED, (model, said)
    (event,) = [step for step in asking.operator.query_history("m", query.number) if step.sequence]
    assert event.kind == "answered"


def test_a_stolen_lease_is_of_no_use_after_it_ended_either(asking: Guarded, tools: Any) -> None:
    asked(asking, tools)
    ann, bob = asking.issue("ann", "labeller"), asking.issue("bob", "labeller")
    with Client(asking.address, token=ann) as first, Client(asking.address, token=bob) as second:
        (query,) = first.lease("m", labeller="ann", wait_s=60).queries
        first.release(query)
        first.lease("m", labeller="ann", lease_s=1, wait_s=60)
        for refused in (lambda: second.answer(query, "s"), lambda: second.skip(query)):
            with pytest.raises(PermissionDenied, match="given to another labeller"):
                refused()


def test_strangers_cannot_fill_the_audit_log_nor_write_lines_of_it(
    guarded: Guarded, caplog: pytest.LogCaptureFixture
) -> None:
    forged = "x\n2026-01-01T00:00:00Z INFO quercus.audit: root DeleteModel models/m: OK\x1b[2J"
    request = model_pb2.CreateModelRequest(model_id=forged)
    with caplog.at_level("INFO"):
        for _ in range(20):
            code = guarded.call("ModelService/CreateModel", None, request)
            assert code is grpc.StatusCode.UNAUTHENTICATED
        for _ in range(20):
            code = guarded.call("ModelService/CreateModel", guarded.issued["reader"], request)
            assert code is grpc.StatusCode.PERMISSION_DENIED
    found = guarded.tokens.audit()
    assert 2 <= len(found) < 40
    assert {each.who.partition(" at ")[0] for each in found} == {"a stranger", "the-reader"}
    assert all(each.target.isprintable() for each in found)
    assert all(record.getMessage().isprintable() for record in caplog.records)


def test_probes_leave_calls_to_others(start_live: Callable[..., Any], tmp_path: Path) -> None:
    live = start_live(tmp_path / "store.db", access="tokens", max_streams=2, grower=False)
    with grpc.insecure_channel(live.server.address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        watches = [stub.Watch(health_pb2.HealthCheckRequest(), timeout=DEADLINE_S) for _ in range(2)]
        assert all(next(watch).status == health_pb2.HealthCheckResponse.SERVING for watch in watches)
        with pytest.raises(grpc.RpcError, match="max_streams") as caught:
            next(stub.Watch(health_pb2.HealthCheckRequest(), timeout=DEADLINE_S))
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        for watch in watches:
            watch.cancel()


def test_who_has_the_role_may_correct_what_others_answered(asking: Guarded, tools: Any) -> None:
    asked(asking, tools)
    (query,) = asking.operator.lease("m", labeller="ann", wait_s=60).queries
    asking.operator.answer(query, "s")
    asking.operator.set_labelling_policy("m", LabellingPolicy(corrections="nobody"))
    for role, allowed in (("labeller", False), ("corrector", True)):
        with Client(asking.address, token=asking.issue(f"a-{role}", role)) as client:
            if allowed:
                client.correct(query, "o", labeller=f"a-{role}", comment="a typo")
            else:
                with pytest.raises(FailedPrecondition, match="allows no corrections"):
                    client.correct(query, "o", labeller=f"a-{role}")
            with pytest.raises(PermissionDenied, match="the token speaks for"):
                client.correct(query, "s", labeller="ann")
    steps = asking.operator.query_history("m", query.number)
    assert [(step.kind, step.labeller) for step in steps][-1] == ("corrected", "a-corrector")


def test_who_names_nobody_speaks_as_the_token_does(asking: Guarded, tools: Any) -> None:
    asked(asking, tools)
    for name, role in (("ann", "labeller"), ("the-operator", "operator")):
        with Client(asking.address, token=asking.issue(name, role)) as client:
            assert client.has_token
            (query,) = client.lease("m", labeller="", wait_s=60).queries
            assert query.labeller == name
            client.answer(query, "s")
            client.correct(query, "o")


def test_a_token_that_is_revoked_while_its_call_waits_gets_nothing(guarded: Guarded) -> None:
    operator, store = guarded.operator, guarded.live.server.core.store
    operator.create_model("m", specification(budget=5))
    operator.push("m", [{"X": "a", "Y": "d"}])
    token = guarded.issue("ann", "labeller")
    with Client(guarded.address, token=token) as client, ThreadPoolExecutor() as pool:
        client.get_model("m")  # now the token is known, and the next call is let in at once
        until(lambda: operator.status().calls == 1)  # this one alone
        waiting = pool.submit(client.lease, "m", labeller="ann", wait_s=DEADLINE_S)
        until(lambda: operator.status().calls == 2)  # and the one that waits
        guarded.tokens.revoke_token(token.split("_")[1])
        until(lambda: is_refused(client))  # the server has read that the token is revoked
        store.publish("m", as_of=1, snapshot=b"", agenda=[AgendaEntry(1, b"", b"")])  # ends the wait
        with pytest.raises(Unauthenticated, match="ann was revoked"):
            waiting.result(2 * DEADLINE_S)


def is_refused(client: Client) -> bool:
    try:
        client.get_model("m")
    except Unauthenticated:
        return True
    return False
