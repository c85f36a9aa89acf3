"""Refusals are told in the user's words: columns, lines and options, and no path of the protocol."""

import csv
import re
import sys
from pathlib import Path

import pytest
from integration.client.serving import Serving

from quercus.cli import main
from quercus.client import Client, Model, NotFound, Numeric, Specification

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
        (*CREATE, "fine.csv", "--class", "class", "--algorithm", "guess"),
        "algorithm: is 'guess', must be one of",
    ),
    (
        (*CREATE, "fine.csv", "--class", "class", "--algorithm", "forest", "-p", "trees=0"),
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
        "class 1: is 'guess', which is no class; the classes are o, s",
    ),
    (("answers", "MODEL", "--instance", LONG), "instance 1: has 300 characters"),
    (("tree", "MODEL", "--member", "9"), "member: is 9, must lie in"),
    (
        ("induce", "fine.csv", "--class", "class", "--algorithm", "forest", "-p", "trees=0"),
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


def test_wrong_rows_of_a_file_do_not_keep_the_others_out(
    serving: Serving,
    client: Client,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client.create_model(name, Specification([Numeric("x")], ["down", "up"]))
    monkeypatch.setenv("QUERCUS_SERVER", serving.address)
    file, kept = str(CASES / "rows_refused" / "in.csv"), tmp_path / "rejected.csv"
    flags = ["--id-column", "file", "--labels", "--class", "kind", "--rejected", str(kept)]
    monkeypatch.setattr(sys, "argv", ["quercus", "push", name, file, *flags])
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 1
    assert [each.id for each in client.instances(name)] == ["images/2026/01/a.jpg", "images/2026/01/d.jpg"]
    with kept.open(newline="") as stream:
        rows = {each["rejected_line"]: each for each in csv.DictReader(stream)}
    assert {line: (each["rejected_id"], each["x"]) for line, each in rows.items()} == {
        "3": ("s3://bucket/b.png", "inf"),
        "4": ("\U0001f469\u200d\U0001f52c", "two"),
        "5": ("images/2026/01/c.jpg", "2.5"),
        "6": ("images/2026/01/e.jpg", "4.5"),
        "7": ("images/2026/01/f.jpg", "5.5"),
    }
    assert "'kind' is the first that is absent" in rows["6"]["rejected_reason"]
    assert "'right' is too much" in rows["7"]["rejected_reason"]
    assert "'sideways' is not a class" in rows["5"]["rejected_reason"]
