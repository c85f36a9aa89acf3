"""Names that a model has never seen, and names beyond its bound, as a user meets them."""

import json
from pathlib import Path

from support.command_line import quercus

from quercus.client import Client

MACHINES = ["101", "102", "103", "104", "105"]


def write(path: Path, machines: list[str]) -> Path:
    rows = [f"{machine},{'ill' if machine < '103' else 'well'}" for machine in machines]
    path.write_text("machine,class\n" + "\n".join(rows) + "\n")
    return path


def create(server: str, name: str, path: Path, text: str) -> None:
    path.write_text(f'classes = ["ill", "well"]\nlearner = {{ name = "abc45" }}\n{text}')
    done = quercus("models", "create", name, str(path), server=server)
    assert done.returncode == 0, done.stderr


def test_classify_and_push_warn_of_names_never_seen(server: str, name: str, tmp_path: Path) -> None:
    old = write(tmp_path / "old.csv", MACHINES * 80)
    new = write(tmp_path / "new.csv", ["101", *(f"{machine}.5" for machine in MACHINES * 80)][:400])
    create(server, name, tmp_path / "m.toml", '[[attributes]]\nname = "machine"\nkind = "nominal"\n')
    done = quercus("push", name, str(old), "--labels", server=server)
    assert (done.returncode, done.stderr) == (0, "")  # first names
    with Client(server) as client:
        client.wait_grown(name)
    warning = "warning: 399 of 400 rows: `machine` has 5 names never seen, as 101.5\n"
    assert quercus("classify", name, str(new), server=server).stderr == warning
    assert quercus("classify", name, str(old), server=server).stderr == ""
    done = quercus(
        "push", name, str(new), "--id-prefix", "new-", "--batch-rows", "7", "--json", server=server
    )
    assert done.stderr == warning
    (unseen,) = json.loads(done.stdout)["unseen"]
    assert (unseen["attribute"], unseen["rows"], unseen["names"]) == ("machine", 399, 5)
    again = quercus("push", name, str(new), "--id-prefix", "new-", server=server)
    assert (again.returncode, again.stderr) == (0, "")


def test_a_bound_of_an_attribute_in_a_specification(server: str, name: str, tmp_path: Path) -> None:
    file = write(tmp_path / "rows.csv", MACHINES * 4)
    bound = '[[attributes]]\nname = "machine"\nkind = "nominal"\nmax_values = 3\n'
    create(server, name, tmp_path / "m.toml", bound)
    create(server, f"{name}-refusing", tmp_path / "n.toml", f'{bound}overflow = "refuse"\n')
    done = quercus("push", name, str(file), server=server)
    assert done.returncode == 0
    assert done.stderr == (
        "warning: 20 of 20 rows: `machine` has 5 names never seen, as 101; those of 8 rows are beyond what the model "
        "keeps, and count as (other names)\n"
    )
    with Client(server) as client:
        client.wait_grown(name)
    shown = quercus("models", "show", name, server=server).stdout
    assert "; 3 names, the most it may have; others count as (other names), so far in 8 rows" in " ".join(
        shown.split()
    )
    (attribute,) = json.loads(quercus("models", "show", name, "--json", server=server).stdout)[
        "specification"
    ]["attributes"]
    assert attribute == {"name": "machine", "values": ["101", "102", "103"], "max_values": 3}
    done = quercus("push", f"{name}-refusing", str(file), server=server)
    assert done.returncode == 1
    assert "'104', but the attribute has 3 values, the most it may" in " ".join(done.stderr.split())
    path = tmp_path / "bad.toml"
    for key, said in (
        ("max_values = 0", "must be a whole number in [1, 1000]"),
        ('overflow = "hash"', "must be one of bucket, refuse"),
    ):
        path.write_text(f'classes = ["a", "b"]\n[[attributes]]\nname = "x"\nvalues = ["p"]\n{key}\n')
        done = quercus("models", "create", f"{name}-bad", str(path), server=server)
        assert done.returncode == 1
        assert said in " ".join(done.stderr.split())
