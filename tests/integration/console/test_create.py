"""Models from files without labels, or with labels of some rows: nothing that somebody labelled is lost unseen."""

import re
import socket
from collections.abc import Iterator
from html import unescape
from itertools import islice
from typing import Any

import pytest
from integration.client.serving import Serving
from support.consoles import Response, Visitor

from quercus.client import Client, InvalidArgument, Nominal, NotFound, Numeric, Specification

UNLABELLED = b"size,colour\n1,red\n2.5,blue\n?,red\n4,\n"
HALF = b"id,size,kind\na,1,x\nb,2,\nc,3,?\nd,4, y \ne,5,x | y\nf,6, \n"
FIELDS: dict[str, Any] = {"budget": "5", "cuts": "8", "class": "", "classes": "", "id": "", "labels": "known"}


@pytest.fixture(scope="module")
def client(shared_server: Serving) -> Iterator[Client]:
    with Client(shared_server.address) as client:
        yield client


def plan(page: Response) -> list[str]:
    """The sentences about what will be created."""
    found = re.search(r'<ul class="path" aria-labelledby="plan-title">(.*?)</ul>', page.text, re.DOTALL)
    assert found is not None
    return [unescape(each) for each in re.findall(r"<li[^>]*>(.*?)</li>", found[1])]


def fault(page: Response) -> str:
    found = re.search(r'role="alert">(.*?)</p>', page.text)
    return "" if found is None else unescape(found[1])


def test_a_file_without_a_class_column_needs_the_names_of_the_classes(ann: Visitor, client: Client) -> None:
    page = ann.upload("stones.csv", UNLABELLED)
    assert plan(page) == [
        "4 rows, none of them labelled: no column holds the class.",
        "Classes: type their names.",
        "Numbers (1): size.",
        "Names (1): colour.",
        "Rows are numbered.",
    ]
    fields = FIELDS | {"model": "c-stones", "kind-0": "number", "kind-1": "names"}
    page = ann.form("/create", fields)
    assert (page.status, fault(page)) == (
        400,
        "class: choose the column that holds the class, or type the names of the classes",
    )
    typed = 'granite\r\n"sandstone, red"\r\n'
    page = ann.form("/create", fields | {"classes": typed, "act": "check"})
    assert (page.status, fault(page)) == (200, "")
    assert plan(page)[1] == 'Classes (2): granite, "sandstone, red".'
    assert '"sandstone, red"</textarea>' in unescape(page.text)  # what was typed is still there
    assert ann.form("/create", fields | {"classes": typed}).headers["location"] == "/m/c-stones/label"
    model = client.get_model("c-stones")
    assert model.specification.classes == ("granite", "sandstone, red")
    assert model.specification.attributes == (Numeric("size", cuts=8), Nominal("colour", ["blue", "red"]))
    assert [each.contour for each in client.instances("c-stones")] == [(1.0, 1.0)] * 4


def test_a_half_labelled_file_keeps_its_labels(ann: Visitor, client: Client) -> None:
    """Also where the form does not say what becomes of them; ids are not attributes, and blanks are not labels."""
    ann.upload("half.csv", HALF)
    fields = FIELDS | {"model": "c-half", "class": "kind", "id": "id"}
    assert plan(ann.form("/create", fields | {"act": "check"})) == [
        "6 rows; 3 labelled in the column kind, 3 not. The labels are kept. A cell with several classes is a set.",
        "Classes (2): x, y.",
        "Numbers (1): size.",
        "Ids: the column id.",
    ]
    del fields["labels"]
    assert ann.form("/create", fields).headers["location"] == "/m/c-half"
    assert [(each.id, each.contour) for each in client.instances("c-half")] == [
        ("a", (1, 0)), ("b", (1, 1)), ("c", (1, 1)), ("d", (0, 1)), ("e", (1, 1)), ("f", (1, 1)),
    ]  # fmt: skip


