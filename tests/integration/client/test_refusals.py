"""Refusals are told in the user's words: columns, lines and options, and no path of the protocol."""

import csv
import re
import sys
from pathlib import Path

import pytest
from integration.client.serving import Serving

from quercus.cli import main
from quercus.client import Client, Model, Nominal, NotFound, Numeric, Specification

CASES = Path(__file__).parents[2] / "cases"
WIRE = re.compile(
    r"specification[.\[]|(attributes|classes|values|rows|ids|labels|statements|instances)\[|nominal\.|_id\b"
)
LONG = "z" * 300
FILES = {
    "class.csv": 'a,class\n1,"x\ny"\n2,z\n',
    "header.csv": '"a\tb",class\n1,x\n2,z\n',
    "long.csv": f"{LONG},class\n1,x\n2,z\n",
    "twice.toml": 'classes = ["p", "q"]\n[[attributes]]\nname = "f"\n[[attributes]]\nname = "f"\n',
    "classes.toml": 'classes = ["p", "q\\nr"]\n[[attributes]]\nname = "f"\n',
    "same.toml": 'classes = ["p", "p"]\n[[attributes]]\nname = "f"\n',
    "who.csv": 'item,labeller,answer\n0,ann,o\n0,"b\nb",s\n',
    "what.csv": f"item,labeller,answer,comment\n0,ann,o,fine\n0,bob,s,{LONG * 10}\n",
    "item.csv": 'item,labeller,answer\n0,ann,o\n"a\nb",ann,o\n',
    "id.csv": 'X,y,part\na,1,p\nb,2,"p\nq"\n',
    "fine.csv": "a,class\n1,x\n2,z\n",
}
CREATE = ("models", "create", "refused-model")
REFUSALS = [
    (
        (*CREATE, str(CASES / "csv_line_end_in_name" / "in.csv"), "--class", "class", "--ignore", "id"),
        (
            "line 3, column 3 (customer_says): 'too\\nslow' has the line end U+000A at position 4; leave the column "
            "out with --ignore customer_says, or show it to labellers with --beside text:customer_says (quercus push)"
        ),
    ),
    (
        (*CREATE, "class.csv", "--class", "class"),
        "class.csv: line 2, column 2 (class): a name has the line end",
    ),
    (
        (*CREATE, "header.csv", "--class", "class"),
        "header.csv: column 1 ('a\\tb'): the name has the tab U+0009",
    ),
    (
        (*CREATE, "long.csv", "--class", "class"),
        "has 300 characters, at most 100 are allowed",
    ),
    ((*CREATE, "twice.toml"), "attribute 'f': is 'f', the same as number 1; must be distinct"),
    ((*CREATE, "classes.toml"), "class 'q\\nr': has the line end U+000A"),
    ((*CREATE, "same.toml"), "class 'p': is 'p', the same as number 1"),
    (
        (*CREATE, "fine.csv", "--class", "class", "--strategy", "guess"),
        "strategy: is 'guess', must be one of",
    ),
    (
        (*CREATE, "fine.csv", "--class", "class", "--learner", "guess"),
        "learner: is 'guess', must be one of",
    ),
    (
        (*CREATE, "fine.csv", "--class", "class", "--learner", "forest", "-p", "trees=0"),
        "trees: is 0, must be",
    ),
    (
        ("models", "create", "No Name", "fine.csv", "--class", "class"),
        "the model's name: 'No Name' is not 1 to 63",
    ),
    (
        ("push", "MODEL", "who.csv", "--labels"),
        "who.csv: line 3: labeller is 'b\\nb', must be 1 to 100 printable",
    ),
    (("push", "MODEL", "what.csv", "--labels"), "what.csv: line 3: comment has 3000 characters"),
    (("push", "MODEL", "item.csv", "--labels"), "item.csv: line 3: id has the line end"),
    (
        ("classify", "MODEL", "id.csv", "--id-column", "part"),
        "id.csv: line 3, column 3 (part): the id has the line",
    ),
    (
        ("answers", "MODEL", "--likeliest", "guess"),
        "class 1: is 'guess', which is not a class; the classes are o, s",
    ),
    (("answers", "MODEL", "--instance", LONG), "instance 1: has 300 characters"),
    (("tree", "MODEL", "--member", "9"), "member: is 9, must lie in"),
    (
        ("induce", "fine.csv", "--class", "class", "--learner", "forest", "-p", "trees=0"),
        "trees: is 0, must be",
    ),
]


