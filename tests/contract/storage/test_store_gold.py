"""Gold questions: marked, mixed among queries, answered like any other, and scored; no tree learns from an answer."""

import pytest
from contract.storage.archives import rebuilt
from support import words

from quercus.belief.errors import InvalidInput
from quercus.labelling.answers import Amendment
from quercus.labelling.gold import (
    GoldScore,
    as_known_to,
    gold_mark,
    gold_scores,
)
from quercus.labelling.history import LabelKind, LabelState, known_contour, label_events
from quercus.labelling.lifecycle import QueryState, Step
from quercus.labelling.policy import Combination
from quercus.storage import (
    Adjudication,
    EventKind,
    FailedPrecondition,
    Mark,
    NotFound,
    Policy,
    Statement,
    StatementBatch,
)
from quercus.storage.admin.verify import verify_store
from quercus.storage.archive.writing import archive_model

SIZE = 8
GOLD = Policy(gold_share=1.0)
ONLY_A = [1.0] + [0.0] * 7


@pytest.fixture
def marked(store, helper):
    """Rows a to f (1..6); a and b are gold questions, of classes A and B; growth asks of c, d, e, f."""
    helper.create(budget=20)
    helper.push(*"abcdef")
    store.set_policy("m", GOLD)
    mark(store, a=words.A, b=words.B)
    helper.publish(3, 4, 5, 6)
    return store


def mark(store, **labels):
    return store.mark_gold("m", "eve", [Mark(*each) for each in labels.items()], words.KNOWN)


def lease(store, who: str, limit: int = 1):
    return store.lease("m", who, limit, 60.0).queries


def history(store, place: int):
    return store.history("m", [place])[place]


def grown(helper, *instances):
    """Publish as of now, so that whoever answered may lease again."""
    helper.publish(*instances)


def scores(store):
    return gold_scores(store.gold_histories("m").values(), SIZE)


def test_a_mark_is_the_label_of_its_row_until_it_is_taken_back(store, helper, store_url):
    helper.create()
    helper.push("a", "b")
    store.state("m", StatementBatch("r", [Statement("a", "ann", words.B)]), words.KNOWN)
    done = mark(store, a=words.A)
    assert (done.stored, done.known) == (1, 0)
    own, joint = history(store, 1)[-2:]
    assert (own.kind, own.gold, own.author, own.label) == (EventKind.ADJUDICATION, True, "eve", words.A)
    assert (joint.kind, joint.gold, joint.label) == (EventKind.CORRECTION, False, words.A)
    assert known_contour(history(store, 1), SIZE).tolist() == ONLY_A
    said = {each.event.author: (each.kind, each.state) for each in label_events(history(store, 1))}
    assert said == {
        "ann": (LabelKind.STATED, LabelState.REPLACED), "eve": (LabelKind.MARKED, LabelState.COUNTS)
    }  # fmt: skip
    assert mark(store, a=words.A).known == 1
    store.adjudicate("m", "a", Adjudication("fay", words.C, permitted=True), words.KNOWN)
    assert known_contour(history(store, 1), SIZE).tolist() == ONLY_A  # a gold question keeps its label
    mark(store, a=None)
    assert known_contour(history(store, 1), SIZE)[2] == 1.0  # what was adjudicated holds again
    assert gold_mark(history(store, 1)) is None
    assert store.gold_histories("m") == {}
    assert not verify_store(store_url)


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"nowhere": words.A}, NotFound, "instance m/nowhere"),
        ({"a": words.ANYTHING}, FailedPrecondition, "the label of a says nothing"),
        ({"a": None}, FailedPrecondition, "a is not a gold question"),
    ],
)
def test_what_cannot_be_marked(store, helper, given, error, said):
    helper.create()
    helper.push("a", "b")
    with pytest.raises(error, match=said):
        mark(store, b=words.B, **given)
    assert store.gold_histories("m") == {}  # all or none


