"""Turns go by time: who took least lately comes first, and whoever always has work gets the same time as the others."""

from quercus.server.growth.time_shares import RecentTime

LARGE, SMALL, OTHER = 1, 2, 3
COST_S = {LARGE: 0.4, SMALL: 0.002, OTHER: 0.05}


def test_models_that_always_have_work_get_the_same_time() -> None:
    recent, now = RecentTime(), 1_000.0
    spent = dict.fromkeys(COST_S, 0.0)
    while sum(spent.values()) < 60.0:
        key = recent.in_turn(COST_S, now)[0]
        now += COST_S[key]
        spent[key] += COST_S[key]
        recent.add_seconds(key, COST_S[key], now)
    assert max(spent.values()) - min(spent.values()) < 3 * COST_S[LARGE], spent


def test_a_model_that_seldom_has_work_waits_for_one_step_at_most() -> None:
    recent, now, waits = RecentTime(), 1_000.0, []
    since = now  # when the small model got its work
    while now < 1_100.0:
        due = {LARGE} | ({SMALL} if since <= now else set())
        key = recent.in_turn(due, now)[0]
        now += COST_S[key]
        recent.add_seconds(key, COST_S[key], now)
        if key == SMALL:
            waits.append(now - since)
            since = now + 0.2
    assert len(waits) > 100
    assert max(waits) <= COST_S[LARGE] + COST_S[SMALL] + 1e-9


def test_what_lies_back_counts_no_more() -> None:
    recent = RecentTime()
    recent.add_seconds(SMALL, 5.0, now=0.0)
    recent.add_seconds(LARGE, 4.0, now=0.0)
    assert recent.in_turn((SMALL, LARGE), now=1.0) == [LARGE, SMALL]
    recent.add_seconds(LARGE, 1.0, now=60.0)
    assert recent.in_turn((LARGE, SMALL), now=60.0) == [SMALL, LARGE]
    recent.forget_model(LARGE)
    assert recent.in_turn((SMALL, LARGE), now=60.0) == [LARGE, SMALL]