@pytest.mark.parametrize(("arguments", "words"), REFUSALS, ids=[each[1][:40] for each in REFUSALS])
def test_a_refusal_names_what_the_user_wrote(
    serving: Serving,
    client: Client,
    model: Model,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    words: str,
) -> None:
    if "MODEL" in arguments:
        client.push(model.name, [["a", 0.5]], ["o"])
        client.wait_grown(model.name)
    for name in set(arguments) & FILES.keys():
        (tmp_path / name).write_text(FILES[name])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QUERCUS_SERVER", serving.address)
    monkeypatch.setattr(sys, "argv", ["quercus", *(model.name if a == "MODEL" else a for a in arguments)])
    with pytest.raises(SystemExit) as ended:
        main.main()
    said = capsys.readouterr().err
    assert ended.value.code == 1, said
    assert words in said
    assert not WIRE.search(said), said
    with pytest.raises(NotFound):
        client.get_model("refused-model")


def run(monkeypatch: pytest.MonkeyPatch, serving: Serving, *arguments: str) -> int | str | None:
    monkeypatch.setenv("QUERCUS_SERVER", serving.address)
    monkeypatch.setattr(sys, "argv", ["quercus", *arguments])
    with pytest.raises(SystemExit) as ended:
        main.main()
    return ended.value.code


def read_rejected(path: Path) -> dict[str, dict[str, str]]:
    """The refused rows by their lines."""
    with path.open(newline="") as stream:
        return {each["rejected_line"]: each for each in csv.DictReader(stream)}