def test_too_many_marks_are_refused(store, helper, monkeypatch):
    helper.create()
    helper.push("a", "b", "c")
    monkeypatch.setattr("quercus.storage.queries.gold_marks.MAX_GOLD", 2)
    with pytest.raises(InvalidInput, match=r"marks: would make 3 gold questions, at most 2 are allowed"):
        mark(store, a=words.A, b=words.B, c=words.C)
    assert mark(store, a=words.A, b=words.B).stored == 2


def test_a_gold_question_takes_the_place_of_another_that_is_asked_later(marked, helper, store_url):
    (query,) = lease(marked, "ann")
    assert query.is_gold
    assert query.instance_id in {"a", "b"}
    assert query.position == 0  # that of the query that growth would ask first, which is next now
    assert query.number in {3, 4}  # neither of the first nor of the next
    assert query.reason in {b"reason 5", b"reason 6"}
    live = marked.list_queries("m", [QueryState.OPEN])
    assert [(each.instance_id, each.position) for each in sorted(live, key=lambda each: each.position)] == [
        ("c", 1), ("d", 2), ("e", 3), ("f", 4),
    ]  # fmt: skip
    assert marked.get_model("m").queries_open == 4
    renamed = "e" if query.number == 3 else "f"
    assert [each.number for each in live if each.instance_id == renamed] == [5]
    assert not verify_store(store_url)


def test_each_labeller_is_asked_once_and_no_tree_learns_from_it(marked, helper, store_url):
    asked = []
    for _ in range(2):
        (query,) = lease(marked, "ann")
        asked.append(query.instance_id)
        words.answer(marked, "m", query.number, query.token, words.A, None)
        helper.publish(3, 4, 5, 6)
    assert sorted(asked) == ["a", "b"]
    (ordinary,) = lease(marked, "ann")
    assert not ordinary.is_gold
    (other,) = lease(marked, "bob")
    assert other.is_gold
    for place in (1, 2):
        *_, answer = history(marked, place)
        assert (answer.kind, answer.gold, answer.author) == (EventKind.ANSWER, True, "ann")
        assert known_contour(history(marked, place), SIZE)[place - 1] == 1.0
    states = {each.state for each in label_events(history(marked, 2)) if each.event.author == "ann"}
    assert states == {LabelState.GOLD}
    assert scores(marked) == {"ann": GoldScore(2, 1)}
    assert marked.get_model("m").queries_answered == 2  # it spends budget, as any answer
    assert not verify_store(store_url)


def test_none_is_asked_where_growth_asks_nothing(store, helper):
    helper.create()
    helper.push("a", "b")
    store.set_policy("m", GOLD)
    mark(store, a=words.A)
    helper.publish()
    assert lease(store, "ann") == []
    assert not store.has_queries("m")


def test_the_share_of_the_policy_is_kept(store, helper):
    helper.create(budget=1000)
    helper.push(*(f"r{i}" for i in range(400)))
    mark(store, **{f"r{i}": words.A for i in range(200)})
    helper.publish(*range(201, 401))
    store.set_policy("m", Policy(gold_share=0.25, max_held=100))
    queries = [each for who in ("ann", "bob", "cid") for each in lease(store, who, 60)]
    share = sum(each.is_gold for each in queries) / len(queries)
    assert 0.12 < share < 0.4  # four deviations
    store.set_policy("m", Policy(max_held=100))
    assert not any(each.is_gold for each in lease(store, "dan", 20))


def test_several_in_one_lease_are_different_and_stand_for_different_queries(marked):
    marked.set_policy("m", Policy(gold_share=1.0))
    queries = lease(marked, "ann", 4)
    assert len(queries) == 4
    assert len({each.number for each in queries}) == len({each.instance for each in queries}) == 4
    assert sum(each.is_gold for each in queries) == 2
    assert [each.position for each in queries] == [0, 1, 2, 3]
    rest = lease(marked, "ann", 4)
    assert [each.is_gold for each in rest] == [False, False]
    assert {each.number for each in queries + rest} == {1, 2, 3, 4, 5, 6}
    assert {each.instance for each in queries + rest} == {1, 2, 3, 4, 5, 6}