def test_labels_are_dropped_only_by_choice(ann: Visitor, client: Client) -> None:
    page = ann.upload("half.csv", HALF.replace(b"kind", b"Class"))
    assert plan(page)[0].startswith("6 rows; 3 labelled in the column Class, 3 not. The labels are kept.")
    fields = FIELDS | {"model": "c-hidden", "class": "Class", "labels": "ask"}
    page = ann.form("/create", fields | {"act": "check"})
    assert plan(page)[1] == "The labels are NOT sent to the model: labellers are asked about all rows."
    assert ann.form("/create", fields).status == 303
    assert {each.contour for each in client.instances("c-hidden")} == {(1.0, 1.0)}
    ann.upload("half.csv", HALF)
    page = ann.form("/create", FIELDS | {"model": "c-strange", "class": "kind", "labels": "maybe"})
    assert (page.status, fault(page)) == (400, "labels: is 'maybe', must be one of known, ask, none")


def test_a_column_may_name_some_of_the_classes_or_none(ann: Visitor, client: Client) -> None:
    ann.upload("few.csv", b"size,kind\n1,x\n2,\n3,\n")
    fields = FIELDS | {"model": "c-few", "class": "kind"}
    page = ann.form("/create", fields)
    assert fault(page) == (
        "few.csv: class column 'kind' has 1 class; 2 to 64 are possible. If it names not all of them yet, type them all"
    )
    page = ann.form("/create", fields | {"classes": "y,z"})
    assert fault(page) == "few.csv: line 2, column 2 (kind): 'x' is not a class; the classes are y, z"
    assert ann.form("/create", fields | {"classes": "z,y,x"}).status == 303
    assert client.get_model("c-few").specification.classes == ("z", "y", "x")
    assert [each.contour for each in client.instances("c-few")] == [(0, 0, 1), (1, 1, 1), (1, 1, 1)]
    page = ann.upload("empty.csv", b"size,class\n1,\n2,?\n")
    assert plan(page)[0] == "2 rows; 0 labelled in the column class, 2 not."
    fields = FIELDS | {"model": "c-empty", "class": "class"}
    assert "has 0 classes" in fault(ann.form("/create", fields))
    assert ann.form("/create", fields | {"classes": "no\nyes"}).status == 303
    assert [each.name for each in client.get_model("c-empty").specification.attributes] == ["size"]


def test_a_column_of_labels_does_not_become_an_attribute_unseen(ann: Visitor, client: Client) -> None:
    ann.upload("half.csv", HALF)
    fields = FIELDS | {"model": "c-leak", "classes": "x,y", "id": "id"}
    page = ann.form("/create", fields)
    assert page.status == 400
    assert "'kind' would become an attribute, and looks like a column of labels" in fault(page)
    assert "--" not in fault(page)
    assert '<input type="checkbox" name="attribute" value="kind">' in page.text
    assert ann.form("/create", fields | {"attribute": "kind", "act": "check"}).status == 200
    assert ann.form("/create", fields | {"attribute": "kind"}).status == 303
    assert [each.name for each in client.get_model("c-leak").specification.attributes] == ["size", "kind"]


def test_choices_that_cannot_be_meant_are_named(ann: Visitor) -> None:
    ann.upload("half.csv", HALF)
    fields = FIELDS | {"model": "c-odd", "class": "kind"}
    page = ann.form("/create", fields | {"id": "kind"})
    assert fault(page) == "id: is 'kind', which is the column of the class"
    page = ann.form("/create", fields | {"class": "colour"})
    assert (page.status, fault(page)) == (400, "class: is 'colour', which is not a column of the file")
    page = ann.form("/create", fields | {"kind-0": "number"})
    assert fault(page) == (
        "id, line 2: 'a' is neither a finite number nor a time such as 2026-01-31T12:00:00Z: "
        "choose another kind, or leave it out"
    )
    page = ann.form("/create", fields | {"kind-0": "photograph"})
    assert fault(page) == (
        "kind-0: is 'photograph', must be one of "
        "number, number (1,5), names, text, picture, series, link, leave out"
    )