def test_wrong_rows_of_a_file_do_not_keep_the_others_out(
    serving: Serving,
    client: Client,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    client.create_model(name, Specification([Numeric("x")], ["down", "up"]))
    file, kept = str(CASES / "rows_refused" / "in.csv"), tmp_path / "rejected.csv"
    flags = ["--id-column", "file", "--labels", "--class", "kind", "--rejected", str(kept)]
    assert run(monkeypatch, serving, "push", name, file, *flags) == 1
    assert "--id-column rejected_id --labels --class kind\n" in capsys.readouterr().err
    assert [each.id for each in client.instances(name)] == ["images/2026/01/a.jpg", "images/2026/01/d.jpg"]
    rows = read_rejected(kept)
    assert {line: (each["rejected_id"], each["x"]) for line, each in rows.items()} == {
        "3": ("s3://bucket/b.png", "inf"),
        "4": ("\U0001f469\u200d\U0001f52c", "two"),
        "5": ("images/2026/01/c.jpg", "2.5"),
        "6": ("images/2026/01/e.jpg", "4.5"),
        "7": ("images/2026/01/f.jpg", "5.5"),
        "8": ("images/2026/01/g.jpg", "6.5mm"),
    }
    assert "'kind' is the first that is absent" in rows["6"]["rejected_reason"]
    assert "'right' is one too many" in rows["7"]["rejected_reason"]
    assert "'sideways' is not a class" in rows["5"]["rejected_reason"]
    assert "malformed CSV" in rows["8"]["rejected_reason"]


def test_wrong_rows_of_an_arff_file_do_not_keep_the_others_out(
    serving: Serving,
    client: Client,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client.create_model(name, Specification([Numeric("x")], ["down", "up"]))
    file, kept = str(CASES / "rows_refused_arff" / "in.arff"), tmp_path / "rejected.csv"
    flags = ["--id-column", "file", "--labels", "--rejected", str(kept)]
    assert run(monkeypatch, serving, "push", name, file, *flags) == 1
    assert [each.id for each in client.instances(name)] == ["images/2026/01/a.jpg", "images/2026/01/j.jpg"]
    rows = read_rejected(kept)
    assert {line: (each["rejected_id"], each["x"], each["kind"]) for line, each in rows.items()} == {
        "7": ("b.jpg", "2.5", ""),
        "8": ("c.jpg", "3.5", "up"),
        "9": ("d.jpg", "4.5", "sideways"),
        "10": ("e.jpg", "", ""),
        "11": ("", "", ""),
        "12": ("g.jpg", "0", "up"),
        "13": ("h.jpg", "two", "down"),
        "14": ("i.jpg", "6.5", "down"),
    }
    for line, words in {
        "7": "the row has 2 values, 3 are declared: 'kind' is absent",
        "8": "more than the 3 declared values",
        "9": "kind: 'sideways' is not one of the declared values",
        "10": "expected a value, found ','",
        "11": "the quote ' is not closed",
        "12": "'9' is not an attribute number",
        "13": "x: 'two' is not a finite number",
        "14": "the weight 'x' is not a number",
    }.items():
        assert words in rows[line]["rejected_reason"]


def test_wrong_labels_of_a_label_file_are_refused_with_their_rows(
    serving: Serving,
    client: Client,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client.create_model(name, Specification([Numeric("x")], ["down", "up"]))
    file, labels, kept = (tmp_path / each for each in ("x.csv", "labels.csv", "rejected.csv"))
    file.write_text("x\n1\n2\n3\n")
    labels.write_text("down,up\n1,0\n1\n0,1\n")
    flags = ["--label-file", str(labels), "--rejected", str(kept)]
    assert run(monkeypatch, serving, "push", name, str(file), *flags) == 1
    assert [each.id for each in client.instances(name)] == ["0", "2"]
    ((line, row),) = read_rejected(kept).items()
    assert (line, row["rejected_id"], row["x"]) == ("3", "1", "2")
    assert "labels.csv: line 3, column 2: the row has 1 cell" in row["rejected_reason"]


def test_wrong_rows_of_a_file_to_classify_do_not_keep_the_others_out(
    serving: Serving,
    client: Client,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Also those that only the server refuses: here rows without a value that the attribute must have."""
    attributes = [Numeric("x"), Nominal("of", ["p", "q"], missing="reject")]
    client.create_model(name, Specification(attributes, ["down", "up"]))
    client.push(name, [[1.0, "p"]], ["up"])
    client.wait_grown(name)
    file, found, kept = (tmp_path / each for each in ("x.csv", "found.csv", "rejected.csv"))
    file.write_text(
        "id,of,x,kind\na,p,1,up\nb,p\nc,?,1,up\nd,q,two,up\ne,q,2,flat\nf,q,3,up\n,q,4,up\ng,,5,up\n"
    )
    flags = ["--id-column", "id", "--class", "kind", "-o", str(found)]
    assert run(monkeypatch, serving, "classify", name, str(file), *flags) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "x.csv: line 3, column 3: the row has 2 cells" in said
    assert "--rejected FILE" in said
    assert not found.exists()
    assert run(monkeypatch, serving, "classify", name, str(file), *flags, "--rejected", str(kept)) == 1
    said = capsys.readouterr().err
    assert f"6 rows were refused: see {kept} for" in said
    assert "(2 of 2)" in said
    with found.open(newline="") as stream:
        assert [(each["id"], each["row"]) for each in csv.DictReader(stream)] == [("a", "0"), ("f", "5")]
    rows = read_rejected(kept)
    assert {line: each["id"] for line, each in rows.items()} == {
        "3": "b", "4": "c", "5": "d", "6": "e", "8": "", "9": "g",
    }  # fmt: skip
    assert all(each["rejected_id"] == each["id"] for each in rows.values())
    assert rows["4"]["rejected_reason"].startswith("of: ")
    assert rows["5"]["rejected_reason"].startswith("x: 'two' is not a finite number")
    file.write_text("id,of,x\na,p,1\n")
    assert run(monkeypatch, serving, "classify", name, str(file), "--rejected", str(kept)) == 0
    assert not kept.exists()
