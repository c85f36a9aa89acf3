"""Disputes: which instances several labellers have labelled, and decisions about them."""

import pytest
from support import words

from quercus.labelling.disputes import MOST_LABELLERS, agreement_of, are_in_dispute
from quercus.labelling.history import (
    LabelState,
    known_contour,
    label_events,
    labels_by_labeller,
    standing_labels,
)
from quercus.storage import (
    Adjudication,
    Corrections,
    EventKind,
    FailedPrecondition,
    NotFound,
    Policy,
    Statement,
    StatementBatch,
)
from quercus.storage.admin.verify import verify_store

SIZE = 8


@pytest.fixture
def said(store, helper):
    """Instances a to d (1..4): ann and bob differ about a (answers) and b (statements), and agree about c."""
    helper.create(budget=9)
    helper.push("a", "b", "c", "d")
    store.set_policy("m", Policy(answers_per_query=2, max_conflict=1.0))
    helper.publish(1)
    for labeller, label in (("ann", words.A), ("bob", words.B)):
        (held,) = store.lease("m", labeller, 1, 60.0).queries
        words.answer(store, "m", held.number, held.token, label, None)
    spoken = [("b", "ann", words.A), ("b", "bob", words.C), ("c", "ann", words.D), ("c", "bob", words.D)]
    store.state("m", StatementBatch("r", [Statement(*each) for each in spoken]), words.KNOWN)
    return store


def decide(store, instance: str, label: bytes | None, who: str = "eve", **more):
    given = Adjudication(who, label, **({"permitted": True} | more))
    return store.adjudicate("m", instance, given, words.KNOWN)


def history(store, place: int):
    return store.history("m", [place])[place]


def disputed(store) -> list[str]:
    found, _ = store.shared_details("m", 0, 100)
    return [each[0].id for each in found.histories.values() if are_in_dispute(standing_labels(each), SIZE)]


def states(store, place: int) -> dict[str, LabelState]:
    return {each.event.author: each.state for each in label_events(history(store, place))}


@pytest.mark.parametrize(("instance", "place"), [("a", 1), ("b", 2)])
def test_a_decision_overrules_answers_and_statements_and_is_attributed(said, instance, place):
    assert disputed(said) == ["a", "b"]
    before = known_contour(history(said, place), SIZE)
    done = decide(said, instance, words.D, comment="looked at the slide")
    assert not done.repeated
    own, joint = history(said, place)[-2:]
    assert (own.kind, own.author, own.label, own.comment) == (
        EventKind.ADJUDICATION, "eve", words.D, "looked at the slide",
    )  # fmt: skip
    assert (joint.kind, joint.author, joint.label, joint.sequence) == (
        EventKind.CORRECTION, "eve", words.D, done.sequence,
    )  # fmt: skip
    assert known_contour(history(said, place), SIZE).tolist() == [0, 0, 0, 1, 0, 0, 0, 0]
    assert states(said, place) == {
        "ann": LabelState.REPLACED, "bob": LabelState.REPLACED, "eve": LabelState.COUNTS,
    }  # fmt: skip
    assert instance not in disputed(said)
    again = decide(said, instance, words.D)
    assert (again.repeated, again.sequence) == (True, done.sequence)
    # taken back, the labels of the labellers hold again, to the bit
    decide(said, instance, None)
    assert known_contour(history(said, place), SIZE) == pytest.approx(before)
    assert set(labels_by_labeller(history(said, place), SIZE)) == {"ann", "bob"}
    assert disputed(said) == ["a", "b"]
    assert decide(said, instance, None).repeated


def test_a_decision_also_overrules_what_is_said_later(said):
    decide(said, "b", words.D)
    said.state("m", StatementBatch("later", [Statement("b", "cid", words.A)]), words.KNOWN)
    assert known_contour(history(said, 2), SIZE).tolist() == [0, 0, 0, 1, 0, 0, 0, 0]
    assert states(said, 2)["cid"] is LabelState.REPLACED
    decide(said, "b", words.C, "fay")  # another decides anew
    assert states(said, 2)["eve"] is LabelState.REPLACED
    decide(said, "b", None, "fay")
    assert states(said, 2)["cid"] is LabelState.COUNTS
    assert set(labels_by_labeller(history(said, 2), SIZE)) == {"ann", "bob", "cid"}


def test_who_may_decide(said):
    for policy, allowed in (
        (Corrections.OWN, {"permitted": True, "trusted": True, "": False}),
        (Corrections.ANYONE, {"permitted": True, "trusted": True, "": True}),
        (Corrections.NOBODY, {"permitted": True, "trusted": False, "": False}),
    ):
        said.set_policy("m", Policy(corrections=policy))
        for right, may in allowed.items():
            given = Adjudication("ann", words.C, f"{policy} {right}", **({right: True} if right else {}))
            if may:
                said.adjudicate("m", "a", given, words.KNOWN)
                decide(said, "a", None, "ann")
            else:
                with pytest.raises(FailedPrecondition, match="ann may not decide between labellers"):
                    said.adjudicate("m", "a", given, words.KNOWN)