def test_a_bound_of_a_file_is_said_once(ann: Visitor) -> None:
    wide = ",".join(f"c{k}" for k in range(501))
    said = ann.upload("wide.csv", f"{wide}\n{wide}\n".encode())
    assert said.status == 400
    assert "file: has 501 columns, the console takes at most 500" in said.text
    assert "file: file:" not in said.text


def test_a_script_gets_the_sentences_alone(ann: Visitor) -> None:
    ann.upload("half.csv", HALF)
    part = ann.form("/create", FIELDS | {"class": "kind", "act": "plan"})
    assert part.status == 200
    assert "<html" not in part.text
    assert plan(part)[0].startswith("6 rows; 3 labelled")


def test_rows_that_are_refused_do_not_keep_the_others_out(ann: Visitor, client: Client) -> None:
    """Each is named by its line: without an id, with one that cannot be shown or is taken, with a cell too few."""
    file = "file,size,kind\nimages/1.jpg,1,x\n,2,y\na\u202eb,3,x\nimages/1.jpg,4,y\nimages/2.jpg,5,y\nb,6\n"
    page = ann.upload("photos.csv", file.encode())
    assert "line 7, column 3: the row has 2 cells, the header has 3" in unescape(page.text)
    fields = FIELDS | {"model": "c-refused", "class": "kind", "id": "file"}
    page = ann.form("/create", fields)
    assert page.status == 200
    assert "c-refused is created, without 4 rows" in page.text
    assert "quercus push c-refused FILE --id-column file --labels --class kind<" in page.text
    found = re.findall(r"<tr><td>(\d+)</td><td class=\"break\">(.*?)</td></tr>", unescape(page.text))
    assert sorted((line, reason.split(" at position")[0]) for line, reason in found) == [
        ("3", "file: the id is missing"),
        ("4", "file: has the control character U+202E"),
        ("5", "file: instance images/1.jpg already exists in model c-refused with other values"),
        ("7", "the row has 2 cells, the header has 3: 'kind' is the first that is absent"),
    ]
    assert [each.id for each in client.instances("c-refused")] == ["images/1.jpg", "images/2.jpg"]


LOOKED_AT = b"ticket,taken,reading,sky,x,class\n" + b"".join(
    b"T%d,2026-01-%02d,%s,%s,%d.5,%s\n"
    % (
        i,
        i + 1,
        b"4.O7" if i == 5 else b"%d.25" % i,
        (b"sun", b"rain", b"sun|rain")[i % 3],
        i % 7,
        b"ab"[i % 2 :][:1],
    )
    for i in range(24)
)


def test_the_page_says_what_looks_wrong(ann: Visitor, client: Client) -> None:
    """In the words of quercus inspect, without its flags; what is left out is taken by choosing a kind."""
    page = ann.upload("days.csv", LOOKED_AT)
    found = re.search(r'<ul class="path" aria-labelledby="remarks-title">(.*?)</ul>', page.text, re.DOTALL)
    assert found is not None
    left = "The column is left out; choose a kind to include it."
    assert [unescape(each) for each in re.findall(r"<li[^>]*>(.*?)</li>", found[1])] == [
        f"ticket: 24 different values in 24 rows tell rows apart, and say nothing about other rows. {left}",
        f"taken, line 2: '2026-01-01' is a date or a time, which is neither a number nor a name. {left}",
        f"reading, line 7: '4.O7' is not a finite number, and 23 other cells are. {left}",
        "sky, line 4: 'sun|rain' is one of several values: its row goes down every branch that it allows, in parts.",
    ]
    assert "--" not in unescape(found[1])
    kinds = {f"kind-{k}": kind for k, kind in enumerate(["leave out"] * 3 + ["names", "number", "leave out"])}
    fields = FIELDS | kinds | {"model": "c-look", "class": "class"}
    page = ann.form("/create", fields | {"attribute": "sky", "kind-2": "number"})
    assert fault(page).startswith("reading, line 7: '4.O7' is neither a finite number nor a time")
    assert ann.form("/create", fields | {"attribute": "sky", "kind-1": "number"}).status == 303
    model = client.get_model("c-look")
    assert [each.name for each in model.specification.attributes] == ["taken", "sky", "x"]
    assert next(iter(client.instances("c-look"))).values["taken"] == 1767225600.0
    ann.upload("days.csv", LOOKED_AT)
    assert ann.form("/create", fields | {"model": "c-sets"}).status == 303
    assert client.get_model("c-sets").specification.attributes[0] == Nominal("sky", ("rain", "sun"))
    assert [each.values["sky"] for each in islice(client.instances("c-sets"), 3)] == [
        "sun", "rain", frozenset({"sun", "rain"})
    ]  # fmt: skip
    shown = ann.get("/m/c-sets/items").text
    assert "rain or sun" in shown


