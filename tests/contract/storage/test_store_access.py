"""Tokens and the audit log."""

import pytest

from quercus.storage import NotFound, Store

DIGEST = bytes(range(32))
ROLES = frozenset({"sensor", "reader"})


def test_a_token_is_kept_as_it_was_made(store: Store) -> None:
    made = store.access.create_token(
        "t1", "ann", DIGEST, roles=ROLES, models=frozenset({"wine", "iris"}), duration_s=60.0
    )
    assert store.access.tokens() == [made]
    assert (made.name, made.digest, made.roles, made.models) == ("ann", DIGEST, ROLES, {"wine", "iris"})
    assert made.expires_at == pytest.approx(made.created_at + 60)
    assert made.is_live(made.created_at + 59.9)
    assert not made.is_live(made.created_at + 60.1)


def test_no_models_named_means_all_and_none_means_none(store: Store) -> None:
    store.access.create_token("t1", "all", DIGEST, roles=ROLES)
    store.access.create_token("t2", "none", DIGEST, roles=ROLES, models=frozenset())
    assert {each.name: each.models for each in store.access.tokens()} == {"all": None, "none": frozenset()}


def test_a_revoked_token_counts_no_more_and_stays_revoked(store: Store) -> None:
    store.access.create_token("t1", "ann", DIGEST, roles=ROLES)
    store.access.revoke_token("t1")
    (first,) = store.access.tokens()
    assert first.revoked_at is not None
    assert not first.is_live(first.created_at)
    store.access.revoke_token("t1")
    assert store.access.tokens() == [first]


def test_a_token_that_does_not_exist_cannot_be_revoked(store: Store) -> None:
    with pytest.raises(NotFound, match="token nobody does not exist"):
        store.access.revoke_token("nobody")


def test_the_audit_log_is_read_in_order_from_any_point(store: Store) -> None:
    for target in ("models/a", "models/b", "models/" + "c" * 300):
        store.access.record("ann", "DeleteModel", target, "OK")
    records = store.access.audit()
    assert [each.target for each in records] == ["models/a", "models/b", ("models/" + "c" * 300)[:200]]
    assert [(each.who, each.action, each.outcome) for each in records] == [("ann", "DeleteModel", "OK")] * 3
    assert store.access.audit(after=records[0].number, limit=1) == [records[1]]