class Chances:
    """Draws no gold question for the first query of a lease, one for the second, and the first of several numbers."""

    def __init__(self) -> None:
        self._draws = iter([1.0, 0.0])

    def random(self) -> float:
        return next(self._draws)

    def choice(self, several):
        return several[0]


def test_no_query_is_leased_twice_where_few_are_left(store, helper, monkeypatch):
    """The number of a query that the same lease has already is not given to a gold question."""
    helper.create(budget=20)
    helper.push(*"abc")
    mark(store, a=words.A)
    helper.publish(2, 3)
    store.set_policy("m", Policy(gold_share=0.5))
    monkeypatch.setattr("quercus.storage.queries.gold._CHANCE", Chances())
    first, second = lease(store, "ann", 2)
    assert (first.instance_id, first.is_gold, second.instance_id, second.is_gold) == ("b", False, "a", True)
    assert first.number != second.number
    for each in (first, second):
        words.answer(store, "m", each.number, each.token, words.A, None)


def test_a_returned_question_waits_for_the_next_labeller(marked, helper):
    (query,) = lease(marked, "ann")
    marked.skip("m", query.number, query.token)
    (other,) = lease(marked, "ann")
    assert other.is_gold
    assert other.instance != query.instance  # it was skipped
    found = [lease(marked, who)[0] for who in ("bob", "cid")]
    assert query.number in {each.number for each in found if each.instance == query.instance}
    helper.publish(3, 4, 5, 6)  # growth does not want it, and it stays all the same
    assert marked.get_query("m", query.number).state is QueryState.LEASED


@pytest.mark.parametrize("how", ["release", "postpone", "expiry"])
def test_who_gives_a_question_back_gets_it_again_in_its_turn(store, helper, clock, how):
    helper.create(budget=100)
    helper.push(*(f"r{i}" for i in range(60)))
    mark(store, **{f"r{i}": words.A for i in range(30)})
    helper.publish(*range(31, 61))
    store.set_policy("m", Policy(gold_share=0.5))
    for who in (f"labeller{i}" for i in range(8)):
        (query,) = lease(store, who)
        if how == "release":
            store.release("m", query.number, query.token)
        elif how == "postpone":
            store.postpone("m", query.number, query.token, 10.0)
            clock.now += 11.0
        else:
            clock.now += 100.0
        (again,) = lease(store, who)
        if not again.is_gold or query.is_gold:  # an ordinary one may come after a new gold question
            assert again.number == query.number
        else:
            assert again.position == query.position
        words.answer(store, "m", again.number, again.token, words.A, None)
        helper.publish(*range(31, 61))


def test_a_question_stands_between_others_as_a_query_of_the_newest_tree(store, helper):
    helper.create(budget=1000)
    helper.push(*(f"r{i}" for i in range(120)))
    mark(store, **{f"r{i}": words.A for i in range(60)})
    helper.publish(*range(61, 121))
    store.set_policy("m", Policy(gold_share=0.5, max_held=100))
    helper.publish(*range(61, 121))
    first = lease(store, "ann", 20)
    second = lease(store, "ann", 20)
    assert [each.position for each in first + second] == list(range(40))
    assert {each.tree_version for each in first + second} == {2}
    gold = [each for each in first + second if each.is_gold]
    assert 8 <= len(gold) <= 32  # four deviations
    said = {each.reason: each for each in second + first if not each.is_gold}
    assert not any(each.reason in said and said[each.reason] in first for each in gold if each in first)


