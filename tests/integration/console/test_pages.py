"""Trees, models, classification and creation over HTTP."""

import http.client
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from integration.client.serving import Serving
from support.consoles import Visitor

from quercus.client import Client, Nominal, NotFound, Numeric, Specification
from quercus.specification.class_marks import CLASS_MARKS
from quercus.view.models import accuracy_text


@pytest.fixture(scope="module")
def client(shared_server: Serving) -> Iterator[Client]:
    with Client(shared_server.address) as client:
        yield client


@pytest.fixture(scope="module")
def model(client: Client) -> str:
    name = "c-pages"
    attributes = [Numeric("size", cuts=8), Nominal("colour", ["red", "green", "blue"])]
    client.create_model(name, Specification(attributes, ["yes", "no"], budget=9))
    rows = [[k / 3, ["red", "green", "blue"][k % 3]] for k in range(30)]
    client.push(name, rows, ["yes" if k > 14 else "no" for k in range(30)])
    client.wait_grown(name)
    return name


def test_a_tree_and_its_drawings(ann: Visitor, client: Client, model: str) -> None:
    tree = client.tree(model)
    page = ann.get(f"/m/{model}/tree").text
    assert page.count('role="treeitem"') == len(tree.nodes)
    assert page.count('data-node="') == 2 * len(tree.nodes)  # in the picture and in the list
    panel = ann.get(f"/m/{model}/tree/node?version={tree.version}&node=1").text
    assert f"<p>{tree.nodes[1].count} rows." in panel
    for kind, form in (("svg", "svg"), ("txt", "text"), ("dot", "dot")):
        drawn = ann.get(f"/m/{model}/tree.{kind}?version={tree.version}")
        assert drawn.text == client.render(model, form, tree.version)
        assert drawn.headers["content-disposition"] == f'attachment; filename="{model}-{tree.version}.{kind}"'
    assert ann.get(f"/m/{model}/tree.exe").status == 404
    assert ann.get(f"/m/{model}/tree?version=999").status == 404
    assert ann.get(f"/m/{model}/tree?version=1e3").status == 400
    assert ann.get(f"/m/{model}/tree?node=999").status == 200  # of an earlier version: the root


def test_every_class_has_one_mark_on_every_page(ann: Visitor, client: Client) -> None:
    """The marks of 26 classes, in legend, picture and list of a tree, on buttons, and in the style sheet."""
    name, classes = "c-letters", [f"kind {k}" for k in range(26)]
    grows = {"learner": "abc45", "split_significance": 0, "min_instances": 1}
    client.create_model(name, Specification([Nominal("x", classes)], classes, budget=9, **grows))
    rows = [classes[k % 26] for k in range(104)]
    client.push(
        name, [[value] for value in rows], [value if k < 78 else None for k, value in enumerate(rows)]
    )
    client.wait_grown(name)
    tree, page = client.tree(name), ann.get(f"/m/{name}/tree").text
    legend = re.findall(r'<span class="mark (mark-\d+)">(kind \d+)</span>', page)
    marks = {of: mark for mark, of in legend}
    assert list(marks) == classes
    assert len(set(marks.values())) == 26
    for node in tree.nodes:
        expected = re.escape(marks[node.class_name])
        assert re.search(rf'data-node="{node.index}" class="box {expected}[ "]', page)
        assert re.search(rf'id="n{node.index}" .*<b class="mark {expected}">{node.class_name}<', page)
    assert re.findall(r'<tr class="(mark-\d+)"><th scope="row"><span class="mark">(kind \d+)', page) == legend
    assert 'id="strokes-mark-25"' in page
    assert "strokes-mark-19" not in page  # patterns come above twenty classes
    asked = ann.get(f"/m/{name}/label").text
    buttons = re.findall(r'<button name="class" value="(kind \d+)" class="class mark (mark-\d+)[ "]', asked)
    assert dict(buttons) == marks
    styles = ann.get("/static/classes.css")
    assert styles.headers["content-type"].startswith("text/css")
    light, dark = styles.text.split("@media (prefers-color-scheme: dark)")
    for part, colour_of in ((light, "light"), (dark, "dark")):
        found = dict(re.findall(r"\.(mark-\d+) \{ --fill: (#\w+);", part))
        assert found == {f"mark-{k}": getattr(mark, colour_of) for k, mark in enumerate(CLASS_MARKS)}