def test_a_name_that_no_model_takes_is_told_by_column_and_line(ann: Visitor, client: Client) -> None:
    ann.upload("says.csv", b'size,says,kind\n1,fine,x\n2,"too\nslow",y\n')
    fields = FIELDS | {"model": "c-says", "kind-0": "number", "kind-1": "names", "class": "kind"}
    page = ann.form("/create", fields)
    assert page.status == 400
    assert fault(page) == (
        r"says, line 3: 'too\nslow' has the line end U+000A at position 4: choose another kind, or leave it out"
    )
    page = ann.form("/create", fields | {"model": "No Name", "kind-1": "leave out"})
    assert fault(page).startswith("the model's name: 'No Name' is not 1 to 63 characters")


def beside(page: Response) -> dict[str, str]:
    """Reasons that stand beside a field, by its name."""
    return {
        name: unescape(reason)
        for name, reason in re.findall(r'class="fault break beside" id="(.+?)-fault">(.*?)<', page.text)
    }


CHOSEN = FIELDS | {"class": "kind", "id": "id"}


def test_the_form_has_all_that_the_server_declares(ann: Visitor, client: Client) -> None:
    """The default that is typed is the default that is left out, for every parameter of every learner."""
    page = ann.upload("half.csv", HALF)
    learners = client.learners()
    checked = re.findall(r'name="learner.name" value="([^"]+)"( checked)?', page.text)
    assert checked[0] == ("active-forest", " checked")
    assert sorted(checked[1:]) == sorted((each.name, "") for each in learners if each.name != "active-forest")
    for each in learners:
        assert unescape(page.text).count(each.summary) >= 1
        part = ann.form("/create", CHOSEN | {"learner.name": each.name, "act": "settings"})
        assert "<html" not in part.text
        names = [f"learner.{one.name}" for one in each.parameters]
        assert re.findall(r'id="(learner\.\w+)" name="\1"', part.text) == names
        assert re.findall(r'id="strategy-([^"]+)" name="strategy\.name" value="([^"]*)"', part.text) == [
            (one.name, "" if k == 0 else one.name) for k, one in enumerate(each.strategies)
        ]
        assert all(one.summary in unescape(part.text) for one in each.strategies)
        typed = {
            f"learner.{one.name}": one.default if isinstance(one.default, str) else str(one.default).lower()
            for one in each.parameters
        }
        stored = []
        for k, given in enumerate((typed, dict.fromkeys(typed, ""))):
            name = f"c-of-{each.name}-{k}"
            made = ann.form("/create", CHOSEN | given | {"model": name, "learner.name": each.name})
            assert (made.status, fault(made)) == (303, "")
            ann.upload("half.csv", HALF)
            stored.append(client.get_model(name).specification)
        said, left = (dict(one.learner) if isinstance(one.learner, dict) else {} for one in stored)
        assert said["name"] == left["name"] == each.name
        assert said.keys() - {"base"} == {"name"} | {one.name for one in each.parameters}
        assert {one.name: said[one.name] for one in each.parameters} == {
            one.name: one.default for one in each.parameters
        }
        chosen = each.strategies[0]
        asking = {"name": chosen.name} | {one.name: one.default for one in chosen.parameters}
        assert stored[0].strategy == stored[1].strategy == asking