def test_a_question_that_is_exchanged_for_what_a_newer_tree_asks_is_drawn_again(marked, helper):
    """Clients exchange what nobody has seen after each answer; what came back beside new ones would become many."""
    (query,) = lease(marked, "ann")
    marked.set_policy("m", Policy(gold_share=1e-12))  # none is drawn
    marked.release("m", query.number, query.token)
    (same,) = lease(marked, "ann")
    assert same.number == query.number
    helper.publish(3, 4, 5, 6)
    marked.release("m", same.number, same.token)
    others = lease(marked, "ann", 4)
    assert not any(each.is_gold for each in others)
    for each in others:  # no number is left that nobody held
        marked.release("m", each.number, each.token)
    marked.set_policy("m", GOLD)
    (again,) = lease(marked, "ann")
    assert (again.number, again.instance, again.position) == (query.number, query.instance, 0)
    assert again.reason in {b"reason 4", b"reason 5", b"reason 6"}


def test_a_question_that_was_given_back_is_drawn_where_only_half_answered_ones_are_left(store, helper):
    helper.create()
    helper.push("a", "b")
    mark(store, a=words.A)
    store.set_policy("m", Policy(gold_share=1.0, answers_per_query=2))
    helper.publish(2)
    first, second = lease(store, "ann"), lease(store, "ann")
    (gold,), (half,) = sorted([first, second], key=lambda found: not found[0].is_gold)
    store.release("m", gold.number, gold.token)
    words.answer(store, "m", half.number, half.token)
    helper.publish()  # a newer tree, which asks nothing
    (found,) = lease(store, "bob")
    assert found.number == half.number
    words.answer(store, "m", found.number, found.token)


def test_a_late_answer_counts(marked, helper, clock):
    (query,) = lease(marked, "ann")
    clock.now += 100.0
    helper.publish(3, 4, 5, 6)
    assert marked.get_query("m", query.number).state is QueryState.OPEN
    words.answer(marked, "m", query.number, query.token, words.A, None)
    assert scores(marked)["ann"].answered == 1
    assert marked.get_query("m", query.number).state is QueryState.ANSWERED


def test_an_answer_is_corrected_undone_and_refused_as_any_other(marked, helper, store_url):
    (query,) = lease(marked, "ann")
    right = words.A if query.instance_id == "a" else words.B
    words.answer(marked, "m", query.number, query.token, words.C, None)
    assert scores(marked)["ann"] == GoldScore(1, 0)
    marked.amend("m", query.number, Amendment("ann", right), words.KNOWN)
    assert scores(marked)["ann"] == GoldScore(1, 1)
    *_, correction = history(marked, query.instance)
    assert (correction.kind, correction.gold) == (EventKind.CORRECTION, True)
    marked.amend("m", query.number, Amendment("ann", None), words.KNOWN)
    assert "ann" not in scores(marked)
    assert marked.get_query("m", query.number).state is QueryState.WITHDRAWN
    helper.publish(3, 4, 5, 6)
    (other,) = lease(marked, "ann")
    assert other.instance != query.instance  # asked once, taken back or not
    words.answer(marked, "m", other.number, other.token, None, None)
    assert marked.get_query("m", other.number).state is QueryState.REFUSED
    assert known_contour(history(marked, other.instance), SIZE).max() == 1.0
    assert "ann" not in scores(marked)
    mark(marked, **{other.instance_id: None})
    assert known_contour(history(marked, other.instance), SIZE).min() == 1.0  # the refusal is none of the row
    assert not verify_store(store_url)


def test_several_answers_to_a_query_look_alike(marked, helper, store_url):
    marked.set_policy("m", Policy(gold_share=1.0, answers_per_query=2, max_conflict=1.0))
    (query,) = lease(marked, "ann")
    done = words.answer(marked, "m", query.number, query.token, words.A, None)
    assert not done.settled  # "wants more", as for any query
    assert done.together is not None
    shown = as_known_to("ann", history(marked, query.instance), SIZE, Combination.DEMPSTER)
    assert [each.state for each in label_events(shown)] == [LabelState.PENDING]
    for who in ("bob", "cid"):
        for each in lease(marked, who, 4):
            if each.number == query.number:
                words.answer(marked, "m", each.number, each.token, words.C, None)
    shown = as_known_to("ann", history(marked, query.instance), SIZE, Combination.DEMPSTER)
    assert {each.state for each in label_events(shown)} == {LabelState.COUNTS}
    known = known_contour(history(marked, query.instance), SIZE)
    assert known[0 if query.instance_id == "a" else 1] == 1.0
    assert scores(marked)["ann"].answered == scores(marked)["bob"].answered == 1
    assert not verify_store(store_url)