def test_of_all_who_may_correct_only_those_decide_who_may_label(said):
    said.set_policy("m", Policy(corrections=Corrections.ANYONE, labellers=("bob",)))
    with pytest.raises(FailedPrecondition, match="ann may not decide between labellers"):
        said.adjudicate("m", "a", Adjudication("ann", words.C), words.KNOWN)
    said.adjudicate("m", "a", Adjudication("bob", words.C), words.KNOWN)
    said.adjudicate("m", "a", Adjudication("ann", words.D, trusted=True), words.KNOWN)


def test_what_cannot_be_decided(said):
    committed = said.get_model("m").sequence_committed
    with pytest.raises(FailedPrecondition, match="nobody has labelled it yet"):
        decide(said, "d", words.A)
    with pytest.raises(FailedPrecondition, match="nothing to take back"):
        decide(said, "c", None)
    with pytest.raises(NotFound, match="instance m/nowhere"):
        decide(said, "nowhere", words.A)
    assert said.get_model("m").sequence_committed == committed


def test_the_open_query_of_a_decided_instance_is_withdrawn_or_waits_for_its_holder(said, helper):
    helper.publish(4)
    said.set_policy("m", Policy(answers_per_query=3))
    (held,) = said.lease("m", "ann", 1, 60.0).queries
    words.answer(said, "m", held.number, held.token, words.A)
    (other,) = said.lease("m", "bob", 1, 60.0).queries
    decide(said, "d", words.B)
    words.answer(said, "m", other.number, other.token, words.C)
    assert known_contour(history(said, 4), SIZE).tolist() == [0, 1, 0, 0, 0, 0, 0, 0]
    assert "d" not in disputed(said)


def test_pages_name_each_instance_once(said):
    found, after = [], 0
    for _ in range(20):
        page, following = said.shared_details("m", after, 1)
        found += [each[0].id for each in page.histories.values()]
        if following is None:
            break
        after = following
    assert found == ["a", "b", "c"]


def test_agreement_counts_what_labellers_said_themselves(said):
    decide(said, "a", words.A)
    histories, is_partial = said.newest_shared("m", 100)
    found = agreement_of(histories.values(), SIZE)
    assert (found.shared, found.disputed, found.adjudicated, is_partial) == (3, 1, 1, False)
    (pair,) = found.pairs
    assert (pair.first, pair.second, pair.rows, pair.same) == ("ann", "bob", 3, 1)
    assert pair.kappa == pytest.approx((1 / 3 - 1 / 9) / (1 - 1 / 9))
    # a is decided for ann, c is agreed, and of b two contradict each other, so no one class holds
    assert {each.labeller: each.counts.sum() for each in found.confusions} == {"ann": 2, "bob": 2}
    by_name = {each.labeller: each.counts for each in found.confusions}
    assert (by_name["ann"][0, 0], by_name["bob"][1, 0], by_name["bob"][3, 3]) == (1, 1, 1)
    assert said.newest_shared("m", 2)[1]


@pytest.mark.parametrize("who", ["eve", "ann"])
def test_an_answer_that_another_took_back_counts_in_agreement_as_one_that_was_overruled(said, helper, who):
    """With one answer a query, the instance has no opinion and no statement, by which such instances are found."""
    said.set_policy("m", Policy(answers_per_query=1, corrections=Corrections.ANYONE))
    helper.publish(4)
    for labeller in ("ann", "bob"):
        (held,) = said.lease("m", labeller, 1, 60.0).queries
        words.answer(said, "m", held.number, held.token, words.A)
        if labeller == "ann":
            words.amend(said, "m", held.number, who, None)
            helper.publish(4)
    histories, is_partial = said.newest_shared("m", 100)
    (pair,) = agreement_of(histories.values(), SIZE).pairs
    assert (pair.rows, pair.same) == ((4, 2) if who == "eve" else (3, 1))
    assert not is_partial
    newest, is_partial = said.newest_shared("m", 1)
    assert (list(newest), is_partial) == ([4], True)  # which only the answer taken back tells of


def test_pairs_are_those_of_the_labellers_with_the_most_labels(said):
    """All pairs would be too many: 20,000 labellers of one row make 200 million."""
    crowd = [f"w{k:03}" for k in range(MOST_LABELLERS + 50)]
    spoken = [Statement("d", name, words.A) for name in crowd]
    said.state("m", StatementBatch("crowd", spoken), words.KNOWN)
    found = agreement_of(said.newest_shared("m", 1_000)[0].values(), SIZE)
    assert (found.alpha_rows, found.alpha_labels) == (4, 6 + len(crowd))
    assert len(found.pairs) == 1 + (MOST_LABELLERS - 2) * (MOST_LABELLERS - 3) // 2
    assert [each.labeller for each in found.confusions] == ["ann", "bob", *crowd[: MOST_LABELLERS - 2]]


def test_a_decision_is_sound_and_is_not_asked_about_by_an_older_tree(said, helper, store_url):
    decide(said, "a", words.D)
    decide(said, "b", words.A)
    decide(said, "b", None)
    decide(said, "b", words.C)
    helper.publish(2, as_of=4)
    assert not said.lease("m", "cid", 5, 60.0).queries
    assert verify_store(store_url) == []
