"""Exports of annotation tools on the command line: stated once, also when they are pushed again."""

import json
from pathlib import Path

from support.command_line import quercus

from quercus.client import Client


def test_an_export_is_stated_once(server: str, name: str, table_t: Path, tmp_path: Path) -> None:
    done = quercus("models", "create", name, str(table_t), "--class", "class", server=server)
    assert done.returncode == 0, done.stderr
    assert quercus("push", name, str(table_t), server=server).returncode == 0
    result = [{"type": "choices", "from_name": "q", "value": {"choices": ["o"]}}]
    path = tmp_path / "project.json"
    annotations = [{"completed_by": "ann", "result": result}]
    path.write_text(json.dumps([{"id": 77, "data": {"row": "3"}, "annotations": annotations}]))
    arguments = ("push", name, str(path), "--from", "label-studio", "--item", "row")
    done = quercus(*arguments, server=server)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "stated 1 answer of 1 labeller on 1 row\n"
    assert "(1 already there)" in quercus(*arguments, server=server).stdout
    with Client(server) as client:
        (said,) = client.answers(name)
    assert (said.instance, said.labeller, said.label, said.kind) == ("3", "ann", "o", "stated")
    wrong = quercus("push", name, str(path), "--from", "labelbox", server=server)
    assert wrong.returncode == 2
    assert "must be one of argilla, doccano, label-studio, prodigy" in " ".join(
        wrong.stderr.replace("│", " ").split()
    )