def test_a_spent_budget_settles_what_has_some_answers(marked, store_url):
    marked.set_policy("m", Policy(gold_share=1.0, answers_per_query=2))
    (query,) = lease(marked, "ann")
    words.answer(marked, "m", query.number, query.token, words.C, None)
    marked.revise("m", lambda _: (b"specification", 1), words.KNOWN)
    assert marked.get_query("m", query.number).state is QueryState.ANSWERED
    assert known_contour(history(marked, query.instance), SIZE)[2] == 0.0
    assert not verify_store(store_url)


def test_what_a_labeller_may_know_of_a_question(marked, helper):
    (query,) = lease(marked, "ann")
    seen = as_known_to("ann", history(marked, query.instance), SIZE, Combination.DEMPSTER, query.number)
    assert known_contour(seen, SIZE).min() == 1.0
    words.answer(marked, "m", query.number, query.token, words.C, None)
    seen = as_known_to("ann", history(marked, query.instance), SIZE, Combination.DEMPSTER, query.number)
    (mine,) = label_events(seen)
    assert (mine.kind, mine.state, mine.later) == (LabelKind.ANSWERED, LabelState.COUNTS, None)
    assert known_contour(seen, SIZE)[2] == 1.0  # as if it had counted
    assert not any(event.gold or event.author == "eve" for event in seen)


def test_a_row_that_came_with_its_label_is_asked_as_one_without(store, helper):
    helper.create()
    helper.push("a", label=words.A)
    helper.push("b", "c")
    store.set_policy("m", GOLD)
    mark(store, a=words.A)
    helper.publish(2, 3)
    (query,) = lease(store, "ann")
    assert query.instance_id == "a"
    seen = as_known_to("ann", history(store, 1), SIZE, Combination.DEMPSTER, query.number)
    assert known_contour(seen, SIZE).min() == 1.0
    done = words.answer(store, "m", query.number, query.token, words.B, None)
    assert not done.conflict  # which would tell that the answer is wrong


def test_what_was_said_before_a_mark_looks_as_before(store, helper):
    helper.create()
    helper.push("a", "b")
    store.state("m", StatementBatch("r", [Statement("a", "ann", words.B)]), words.KNOWN)
    before = history(store, 1)
    mark(store, a=words.A)
    shown = as_known_to("ann", history(store, 1), SIZE, Combination.DEMPSTER)
    assert known_contour(shown, SIZE).tolist() == known_contour(before, SIZE).tolist()
    assert [each.state for each in label_events(shown)] == [LabelState.COUNTS]
    store.set_policy("m", GOLD)
    helper.publish(2)
    (query,) = lease(store, "ann")
    assert query.instance_id == "b"  # ann has labelled a


@pytest.mark.parametrize("is_gold", [True, False])
@pytest.mark.parametrize("first", ["statement", "answer"])
def test_a_statement_about_a_row_that_is_asked_tells_nothing(store, helper, store_url, is_gold, first):
    helper.create()
    helper.push("a", "b", "c", "d")
    store.set_policy("m", GOLD)
    if is_gold:
        mark(store, a=words.A)
    helper.publish(*((2, 3, 4) if is_gold else (1, 2, 3, 4)))
    (query,) = lease(store, "ann")
    assert (query.instance, query.is_gold) == (1, is_gold)

    def state():
        store.state("m", StatementBatch("r", [Statement("a", "ann", words.A)]), words.KNOWN)

    def answer():
        return words.answer(store, "m", query.number, query.token, words.B, None)

    if first == "statement":
        state()
        done = answer()
        assert done.conflict  # it contradicts what was stated
    else:
        assert not answer().conflict
        state()
    shown = as_known_to("ann", history(store, 1), SIZE, Combination.DEMPSTER)
    assert [(each.kind, each.state) for each in label_events(shown)] == (
        [(LabelKind.STATED, LabelState.COUNTS), (LabelKind.ANSWERED, LabelState.COUNTS)]
        if first == "statement"
        else [(LabelKind.ANSWERED, LabelState.COUNTS), (LabelKind.STATED, LabelState.COUNTS)]
    )
    holds = 1 if first == "statement" else 0  # the newest label of a labeller
    assert known_contour(shown, SIZE).argmax() == holds
    if is_gold:
        assert known_contour(history(store, 1), SIZE).tolist() == ONLY_A
    assert not verify_store(store_url)


