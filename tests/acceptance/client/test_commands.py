"""The command line as its users meet it: real processes, real files, exit codes and messages."""

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from integration.client.serving import QUERCUS, Serving
from support.command_line import quercus

from quercus.client import Client, Numeric, Specification
from quercus.specification.parameters import MODEL_SIGNIFICANCE
from quercus.specification.strategies import MARGIN

COMMANDS = ("serve", "models", "push", "label", "classify", "tree", "watch", "induce")


def run_quercus(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command line in an environment that holds nothing else."""
    return subprocess.run(
        [QUERCUS, *arguments],
        env={"PATH": "/usr/bin:/bin", "NO_COLOR": "1"} | environment,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


def create(server: str, name: str, file: Path, *options: str) -> None:
    asking = ("--learner", "abc45", "--split-significance", "0", "--strategy", "published")
    done = quercus("models", "create", name, str(file), "--class", "class", *asking, *options, server=server)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def grown(server: str, name: str, table_t: Path) -> str:
    """A model that has learned table T from its true classes."""
    create(server, name, table_t, "--alpha", "1")
    assert quercus("push", name, str(table_t), "--labels", server=server).returncode == 0
    with Client(server) as client:
        client.wait_grown(name, timeout_s=60)
    return name


def test_help_names_every_command() -> None:
    done = quercus("--help")
    assert done.returncode == 0
    assert all(f"│ {command} " in done.stdout for command in COMMANDS)
    assert quercus("--version").stdout.startswith("quercus ")


def test_the_column_of_the_class_is_asked_for_in_the_same_words(
    server: str, name: str, tmp_path: Path
) -> None:
    file = tmp_path / "t.csv"
    file.write_text("a,kind\n1,x\n2,y\n")
    asked = "which column holds the class? Name it with --class COLUMN"
    listed = "; the columns are a, kind"
    done = quercus("models", "create", name, str(file), server=server)
    assert done.returncode == 2
    assert f"{asked}, or give the classes with --classes A,B,C{listed}" in " ".join(
        done.stderr.replace("│", " ").split()
    )
    assert quercus("models", "create", name, str(file), "--class", "kind", server=server).returncode == 0
    done = quercus("push", name, str(file), "--labels", server=server)
    assert (done.returncode, done.stderr) == (1, f"error: {file}: {asked}{listed}\n")


def test_a_half_labelled_file_says_that_it_has_labels(server: str, name: str, tmp_path: Path) -> None:
    """Its classes may be given with the column that names some of them."""
    file = tmp_path / "half.csv"
    file.write_text("a,kind\n1,x\n2,\n3,?\n4, \n")
    command = ("models", "create", name, str(file), "--class", "kind")
    done = quercus(*command, server=server)
    assert done.returncode == 1
    assert "name them all with --classes A,B,C" in done.stderr
    done = quercus(*command, "--classes", 'x,"y, or z"', server=server)
    assert done.returncode == 0, done.stderr
    assert (
        "1 of 4 rows of half.csv are labelled; their labels are sent only with --labels --class kind"
        in done.stdout
    )
    assert quercus("push", name, str(file), server=server).returncode == 0
    again = quercus("push", name, str(file), "--labels", "--class", "kind", server=server)
    assert again.returncode == 1
    assert f"push them as answers: quercus push {name} FILE --labels --item" in " ".join(again.stderr.split())
    with Client(server) as client:
        assert client.get_model(name).specification.classes == ("x", "y, or z")


def test_a_model_from_a_data_file(server: str, name: str, table_t: Path) -> None:
    done = quercus("models", "create", name, str(table_t), "--budget", "5", "--json", server=server)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["specification"] == {
        "classes": ["o", "s", "x"],
        "alpha": 0.8,
        "prediction_level": 0.75,
        "split_significance": MODEL_SIGNIFICANCE.default,
        "budget": 5,
        "min_instances": 2,
        "warmup_rows": 100,
        "strategy": {"name": MARGIN},
        "learner": {"name": "active-forest", "seed": 0, "trees": 100},
        "attributes": [{"name": "X", "values": ["a", "b", "c"]}, {"name": "Y", "values": ["d", "e"]}],
    }
    again = quercus("models", "create", name, str(table_t), server=server)
    assert (again.returncode, name in again.stderr) == (1, True)


def test_numbers_with_a_decimal_comma_are_pointed_out(server: str, name: str, tmp_path: Path) -> None:
    data = tmp_path / "comma.csv"
    data.write_text("a;b;c;class\n1,5;1,5;1,5;x\n-,25;2,5;x;y\n")
    done = quercus("models", "create", name, str(data), "--delimiter", ";", "--nominal", "b", server=server)
    assert done.returncode == 0, done.stderr
    assert "note: a, line 2: '1,5' is a number with a decimal comma" in done.stdout
    assert "because a number has a decimal point (1.5 and not 1,5)" in done.stdout
    assert "note: b" not in done.stdout


def test_a_model_shown_as_json_makes_another_one(
    server: str, name: str, table_t: Path, tmp_path: Path
) -> None:
    create(server, name, table_t, "--budget", "5")
    shown = quercus("models", "show", name, "--json", server=server).stdout
    (tmp_path / "copy.json").write_text(shown)
    done = quercus(
        "models", "create", f"{name}-copy", str(tmp_path / "copy.json"), "--alpha", "0.5", server=server
    )
    assert done.returncode == 0, done.stderr
    copy = json.loads(quercus("models", "show", f"{name}-copy", "--json", server=server).stdout)
    assert copy["specification"] == json.loads(shown)["specification"] | {"alpha": 0.5}


def test_the_learners_and_a_model_that_has_one_with_no_value(
    server: str, name: str, table_t: Path, tmp_path: Path
) -> None:
    listed = quercus("learners", server=server)
    assert listed.returncode == 0, listed.stderr
    assert "confidence=0.25" in listed.stdout
    declared = {
        each["name"]: each for each in json.loads(quercus("learners", "--json", server=server).stdout)
    }
    (confidence,) = [each for each in declared["c45"]["parameters"] if each["name"] == "confidence"]
    assert (confidence["default"], confidence["meaning_of_none"]) == (0.25, "no pruning")
    options = ("--class", "class", "--learner", "c45")
    bad = quercus("models", "create", name, str(table_t), *options, "-p", "confidence=2", server=server)
    assert bad.returncode != 0
    assert "confidence" in bad.stderr
    assert "is 2, must lie in (0, 1)" in bad.stderr
    made = quercus("models", "create", name, str(table_t), *options, "-p", "confidence=none", server=server)
    assert made.returncode == 0, made.stderr
    shown = json.loads(quercus("models", "show", name, "--json", server=server).stdout)
    assert shown["specification"]["learner"] == {
        "name": "c45",
        "confidence": None,
        "max_cuts": None,
        "min_branch": 2,
    }
    file = tmp_path / "again.toml"
    file.write_text(
        'classes = ["p", "q"]\nattributes = [{name = "x"}]\nlearner = {name = "c45", confidence = "none"}\n'
    )
    again = quercus("models", "create", f"{name}-2", str(file), server=server)
    assert again.returncode == 0, again.stderr
    shown = json.loads(quercus("models", "show", f"{name}-2", "--json", server=server).stdout)
    assert shown["specification"]["learner"] == {
        "name": "c45",
        "confidence": None,
        "max_cuts": None,
        "min_branch": 2,
    }


def test_models_are_listed_changed_and_deleted(server: str, name: str, table_t: Path) -> None:
    create(server, name, table_t)
    listed = json.loads(quercus("models", "list", "--json", server=server).stdout)
    assert name in [each["name"] for each in listed]
    assert name in quercus("models", "list", server=server).stdout
    changed = quercus("models", "update", name, "--budget", "9", "--json", server=server)
    assert json.loads(changed.stdout)["specification"]["budget"] == 9
    refused = quercus("models", "delete", name, server=server)
    assert (refused.returncode, "--yes" in refused.stderr) == (2, True)
    assert quercus("models", "delete", name, "--yes", server=server).returncode == 0
    gone = quercus("models", "show", name, server=server)
    assert (gone.returncode, name in gone.stderr) == (1, True)


def test_push_reports_and_may_be_repeated(server: str, name: str, table_t: Path) -> None:
    create(server, name, table_t)
    first = quercus("push", name, str(table_t), "--json", server=server)
    assert json.loads(first.stdout)["stored"] == 21
    second = quercus("push", name, str(table_t), server=server)
    assert "pushed 21 rows" in second.stdout
    assert "(21 already there)" in second.stdout
    assert "columns not sent: class" in second.stdout


def test_refused_rows_go_to_a_file_from_which_they_can_be_pushed_again(
    server: str, name: str, tmp_path: Path
) -> None:
    """Whoever refuses them: the file (a text, no id), the client (an id), the server (an id that is taken)."""
    good, mixed, kept = tmp_path / "good.csv", tmp_path / "mixed.csv", tmp_path / "rejected.csv"
    good.write_text("file,x,y,class\nimages/1.jpg,1,red,o\ns3://b/k,2,blue,s\n")
    lines = ["images/2.jpg,3,red,o", "images/3.jpg,much,blue,s", "images/1.jpg,9,red,o", ",4,blue,s"]
    mixed.write_text(
        "\n".join(["file,x,y,class", *lines, "a\u202eb,5,red,o", "i/6,6,red,elm", "i/7,7,blue,s", ""])
    )
    create(server, name, good, "--ignore", "file")
    assert quercus("push", name, str(good), "--id-column", "file", "--labels", server=server).returncode == 0
    push = ("push", name, str(mixed), "--id-column", "file", "--labels")
    stopped = quercus(*push, server=server)
    assert stopped.returncode == 1
    assert f"{mixed}: line 3, column 2 (x): 'much' is not a finite number" in stopped.stderr
    done = quercus(*push, "--rejected", str(kept), server=server)
    assert done.returncode == 1
    assert "pushed 2 rows" in done.stdout
    assert f"5 rows were refused: see {kept} for the line and the reason of each" in " ".join(
        done.stderr.split()
    )
    rows = list(csv.DictReader(io.StringIO(kept.read_text())))
    found = {int(each["rejected_line"]): (each["rejected_id"], each["rejected_reason"]) for each in rows}
    assert [each["x"] for each in sorted(rows, key=lambda each: each["rejected_line"])] == [
        "much",
        "9",
        "4",
        "5",
        "6",
    ]
    assert found[3][0] == "images/3.jpg"
    assert found[3][1].startswith("x: 'much' is not a finite number")
    assert found[4] == (
        "images/1.jpg",
        f"file: instance images/1.jpg already exists in model {name} with other values",
    )
    assert found[5] == ("", "file: the id is missing")
    assert found[6][1].startswith("file: has the control character U+202E at position 2")
    assert found[7] == ("i/6", "class: 'elm' is not a class; the classes are o, s")
    mended = kept.read_text().replace("much", "8").replace("elm", "o").splitlines()
    kept.write_text(
        "\n".join(line for line in mended if not {"images/1.jpg", "", "a\u202eb"} & set(line.split(",")[:1]))
    )
    again = quercus("push", name, str(kept), "--id-column", "rejected_id", "--labels", server=server)
    assert again.returncode == 0, again.stderr
    with Client(server) as client:
        ids = [each.id for each in client.instances(name)]
    assert ids == ["images/1.jpg", "s3://b/k", "images/2.jpg", "i/7", "images/3.jpg", "i/6"]
    clean = quercus(
        "push", name, str(good), "--id-column", "file", "--labels", "--rejected", str(kept), server=server
    )
    assert clean.returncode == 0, clean.stderr
    assert not kept.exists()


def test_another_file_wants_another_prefix(server: str, name: str, table_t: Path, tmp_path: Path) -> None:
    create(server, name, table_t)
    assert quercus("push", name, str(table_t), server=server).returncode == 0
    other = tmp_path / "other.csv"
    other.write_text("Y,X\nd,c\n")
    clash = quercus("push", name, str(other), server=server)
    assert clash.returncode == 1
    assert "--id-prefix" in clash.stderr
    assert quercus("push", name, str(other), "--id-prefix", "b-", server=server).returncode == 0


def test_labels_are_sent_only_when_asked_for(server: str, name: str, table_t: Path) -> None:
    create(server, name, table_t, "--budget", "21")
    assert quercus("push", name, str(table_t), server=server).returncode == 0
    theta = {tuple(row[2:5]) for row in answers(server, name, table_t)[1:]}
    assert theta == {("0.333333", "0.333333", "0.333333")}


def answers(server: str, name: str, file: Path, *flags: str) -> list[list[str]]:
    with Client(server) as client:
        client.wait_grown(name)
    done = quercus("classify", name, str(file), *flags, server=server)
    assert done.returncode == 0, done.stderr
    return list(csv.reader(io.StringIO(done.stdout)))


def test_the_recommended_forest(server: str, name: str, table_t: Path) -> None:
    done = quercus(
        "models", "create", name, str(table_t), "--budget", "3", "--learner", "forest", "-p", "trees=2",
        "-p", "base=e2m", "-p", "base.informed_only=true", server=server,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert all(each in done.stdout for each in ("forest (base e2m (", "informed_only True", "trees 2"))
    assert "covering-committee" in done.stdout


def test_a_model_of_another_learner_and_uncertain_cells(
    server: str, name: str, table_t: Path, tmp_path: Path
) -> None:
    done = quercus(
        "models", "create", name, str(table_t), "--learner", "forest", "-p", "base=averaging", "-p", "trees=3",
        "-p", "base.max_cuts=4", "-p", "vote=mass", server=server,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert all(
        each in done.stdout for each in ("forest (base averaging (max_cuts 4), ", "trees 3", "vote mass")
    )
    assert "its budget is 0, so it will ask no queries" in done.stdout
    assert quercus("push", name, str(table_t), "--labels", server=server).returncode == 0
    assert (
        quercus("watch", name, "--json", "--timeout-s", "60", "--stop-after", "1", server=server).returncode
        == 0
    )
    with Client(server) as client:
        client.wait_grown(name)  # the first tree may be that of no rows
    rows = tmp_path / "rows.csv"
    rows.write_text("X,Y\na|b,e\n?,d\nc,?\n")
    header, *found = csv.reader(
        io.StringIO(quercus("classify", name, str(rows), "--masses", server=server).stdout)
    )
    assert (len(found), header[-3:]) == (3, ["classes", "mass", "version"])
    assert all(":" in row[-2] for row in found)
    assert quercus("tree", name, server=server).stdout.startswith("3 trees")
    one = json.loads(quercus("tree", name, "--member", "2", "--json", server=server).stdout)
    assert (one["learner"], one["members"], one["member"]) == ("forest", 3, 2)
    assert "mass" in one["tree"]
    for wrong, words in (("base.x.y=1", "KEY=VALUE"), ("colour=red", "colour"), ("trees=many", "trees")):
        done = quercus(
            "models", "create", "no", str(table_t), "--learner", "forest", "-p", wrong, server=server
        )
        assert done.returncode != 0
        assert words in done.stderr


def test_two_kinds_of_doubt(server: str, name: str, tmp_path: Path) -> None:
    """At 0 a coin was thrown forty times; at 1 every row is of one class."""
    (tmp_path / "new.csv").write_text("x\n0\n1\n")
    with Client(server) as client:
        learner = {"name": "active-forest", "trees": 6, "seed": 0}
        client.create_model(name, Specification([Numeric("x")], ["a", "b"], learner=learner))
        client.push(name, [[0.0]] * 40 + [[1.0]] * 40, ["a", "b"] * 20 + ["a"] * 40)
        client.wait_grown(name, timeout_s=60)
    file = str(tmp_path / "new.csv")
    csv_rows = list(
        csv.DictReader(io.StringIO(quercus("classify", name, file, "--doubt", server=server).stdout))
    )
    lines = quercus("classify", name, file, "--doubt", "--json", server=server).stdout.splitlines()
    for coin, known in (csv_rows, [json.loads(line) for line in lines]):
        assert float(coin["overlap"]) > 0.8
        assert float(coin["ignorance"]) < 0.1
        assert float(known["overlap"]) < 0.05
    table = quercus("classify", name, file, "--doubt", "--format", "table", server=server)
    assert table.returncode == 0, table.stderr
    assert " overlap  ignorance" in table.stdout
    assert "overlap" not in quercus("classify", name, file, server=server).stdout


def test_a_narrow_terminal_shows_the_whole_name_of_a_model(server: str, grown: str) -> None:
    narrow = os.environ | {"COLUMNS": "40", "QUERCUS_SERVER": server, "NO_COLOR": "1"}
    command = [str(Path(sys.executable).with_name("quercus")), "models", "list"]
    done = subprocess.run(command, env=narrow, capture_output=True, text=True, check=True, timeout=100)
    assert f" {grown} " in done.stdout


def test_a_full_disk_is_said_in_words(server: str, grown: str, table_t: Path) -> None:
    command = [
        str(Path(sys.executable).with_name("quercus")),
        "classify",
        grown,
        str(table_t),
        "--server",
        server,
    ]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=100
        )
    assert (done.returncode, done.stderr) == (1, "error: No space left on device\n")


def test_classes_that_a_spreadsheet_would_run(server: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("x\n1\n")
    with Client(server) as client:
        client.create_model(name, Specification([Numeric("x")], ["=cmd|'C calc'!A0", "s"]))
        client.push(name, [[1.0], [2.0]], ["=cmd|'C calc'!A0", "s"])
        client.wait_grown(name, timeout_s=60)
    plain = answers(server, name, tmp_path / "new.csv")[1]
    assert (plain[1], plain[8][0]) == (r"=cmd\|'C calc'!A0", "=")
    shielded = answers(server, name, tmp_path / "new.csv", "--for-spreadsheets")[1]
    assert shielded == [f"'{cell}" if cell.startswith("=") else cell for cell in plain]
    done = quercus("classify", name, str(tmp_path / "new.csv"), "--json", "--for-spreadsheets", server=server)
    assert "is for CSV" in done.stderr


def test_classify_in_every_form(server: str, grown: str, table_t: Path, tmp_path: Path) -> None:
    rows = answers(server, grown, table_t)
    assert rows[0][:3] == ["row", "class", "theta:o"]
    assert [row[1] for row in rows[1:]] == list("xxxxssssssssxxxxxoooo")
    lines = [
        json.loads(line)
        for line in quercus("classify", grown, str(table_t), "--json", server=server).stdout.splitlines()
    ]
    assert [line["class"] for line in lines] == [row[1] for row in rows[1:]]
    assert lines[0]["plausibility"].keys() == {"o", "s", "x"}
    done = quercus(
        "classify",
        grown,
        str(table_t),
        "--output",
        str(tmp_path / "o.csv"),
        "--class",
        "class",
        server=server,
    )
    assert "accuracy 0.9048 (19 of 21)" in done.stderr
    assert (tmp_path / "o.csv").read_text().splitlines()[1].startswith("0,x,")
    table = quercus("classify", grown, str(table_t), "--format", "table", server=server)
    assert "by tree version" in table.stdout
    covering = quercus("classify", grown, str(table_t), "--coverage", "0.9", server=server)
    assert next(csv.DictReader(io.StringIO(covering.stdout)))["set"] == "o|s|x"
    assert "sets of 90 %: all classes, since no row was predicted before its label came" in covering.stderr
    doubted = quercus("classify", grown, str(table_t), "--doubt", server=server)
    assert next(csv.DictReader(io.StringIO(doubted.stdout)))["overlap"] == ""
    assert "does not separate the two kinds of doubt: the learner active-forest does" in doubted.stderr
    refused = quercus("classify", grown, str(table_t), "--coverage", "90", server=server)
    assert "--coverage is 90, must lie between 0 and 1, such as 0.9" in " ".join(refused.stderr.split())
    assert re.search(r" \[\d\.\d{3}, \d\.\d{3}\] ", table.stdout)
    assert "\\" not in table.stdout
    unwritable = quercus("classify", grown, str(table_t), "--output", "/nowhere/o.csv", server=server)
    assert (unwritable.returncode, "cannot write /nowhere/o.csv" in unwritable.stderr) == (1, True)


def test_the_accuracy_on_asked_rows_is_not_that_on_all_rows(server: str, name: str) -> None:
    rows = [[float(k % 19), float(k % 7)] for k in range(190)]
    with Client(server) as client:
        client.create_model(name, Specification([Numeric("x"), Numeric("y")], ["o", "s"], budget=25))
        client.push(name, rows)
        for query in client.queries(name, "ann", idle_s=5.0):
            client.answer(query, "os"[float(query.values["x"]) > 9])  # type: ignore[arg-type]
        client.wait_grown(name)
        found, answers = client.get_model(name), client.classify(name, rows)
    assert found.accuracy is not None
    assert found.average_confidence is not None
    assert 10 <= found.accuracy.rows < 25
    shown = " ".join(quercus("models", "show", name, server=server).stdout.split())
    assert f"right of the last {found.accuracy.rows} labels that came after a prediction" in shown
    assert "(rows that were asked about are the hardest: on all rows the accuracy is usually higher)" in shown
    mean = answers.pignistic.max(axis=1).mean()
    assert f"on all rows {mean * 100:.1f} % right by its own estimate, the mean over 190 rows" in shown
    assert f"quercus classify {name} FILE --class COLUMN" in shown
    told = json.loads(quercus("models", "show", name, "--json", server=server).stdout)
    assert told["average_confidence"] == {"rows": 190, "mean": pytest.approx(mean)}


def test_tree_in_every_form(server: str, grown: str, tmp_path: Path) -> None:
    assert "by X" in quercus("tree", grown, server=server).stdout
    tree = json.loads(quercus("tree", grown, "--json", server=server).stdout)
    assert tree["tree"]["attribute"] == "X"
    assert tree["tree"]["children"]["c"]["children"]["d"]["class"] == "o"
    files = ("--svg", str(tmp_path / "t.svg"), "--dot", str(tmp_path / "t.dot"))
    assert quercus("tree", grown, *files, server=server).returncode == 0
    assert "<svg" in (tmp_path / "t.svg").read_text()
    assert (tmp_path / "t.dot").read_text().startswith("digraph")
    missing = quercus("tree", grown, "--version", "999", server=server)
    assert (missing.returncode, "999" in missing.stderr) == (1, True)


def test_watch_prints_a_line_a_tree(server: str, grown: str) -> None:
    line = quercus("watch", grown, "--stop-after", "1", server=server).stdout
    assert "rows 21" in line
    assert "root X" in line
    numbers = json.loads(quercus("watch", grown, "--stop-after", "1", "--json", server=server).stdout)
    told = set(
        re.findall(r"\w+", quercus("watch", "--help").stdout.partition("Fields")[2].partition("Try:")[0])
    )
    assert numbers.keys() <= told | {"model"}
    assert all(
        f"{key} {'-' if value is None else ''}" in line for key, value in numbers.items() if key != "model"
    )


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "models create m {file} --budget 2000000",
            "--budget': is '2000000', must be a whole number in [0, 1000000]",
        ),
        (
            "models create m {file} --budget many",
            "--budget': is 'many', must be a whole number in [0, 1000000]",
        ),
        ("models create m {file} --alpha 1.5", "--alpha': is '1.5', must be a number in [0, 1]"),
        ("models update m --pruning-level no", "--pruning-level': is 'no', must be a number"),
        ("answers m --newest 0", "--newest': is '0', must be a whole number of at least 1"),
        ("label m --delay-s -1", "--delay-s': is '-1', must be a number of at least 0"),
        ("policy m --reliability no", "--reliability': 'no' is not one of 'declared', 'estimated'"),
    ],
)
def test_a_wrong_option_is_named_with_its_value_and_bounds(line: str, words: str, table_t: Path) -> None:
    arguments = [word.replace("{file}", str(table_t)) for word in line.split()]
    done = quercus(*arguments)
    assert done.returncode == 2
    assert f"Invalid value for '{words}" in " ".join(re.sub("[│╭╮╰╯─]", " ", done.stderr).split())
    told = json.loads(quercus(*arguments, "--json").stderr)["error"]
    assert (told["kind"], words in told["message"]) == ("Usage", True)


def test_what_an_update_leaves_out_is_said_to_stay() -> None:
    """A default beside an option would say that the parameter goes back to it."""
    told = " ".join(re.sub("│", " ", quercus("models", "update", "--help").stdout).split())
    assert "What is not given stays as it is." in told
    assert re.findall(r"\((?:server's )?default: [^)]*\)", told) == [
        "(server's default: 0.05)"
    ]  # of a pruning that is given


def test_the_column_of_the_class_is_sent_or_refused(server: str, name: str, table_t: Path) -> None:
    """Whoever names it wants the labels: rows without them would be stored for good."""
    create(server, name, table_t)
    done = quercus("push", name, str(table_t), "--class", "class", server=server)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--class names a column whose labels are sent only with --labels: give both" in " ".join(
        re.sub("│", " ", done.stderr).split()
    )


def test_one_is_written_as_one(server: str, name: str, tmp_path: Path) -> None:
    """One row, one answer: nobody reads of 1 rows."""
    file = tmp_path / "one.csv"
    file.write_text("size,class\n1,a\n")
    told = [
        quercus("inspect", str(file), "--classes", "a,b", "--ignore", "class").stdout,
        quercus("models", "create", name, str(file), "--classes", "a,b", "--ignore", "class", "--budget", "1",
                server=server).stdout,
        quercus("push", name, str(file), server=server).stdout,
        quercus("label", name, "--truth", str(file), server=server).stdout,
    ]  # fmt: skip
    (tmp_path / "said.csv").write_text("item,labeller,answer\n0,bob,a\n")
    told.append(quercus("push", name, str(tmp_path / "said.csv"), "--labels", server=server).stdout)
    assert "1 row;" in told[0]
    assert told[2].startswith("pushed 1 row in ")
    assert "the budget of 1 answer is spent" in told[3]
    assert told[4] == "stated 1 answer of 1 labeller on 1 row\n"
    assert not re.search(r"\b1 (rows|answers|labellers|events|models)\b", "".join(told))


def test_a_file_answers_queries_until_the_budget_is_spent(
    server: str, name: str, table_t: Path, contours_t: Path
) -> None:
    create(server, name, table_t, "--alpha", "0.9", "--budget", "5")
    push = quercus("push", name, str(table_t), "--label-file", str(contours_t), server=server)
    assert push.returncode == 0, push.stderr
    limited = quercus(
        "label",
        name,
        "--truth",
        str(table_t),
        "--labeller",
        "ann",
        "--stop-after",
        "2",
        "--json",
        server=server,
    )
    assert json.loads(limited.stdout)["answered"] == 2
    rest = quercus(
        "label", name, "--truth", str(table_t), "--labeller", "bob", "--delay-s", "0.01", server=server
    )
    assert rest.returncode == 0, rest.stderr
    assert "the budget of 5 answers is spent" in rest.stdout
    assert "bob: 3 answered" in rest.stdout
    tree = json.loads(quercus("tree", name, "--json", server=server).stdout)["tree"]
    assert tree["attribute"] == "X"
    assert {value: child["class"] for value, child in tree["children"].items()} == {
        "a": "x",
        "b": "s",
        "c": "s",
    }


def test_a_file_that_cannot_tell_refuses(server: str, name: str, table_t: Path, tmp_path: Path) -> None:
    create(server, name, table_t, "--budget", "5")
    assert quercus("push", name, str(table_t), server=server).returncode == 0
    truth = tmp_path / "truth.csv"
    truth.write_text("class\n" + "?\n" * 21)
    done = quercus("label", name, "--truth", str(truth), "--idle-s", "1", "--json", server=server)
    assert done.returncode == 0, done.stderr
    tally = json.loads(done.stdout)
    assert (tally["answered"], tally["refused"]) == (0, 21)
    assert "nothing more to ask" in done.stderr


def test_answers_given_before_an_error_are_reported(
    server: str, name: str, table_t: Path, tmp_path: Path
) -> None:
    create(server, name, table_t, "--budget", "4")
    assert quercus("push", name, str(table_t), server=server).returncode == 0
    truth = tmp_path / "truth.csv"
    truth.write_text("id,class\n0,x\n")
    done = quercus(
        "label", name, "--truth", str(truth), "--id-column", "id", "--labeller", "bob", server=server
    )
    assert (done.returncode, done.stdout) == (1, "bob: 1 answered\n")
    assert "has no answer for instance" in done.stderr


def test_answers_by_id(server: str, name: str, table_t: Path, tmp_path: Path) -> None:
    create(server, name, table_t, "--budget", "2")
    keyed = tmp_path / "keyed.csv"
    lines = table_t.read_text().splitlines()
    keyed.write_text("\n".join(["id," + lines[0], *(f"r{i},{line}" for i, line in enumerate(lines[1:]))]))
    assert quercus("push", name, str(keyed), "--id-column", "id", server=server).returncode == 0
    wrong = quercus("label", name, "--truth", str(table_t), server=server)
    assert wrong.returncode == 1
    assert "has no answer for instance 'r" in wrong.stderr
    assert "--id-column" in wrong.stderr
    done = quercus("label", name, "--truth", str(keyed), "--id-column", "id", "--json", server=server)
    assert done.returncode == 0, done.stderr


def test_induce_on_numbers_with_missing_values(tmp_path: Path) -> None:
    data = tmp_path / "d.csv"
    data.write_text(
        "x,colour,class\n"
        + "".join(f"{i},{'?' if i == 3 else 'r'},{'hi' if i >= 6 else 'lo'}\n" for i in range(12))
    )
    done = quercus("induce", str(data), "--alpha", "1", "--bins", "2", "--json")
    tree = json.loads(done.stdout)["tree"]
    assert (tree["attribute"], [child["class"] for child in tree["children"].values()]) == ("x", ["lo", "hi"])
    assert "by x" in quercus("induce", str(data), "--alpha", "1", "--bins", "2").stdout


def test_induce_never_draws_over_a_file_that_it_reads(
    table_t: Path, contours_t: Path, tmp_path: Path
) -> None:
    data, labels, truth = tmp_path / "t.csv", tmp_path / "labels.csv", tmp_path / "truth.csv"
    data.write_text(table_t.read_text())
    labels.write_text(contours_t.read_text())
    truth.write_text("\n".join(line.rpartition(",")[2] for line in table_t.read_text().splitlines()))
    for name, read in (("t.svg", data), ("labels.svg", labels), ("truth.svg", truth)):
        (tmp_path / name).symlink_to(read)
    before = [each.read_text() for each in (data, labels, truth)]
    files = ("--class", "class", "--label-file", str(labels), "--truth", str(truth))
    for own in ("t.svg", "labels.svg", "truth.svg"):
        done = quercus("induce", str(data), *files, "--svg", str(tmp_path / own))
        said = " ".join(done.stderr.replace("│", " ").split())
        assert (done.returncode, "which this command reads: name another" in said) == (2, True), own
        assert [each.read_text() for each in (data, labels, truth)] == before, own
    assert quercus("induce", str(data), *files, "--svg", str(tmp_path / "tree.svg")).returncode == 0
    assert "<svg" in (tmp_path / "tree.svg").read_text()


MISTAKES = [
    (("push",), 2, "Missing argument"),
    (("push", "m", "nowhere.csv"), 2, "does not exist"),
    (("push", "m", "t.csv", "--labels", "--label-file", "t.csv"), 2, "choose one"),
    (("models", "create", "m", "plain.csv"), 2, "--class COLUMN"),
    (("models", "create", "m", "t.csv", "--class", "kind"), 1, "no column 'kind'"),
    (("models", "create", "Bad Name", "t.csv"), 1, "1 to 63 characters"),
    (("models", "create", "m", "t.csv", "--classes", "o,s,o", "--class", "class"), 1, "classes"),
    (("models", "create", "m", "t.csv", "--alpha", "2"), 2, "alpha"),
    (("models", "create", "m", "spec.toml", "--class", "x"), 2, "describe a data file"),
    (("models", "create", "m", "spec.toml", "--cuts", "8"), 2, "--bins and --cuts describe a data file"),
    (("models", "create", "m", "spec.toml"), 1, "attributes is not given"),
    (("models", "update", "m"), 2, "nothing to change"),
    (("push", "no-such-model", "t.csv"), 1, "no-such-model"),
    (("label", "no-such-model", "--truth", "t.csv"), 1, "no-such-model"),
    (("watch", "no-such-model"), 1, "no-such-model"),
    (("induce", "ragged.csv"), 1, "line 3, column 2"),
    (("induce", "plain.csv"), 1, "holds no labels"),
    (("induce", "t.csv", "--label-file", "short.csv"), 1, "one label per row"),
    (("induce", "plain.csv", "--label-file", "long.csv", "--budget", "3"), 2, "--truth"),
    (("induce", "t.csv", "--truth", "short.csv", "--class", "o"), 1, "--class: no column 'o'"),
    (("frobnicate",), 2, "No such command"),
]


@pytest.mark.parametrize(("arguments", "code", "words"), MISTAKES, ids=lambda value: str(value)[:60])
def test_mistakes_are_reported_in_words(
    server: str, table_t: Path, tmp_path: Path, arguments: tuple[str, ...], code: int, words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plain.csv").write_text("a,b\n1,x\n2,y\n")
    (tmp_path / "ragged.csv").write_text("a,class\n1,x\n2\n")
    (tmp_path / "short.csv").write_text("o,s,x\n1,1,1\n")
    (tmp_path / "long.csv").write_text("o,s\n1,1\n1,1\n")
    (tmp_path / "spec.toml").write_text('classes = ["a", "b"]\n')
    done = quercus(*arguments, server=server)
    assert done.returncode == code, done.stdout + done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not done.stdout


def test_no_server_says_how_to_start_one() -> None:
    done = quercus("models", "list", server="127.0.0.1:9")
    assert done.returncode == 1
    assert "no server answers at 127.0.0.1:9" in done.stderr
    assert "quercus serve" in done.stderr


def test_what_grpc_logs_about_a_handshake_is_not_shown(server: str) -> None:
    done = run_quercus("models", "list", "--server", f"tls://{server}")
    assert done.stderr == f"error: the server at tls://{server} does not speak TLS: omit tls://\n"


@pytest.mark.parametrize("address", ["localhost", "http://127.0.0.1:50051", "127.0.0.1:70000"])
def test_a_wrong_address_is_reported(address: str) -> None:
    done = quercus("models", "list", server=address)
    assert done.returncode == 1
    assert f"{address!r} is not HOST:PORT, as in 127.0.0.1:50051" in done.stderr


def test_a_file_without_the_model_s_columns_prints_nothing(server: str, grown: str, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text("X\na\n")
    done = quercus("classify", grown, str(other), server=server)
    assert (done.returncode, done.stdout) == (1, "")
    assert "has no column for the model's Y" in done.stderr


def test_any_locale_will_do(server: str, name: str, tmp_path: Path) -> None:
    """Pipes carry UTF-8 whatever the locale; what is told to print otherwise shows a question mark."""
    data = tmp_path / "data.csv"
    data.write_text("wörd,class\nä,ja\nö,nein\n", encoding="utf-8")
    create(server, name, data)
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "QUERCUS_SERVER": server}
    assert "wörd       names  ä, ö" in run_quercus("models", "show", name, **plain).stdout
    assert "wörd" in run_quercus("models", "show", name, "--json", **plain).stdout
    ascii_only = run_quercus("models", "show", name, PYTHONIOENCODING="ascii", **plain)
    assert (ascii_only.returncode, "w?rd" in ascii_only.stdout) == (0, True)


def test_a_push_that_is_interrupted_says_how_it_goes_on(server: str, name: str, tmp_path: Path) -> None:
    big = tmp_path / "big.csv"
    big.write_text("X,class\n" + "a,x\nb,y\n" * 200_000)
    create(server, name, big)
    command = [QUERCUS, "push", name, str(big), "--batch-rows", "100", "--server", server]
    with (
        Client(server) as client,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process,
    ):
        while not client.get_model(name).instance_count:
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        printed, errors = process.communicate(timeout=60)
    assert (process.returncode, printed) == (130, "")
    assert errors == "stopped; the same command continues: no row is stored twice\n"


def test_a_closed_pipe_is_no_trouble(server: str, grown: str, table_t: Path, tmp_path: Path) -> None:
    big = tmp_path / "big.csv"
    big.write_text("X,Y\n" + "a,d\n" * 20_000)
    with subprocess.Popen(
        [QUERCUS, "classify", grown, str(big), "--server", server],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(timeout=60) == 1
        assert process.stderr.read() == b""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serve_stops_on_request(tmp_path: Path, number: signal.Signals) -> None:
    assert Serving(tmp_path, 0, "--http-port", "0").stop(number) == 0


def test_completion_scripts_are_offered() -> None:
    done = subprocess.run(
        [QUERCUS],
        env={
            "_QUERCUS_COMPLETE": "complete_bash",
            "COMP_WORDS": "quercus mod",
            "COMP_CWORD": "1",
            "PATH": "/bin",
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.split() == ["models"]


def test_labelling_by_several_and_what_became_of_it(
    server: str, name: str, table_t: Path, contours_t: Path, tmp_path: Path
) -> None:
    assert (
        quercus(
            "models", "create", name, str(table_t), "--class", "class", "--budget", "6", server=server
        ).returncode
        == 0
    )
    assert quercus("push", name, str(table_t), "--label-file", str(contours_t), server=server).returncode == 0
    shown = quercus("policy", name, server=server).stdout
    assert re.search(r"answers to a query +1 *\n", shown)
    changed = quercus(
        "policy", name, "--answers", "2", "--tags", "a, b", "--per-hour", "6", "--json", server=server
    )
    policy = json.loads(changed.stdout)
    assert (policy["answers_per_query"], policy["tags"], policy["per_hour"]) == (2, ["a", "b"], 6)
    assert (
        json.loads(quercus("policy", name, "--per-hour", "0", "--json", server=server).stdout)["per_hour"]
        is None
    )
    for labeller in ("ann", "bob"):
        done = quercus(
            *("label", name, "--truth", str(table_t), "--labeller", labeller, "--stop-after", "1"),
            *("--reliability", "0.9", "--comment", "by the book", "--json"),
            server=server,
        )  # fmt: skip
        assert json.loads(done.stdout)["answered"] == 1, done.stderr
    found = json.loads(quercus("labellers", name, "--json", server=server).stdout)
    assert [(each["name"], each["answered"], each["agreement"]) for each in found] == [
        ("ann", 1, 1.0),
        ("bob", 1, 1.0),
    ]
    assert "agree" in quercus("labellers", name, server=server).stdout
    steps = [
        json.loads(line)
        for line in quercus("history", name, "1", "--json", server=server).stdout.splitlines()
    ]
    assert [step["kind"] for step in steps] == ["opened", "leased", "answered", "leased", "answered"]
    assert re.search(
        r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC  query 1  answered \(open\) by ann: wants more answers$",
        quercus("history", name, "1", server=server).stdout,
        re.MULTILINE,
    )
    few = tmp_path / "few.csv"
    few.write_text("id,class\nnobody,o\n")
    left = quercus(
        *("label", name, "--truth", str(few), "--id-column", "id", "--labeller", "eve", "--skip-unknown"),
        *("--idle-s", "1", "--json"),
        server=server,
    )  # fmt: skip
    assert json.loads(left.stdout)["skipped"] > 0, left.stderr
    wrong = quercus("label", name, "--truth", str(few), "--where", "X", server=server)
    assert wrong.returncode == 2
    assert "NAME=VALUE" in wrong.stderr