def test_a_forest_of_chosen_trees(ann: Visitor, client: Client) -> None:
    ann.upload("half.csv", HALF)
    fields = CHOSEN | {
        "model": "c-forest", "learner.name": "forest", "learner.trees": "7", "learner.max_features": "half",
        "learner.base.name": "c45", "learner.base.confidence": "none", "learner.base.max_cuts": "",
        "strategy.name": "shared", "strategy.regret": "0.2",
    }  # fmt: skip
    page = ann.form("/create", fields | {"act": "check"})
    assert page.status == 200
    assert '<details class="advanced" id="learner" open>' in page.text
    assert 'name="learner.base.confidence"' in page.text
    assert 'value="shared" checked' in page.text
    assert 'id="strategy.regret" name="strategy.regret"' in page.text
    assert ann.form("/create", fields).status == 303
    specification = client.get_model("c-forest").specification
    assert isinstance(specification.learner, dict)
    learner = specification.learner
    assert (learner["name"], learner["trees"], learner["max_features"]) == ("forest", 7, "half")
    assert (learner["base"]["name"], learner["base"]["confidence"]) == ("c45", None)
    assert specification.strategy == {"name": "shared", "regret": 0.2}


@pytest.mark.parametrize(
    ("learner", "field", "reason"),
    [
        ({"trees": 0}, "learner.trees", "is 0, must be a whole number in [1, 1000]"),
        ({"trees": "many"}, "learner.trees", "is 'many', must be a whole number in [1, 1000]"),
        ({"trees": 2.5}, "learner.trees", "is 2.5, must be a whole number in [1, 1000]"),
        ({"name": "forest", "max_features": "some"}, "learner.max_features", "is 'some', must be one of root, "),
        ({"name": "forest", "base": {"name": "id3", "significance": 1}}, "learner.base.significance",
         "is 1, must lie in (0, 1)"),
        ({"name": "forest", "base": {"name": "forest"}}, "learner.base.name", "is 'forest', of which no forest"),
        ({"name": "nobodys"}, "learner.name", "is 'nobodys', must be one of "),
    ],
)  # fmt: skip
def test_what_the_server_refuses_stands_beside_its_field(
    ann: Visitor, client: Client, learner: dict[str, Any], field: str, reason: str
) -> None:
    """In the same words, also where the console finds it before the server is asked."""
    given = {"name": "active-forest"} | learner
    with pytest.raises(InvalidArgument) as refused:
        client.create_model("c-no", Specification([Numeric("size")], ["x", "y"], learner=given))
    assert refused.value.violations[0].field == f"specification.{field}"
    assert refused.value.violations[0].reason.startswith(reason)
    ann.upload("half.csv", HALF)
    typed = {f"learner.{name}": text for name, text in learner.items() if name != "base"} | {
        f"learner.base.{name}": text for name, text in learner.get("base", {}).items()
    }
    page = ann.form("/create", CHOSEN | typed | {"model": "c-no"})
    assert page.status == 400
    shown = "learner" if field == "learner.name" else field
    assert beside(page) == {shown: refused.value.violations[0].reason}
    assert fault(page).endswith(beside(page)[shown])
    assert '<details class="advanced" id="learner" open>' in page.text
    if shown != "learner":
        assert f'aria-describedby="{field}-hint {field}-fault" aria-invalid="true"' in page.text
    if not field.endswith("name"):
        assert f'value="{typed[field]}"' in page.text  # what was typed is still there
        checked = ann.form("/create", CHOSEN | typed | {"model": "c-no", "act": "check"})
        assert (checked.status, beside(checked)) == (400, beside(page))
    with pytest.raises(NotFound):
        client.get_model("c-no")