def test_marks_withdraw_queries_and_agendas_leave_marked_rows_out(store, helper):
    helper.create()
    helper.push("a", "b", "c")
    helper.publish(1, 2)
    mark(store, a=words.A)
    (step,) = [each for each in store.query_history("m", 1) if each.step is Step.WITHDRAWN]
    assert step.why == "it is a gold question"
    helper.publish(1, 2, 3)
    assert {each.instance_id for each in store.list_queries("m", [QueryState.OPEN])} == {"b", "c"}
    store.set_policy("m", GOLD)
    (query,) = lease(store, "ann")
    assert query.instance_id == "a"
    store.release("m", query.number, query.token)
    assert store.get_query("m", query.number).state is QueryState.OPEN
    mark(store, a=None)
    assert store.get_query("m", query.number).state is QueryState.WITHDRAWN
    helper.publish(1, 2, 3)
    assert {each.instance_id for each in store.list_queries("m", [QueryState.OPEN])} == {"a", "b", "c"}


def test_export_and_import_keep_marks_and_scores(marked, helper, tmp_path):
    (query,) = lease(marked, "ann")
    words.answer(marked, "m", query.number, query.token, words.A, None)
    lines = list(marked.dump("m"))
    marked.load(lines, name="copy")
    assert gold_scores(marked.gold_histories("copy").values(), SIZE) == scores(marked)
    assert marked.policy("copy") == GOLD
    assert len(scores(marked)) == 1


def test_a_log_with_too_many_marks_is_not_imported(marked, monkeypatch):
    marked.mark_gold(
        "m", "eve", [Mark("a", None)], words.KNOWN
    )  # the log has two marks, one of which is taken back
    lines = list(marked.dump("m"))
    monkeypatch.setattr("quercus.storage.admin.transfer.MAX_GOLD", 1)
    assert marked.load(lines, name="copy") == ("copy", len(lines) - 1)
    mark(marked, a=words.A)
    with pytest.raises(InvalidInput, match=r"^file: has 2 gold questions, at most 1 are allowed$"):
        marked.load(list(marked.dump("m")), name="more")
    assert [each.name for each in marked.list_models("")] == ["copy", "m"]


@pytest.mark.parametrize("how", ["import", "rebuild"])
def test_whoever_was_asked_is_not_asked_again_of_a_copy(marked, helper, store_url, tmp_path, how):
    (query,) = lease(marked, "ann")
    words.answer(marked, "m", query.number, query.token, words.A, None)
    marked.amend("m", query.number, Amendment("ann", None), words.KNOWN)
    if how == "import":
        marked.load(list(marked.dump("m")), name="copy")
    else:
        archive_model(marked, "m", tmp_path)
        assert rebuilt(marked, tmp_path, new_name="copy") == [("copy", False)]
    helper.publish(3, 4, 5, 6, name="copy")
    found = marked.lease("copy", "ann", 3, 60.0).queries
    assert sum(each.is_gold for each in found) == 1
    assert query.instance not in {each.instance for each in found}
    assert query.number not in {each.number for each in found}  # the log has words under that number
    assert {each.instance for each in marked.lease("copy", "bob", 3, 60.0).queries} > {query.instance}
    assert not verify_store(store_url)