def test_a_tree_of_one_class_against_the_rest_has_the_mark_of_its_class(ann: Visitor, client: Client) -> None:
    name = "c-against"
    learner = {"name": "total-uncertainty"}
    client.create_model(name, Specification([Numeric("x", cuts=8)], "abc", budget=0, learner=learner))
    client.push(name, [[k] for k in range(30)], ["abc"[k // 10] for k in range(30)])
    client.wait_grown(name)
    assert client.tree(name, member=2).members[2].classes == ("c", "not c")
    page = ann.get(f"/m/{name}/tree?member=2").text
    legend = re.findall(r'<span class="mark (mark-\w+)">([^<]+)</span>', page)
    assert legend == [("mark-2", "c"), ("mark-other", "not c")]
    drawn = client.render(name, "svg", member=2)
    assert CLASS_MARKS[2].light in drawn
    assert CLASS_MARKS[0].light not in drawn


def test_an_undecided_leaf_says_so_and_why(ann: Visitor, client: Client) -> None:
    name = "c-undecided"
    client.create_model(name, Specification([Nominal("X", "ab")], ["o", "s"], budget=2))
    client.push(name, [{"X": "ab"[k % 2]} for k in range(8)])
    client.wait_grown(name)
    (root,) = client.tree(name).nodes
    assert (root.stop, root.undecided) == ("not_significant", True)
    panel = ann.get(f"/m/{name}/tree/node?node=0").text
    assert "Undecided, a leaf until labels decide whether to split it: no split separates" in panel


def test_the_accuracy_over_the_recent_past_is_drawn_where_it_is_known(ann: Visitor, client: Client) -> None:
    name = "c-accuracy"
    client.create_model(name, Specification([Nominal("X", "ab")], ["o", "s"], min_instances=1))
    assert "Nobody has answered yet. Each answer is compared" in ann.get(f"/m/{name}").text
    for start in (0, 70):  # the second half is predicted by the tree of the first
        client.push(name, [{"X": "ab"[k % 2]} for k in range(70)], ["os"[k % 2] for k in range(70)])
        client.wait_grown(name)
        found = client.get_model(name).accuracy
        assert start == 0 or (found is not None and found.rows >= 70)
    page = ann.get(f"/m/{name}").text
    assert found is not None
    assert f"{accuracy_text(found)}." in page
    own = client.get_model(name).average_confidence
    assert own is not None
    assert f'{own.mean * 100:.1f} % right</p><p class="facts">The mean over 140 rows.' in page
    assert "are the hardest" not in page  # nobody was asked
    assert page.count('<svg class="learning"') == 1
    assert page.count('class="point"') == len(found.blocks) > 1
    assert "rows that no query asked about, each predicted before it was learned" in page
    assert "taught the model too, and no second model learned without the answers." in page
    assert f"{sum(block.right for block in found.blocks)} of {found.precise_rows} rows the same" in page
    assert page.index("How good is it now") < page.index("<h2>Numbers</h2>") < page.index("Attributes</h2>")
    assert "93.5 % right</th>" in ann.get(f"/m/{name}?target=93,5").text
    for wrong in ("", "x", "nan", "100", "-3"):
        assert ann.get(f"/m/{name}?target={wrong}").status == 200


def test_events_tell_of_trees_and_are_bounded(ann: Visitor, model: str) -> None:
    cookie = "; ".join(f"{name}={value}" for name, value in ann.cookies.items())
    headers = {"Cookie": cookie, "Accept": "text/event-stream", "Sec-Fetch-Site": "same-origin"}
    held = []
    for _ in range(4):
        connection = http.client.HTTPConnection("127.0.0.1", ann.port, timeout=30)
        connection.request("GET", f"/m/{model}/events", headers=headers)
        answer = connection.getresponse()
        assert answer.fp.readline() == b"event: tree\n" or answer.chunked
        held.append((connection, answer))
    assert ann.get(f"/m/{model}/events", accept="text/event-stream").status == 429
    assert (
        ann.get(f"/m/{model}/events", accept="text/event-stream", sec_fetch_site="cross-site").status == 403
    )
    for connection, answer in held:
        answer.close()
        connection.close()


def test_two_kinds_of_doubt_are_shown(ann: Visitor, client: Client) -> None:
    learner = {"name": "active-forest", "trees": 6, "seed": 0}
    client.create_model("coin", Specification([Numeric("x")], ["a", "b"], learner=learner))
    client.push("coin", [[0.0]] * 40 + [[1.0]] * 40, ["a", "b"] * 20 + ["a"] * 40)
    client.wait_grown("coin", timeout_s=60)
    page = "/m/coin/classify"
    ann.get(page)
    assert re.search(r"the doubt.*overlap 0\.[89]\d bits", ann.form(page, {"low-0": "0"}).text)


def test_uncertain_values_are_classified(ann: Visitor, model: str) -> None:
    page = f"/m/{model}/classify"
    ann.get(page)
    assert "It is yes" in ann.form(page, {"low-0": "9"}).text
    assert "It is yes" in ann.form(page, {"low-0": "1970-01-01 00:00:09"}).text
    assert "It is yes" in ann.form(page, {"low-0": "9", "value-1": [" red "]}).text
    assert "It is no" in ann.form(page, {"low-0": "0", "high-0": "1", "value-1": ["red", "blue"]}).text
    either = ann.form(page, {}).text
    assert re.search("<h2>(Most likely|It is) (yes|no)</h2>", either)
    known = ann.form(page, {"low-0": "9", "value-1": "red"}).text
    assert "never seen" not in known
    assert "<h3>Prediction set: right for 90 % of rows</h3>" in known
    assert '<option value="0.9" selected>90 %' in known
    assert "Sets of 95 %: " in ann.form(page, {"low-0": "9", "coverage": "0.95"}).text
    strange = ann.form(page, {"low-0": "9", "value-1": "Red"}).text
    assert "colour: the model has never seen the name Red." in strange
    for given, says in (
        ({"low-0": "x"}, "size: is &#39;x&#39;, must be a number"),
        ({"low-0": "2", "high-0": "1"}, "must be in rising order"),
        ({"low-0": "inf"}, "must be a number"),
        ({"low-0": "1", "coverage": "2"}, "coverage: is 2, must lie in (0, 1)"),
        ({"low-0": "1", "coverage": "x"}, "coverage"),
    ):
        answer = ann.form(page, given)
        assert (answer.status, says in answer.text) == (400, True), answer.text[-3000:]


def test_a_model_that_never_asks_says_so_on_each_page(ann: Visitor, client: Client) -> None:
    client.create_model("c-silent", Specification([Nominal("X", "ab")], ["o", "s"]))
    said = "It never asks: its budget is 0."
    for page in ("/", "/m/c-silent", "/m/c-silent/desk", "/m/c-silent/label"):
        text = ann.get(page).text
        assert said in text, page
        assert "0 of 0" not in text, page


def test_a_model_in_numbers(ann: Visitor, model: str) -> None:
    page = ann.get(f"/m/{model}").text
    assert re.search(r"rows</th><td>30<", page)
    assert "red, green, blue" in page


@pytest.fixture
def folders(uploads: Path) -> Callable[[], list[Path]]:
    return lambda: list(uploads.iterdir())


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("x.exe", b"a,b\n1,2\n", "must end in .csv"),
        ("x.csv", b"", "x.csv"),
        ("x.csv", b"a,b\n1\n", "x.csv"),
        ("x.csv", b"\xff\xfe", "UTF-8"),
        ("x.csv", ",".join(f"c{k}" for k in range(501)).encode() + b"\n" + b"," * 500 + b"\n", "at most 500"),
        ("x.csv", b"a,b\n" + b"1,2\n" * 1_000_001, "more than 1,000,000 rows"),
        ("x.csv.gz", b"\x1f\x8bno gzip", "cannot be read"),
    ],
)
def test_a_bad_file_is_named_and_leaves_nothing(
    ann: Visitor, name: str, content: bytes, says: str, folders: Callable[[], list[Path]]
) -> None:
    before = folders()
    answer = ann.upload(name, content)
    assert answer.status == 400
    assert says in answer.text
    assert folders() == before


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_header_tells_the_separator(ann: Visitor, client: Client, separator: str) -> None:
    content = "a,kind\n1.5,x\n2.5,y\n".replace(",", separator).encode()
    assert "2 columns, 2 rows" in ann.upload("things.csv", content).text
    name = f"c-separated-{ord(separator)}"
    fields = {"model": name, "budget": "5", "cuts": "8", "class": "kind", "id": "", "labels": "known",
              "kind-0": "number", "kind-1": "names"}  # fmt: skip
    assert ann.form("/create", fields).status == 303
    assert [each.values for each in client.instances(name)] == [{"a": 1.5}, {"a": 2.5}]


def test_a_file_is_kept_until_the_model_is_made(
    ann: Visitor, client: Client, folders: Callable[[], list[Path]]
) -> None:
    before = folders()
    assert ann.upload("things.csv", b"id,a,kind\n1,2,x\n2,3,y\n3,?,x\n").status == 200
    assert len(folders()) == len(before) + 1
    fields = {"model": "c-things", "budget": "5", "cuts": "8", "class": "", "id": "id", "labels": "known",
              "kind-0": "names", "kind-1": "number", "kind-2": "names"}  # fmt: skip
    answer = ann.form("/create", fields)
    assert (answer.status, "choose the column that holds the class" in answer.text) == (400, True)
    assert ann.form("/create", fields | {"class": "kind", "budget": "-1"}).status == 400
    assert ann.form("/create", fields | {"class": "kind", "model": "../x"}).status == 400
    answer = ann.form("/create", fields | {"class": "kind"})
    assert answer.headers["location"] == "/m/c-things"
    assert folders() == before
    assert [each.contour for each in client.instances("c-things")] == [(1, 0), (0, 1), (1, 0)]
    assert set(client.get_instance("c-things", "3").values.values()) == {None}
    again = ann.form("/create", fields | {"class": "kind"})
    assert again.status == 409  # the file is gone


def test_a_model_that_cannot_be_made_is_not_there_and_a_row_that_cannot_be_pushed_is_named(
    ann: Visitor, client: Client
) -> None:
    assert ann.upload("things.csv", b"id,a,kind\n1,2,x\n2,3,y\n?,4,x\n").status == 200
    fields = {"model": "c-no-id", "budget": "5", "cuts": "8", "class": "kind", "id": "id", "labels": "ask",
              "kind-0": "names", "kind-1": "number", "kind-2": "names"}  # fmt: skip
    answer = ann.form("/create", fields | {"budget": "1000001"})
    assert (answer.status, "must be a whole number in [0, 1,000,000]" in answer.text) == (400, True)
    with pytest.raises(NotFound):
        client.get_model("c-no-id")
    answer = ann.form("/create", fields)
    assert (answer.status, "the id is missing" in answer.text) == (200, True)
    assert client.get_model("c-no-id").instance_count == 2


def test_signing_out_removes_the_file(ann: Visitor, folders: Callable[[], list[Path]]) -> None:
    before = folders()
    ann.upload("things.csv", b"a,class\n1,x\n2,y\n")
    assert len(folders()) == len(before) + 1
    ann.form("/sign-out", {})
    assert folders() == before


def test_an_upload_of_more_than_128_mib_is_refused(ann: Visitor) -> None:
    answer = ann.ask(
        "POST", "/create", None, content_type="multipart/form-data; boundary=b", content_length="134217729"
    )
    assert answer.status == 413
    assert "134,217,728" in answer.text


def test_a_model_gets_further_classes_and_attributes_from_its_page(ann: Visitor, client: Client) -> None:
    name = "c-later"
    client.create_model(name, Specification([Numeric("size")], ["yes", "no"], budget=9))
    page = ann.get(f"/m/{name}").text
    (request_id,) = re.findall(r'name="request_id" value="(\w+)"', page)
    form = {"classes": "rust", "attributes": "humidity:number\nwind:west,east", "request_id": request_id}
    wrong = ann.form(f"/m/{name}/extend", form | {"attributes": "humidity"})
    assert wrong.status == 400
    assert "NAME:number" in wrong.text
    assert ">humidity</textarea>" in wrong.text  # what was typed is still there
    for _ in range(2):  # somebody presses the button twice
        assert ann.form(f"/m/{name}/extend", form).status == 303
    model = client.get_model(name)
    assert model.specification.classes == ("yes", "no", "rust")
    assert [each.name for each in model.specification.attributes] == ["size", "humidity", "wind"]
    assert "Class rust and attributes humidity, wind came with event 1." in ann.get(f"/m/{name}").text
    again = ann.form(f"/m/{name}/extend", form | {"request_id": "other"})
    assert (again.status, "rust" in again.text) == (400, True)