def test_without_scripts_nothing_typed_for_another_learner_is_dropped_unsaid(
    ann: Visitor, client: Client
) -> None:
    ann.upload("half.csv", HALF)
    fields = CHOSEN | {"model": "c-other", "learner.name": "c45"}
    page = ann.form("/create", fields | {"learner.trees": "20"})
    assert page.status == 400
    assert fault(page) == (
        "trees: is not a parameter of c45; its parameters are max_cuts, min_branch, confidence"
    )
    assert "learner.min_branch" in page.text  # the form is now that of c45
    page = ann.form("/create", fields | {"strategy.name": "memory-disagreement"})
    assert beside(page)["strategy"].startswith("is 'memory-disagreement', must be one of covering-committee")
    assert ann.form("/create", fields | {"learner.min_branch": "3"}).status == 303
    learner = client.get_model("c-other").specification.learner
    assert isinstance(learner, dict)
    assert (learner["name"], learner["min_branch"]) == ("c45", 3)


NOTES = "the pump makes a noise at night"
KINDS = (
    "id;weight;note;photo;path;trace;page;soil\n"
    + "\n".join(
        f"a{k};{k},{k % 10};{NOTES} {k};https://cam.example/{k}.png;img/{k}.png;1 2 {k} 4 5;https://wiki.example/{k};"
        f"{('clay', 'lime')[k % 2]}"
        for k in range(6)
    )
).encode()


def test_what_is_no_number_and_no_name_is_recognised_and_asked_about(ann: Visitor, client: Client) -> None:
    """Also in six rows: nothing of it becomes names in silence."""
    page = ann.upload("mixed.csv", KINDS)
    said = plan(page)
    assert "Numbers (1): weight." in said
    assert "Names (1): soil." in said
    assert "Shown beside the row (4): note (text), photo (picture), trace (series), page (link)." in said
    assert "Left out (1): path." in said
    text = unescape(page.text)
    for remark in (
        "weight: '0,0' looks like a number with a decimal comma, and is read as 0.0.",
        "note: holds free text, which no tree learns from; labellers see it beside the row.",
        "path: holds paths of files, such as 'img/0.png'; a browser cannot send these files; quercus push --beside can",
    ):
        assert remark in text
    previews = text[text.index('<ol class="previews"') :]
    assert re.findall(r"<h4[^>]*>(.*?)</h4>", previews) == ["a0", "a1", "a2"]
    assert f"{NOTES} 2" in previews
    assert 'href="https://wiki.example/1"' in previews
    assert '<svg class="curve"' in previews
    assert ">1.1<" in previews
    fields = FIELDS | {"model": "c-mixed", "classes": "good, bad", "id": "id"}
    kinds = re.findall(r'name="kind-(\d+)".*?<option selected>([^<]*)</option>', text, re.DOTALL)
    fields |= {f"kind-{k}": kind for k, kind in kinds}
    assert ann.form("/create", fields).headers["location"] == "/m/c-mixed/label"
    model = client.get_model("c-mixed")
    assert [each.name for each in model.specification.attributes] == ["weight", "soil"]
    row = client.get_instance("c-mixed", "a3")
    assert row.values == {"weight": 3.3, "soil": "lime"}
    assert [type(each).__name__ for each in row.display] == [
        "TextItem",
        "MediaItem",
        "SeriesItem",
        "LinkItem",
    ]


def test_a_cell_that_is_no_number_with_a_comma_is_named(ann: Visitor) -> None:
    ann.upload("stones.csv", b"size;colour\n1,5;red\n2,5;blue\nmuch;red\n")
    fields = FIELDS | {"model": "c-comma", "classes": "a,b", "kind-0": "number (1,5)"}
    page = ann.form("/create", fields)
    assert page.status == 400
    assert "size, line 4: 'much' is neither a finite number nor a time" in fault(page)


def test_a_page_that_is_closed_while_it_sends_a_file_breaks_nothing(ann: Visitor) -> None:
    """The fixture of the console fails if it says more than that it was asked."""
    ann.get("/create")
    cookie = "; ".join(f"{name}={value}" for name, value in ann.cookies.items())
    head = (
        f"POST /create HTTP/1.1\r\nHost: {ann.host}\r\nSec-Fetch-Site: same-origin\r\nCookie: {cookie}\r\n"
        "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 100000\r\n\r\n--b"
    )
    with socket.create_connection(("127.0.0.1", ann.port)) as connection:
        connection.sendall(head.encode())
    assert ann.get("/create").status == 200
