"""A buffer in a file: what a crash cuts off, and what a failing disk spoils."""

import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from quercus.client import InvalidArgument
from quercus.client.buffers import File
from quercus.client.pushing import Batch
from quercus.v1 import instance_pb2, model_pb2

SPECIFICATION = model_pb2.Specification(classes=["o", "s"])
COUNT = 5
FILLING = "x" * 3000  # two pages a batch


def batch(number: int) -> Batch:
    request = instance_pb2.PushInstancesRequest(
        model="models/m", ids=[f"{number}", f"again-{number}{FILLING}"]
    )
    return Batch(request, rows=2)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A buffer with five batches."""
    file = File(tmp_path / "rows.buffer", "m")
    file.set_specification(SPECIFICATION)
    file.add_batches([batch(number) for number in range(COUNT)])
    file.close()
    return tmp_path / "rows.buffer"


def numbers(path: Path) -> list[int]:
    file = File(path, "m")
    found = [int(each.request.ids[0]) for each in file.batches]
    assert all(each.rows == 2 for each in file.batches)
    file.close()
    return found


def test_a_buffer_is_one_file_for_its_user_alone(path: Path) -> None:
    assert numbers(path) == list(range(COUNT))
    assert list(path.parent.iterdir()) == [path]
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_is_acknowledged_is_gone_and_what_comes_later_stands_behind(path: Path) -> None:
    file = File(path, "m")
    file.drop_first(2)
    file.close()
    file = File(path, "m")
    file.add_batches([batch(7)])
    file.drop_first(1)
    file.close()
    assert numbers(path) == [3, 4, 7]
    file = File(path, "m")
    file.drop_first(3)
    file.close()
    assert numbers(path) == []


def test_closing_again_does_not_touch_the_file_of_a_successor(path: Path) -> None:
    file = File(path, "m")
    file.drop_first(COUNT)
    file.close()
    successor = File(path, "m")
    successor.set_specification(SPECIFICATION)
    successor.add_batches([batch(7)])
    file.close()
    successor.close()
    assert numbers(path) == [7]


def test_rows_of_other_columns_do_not_join_those_that_wait(path: Path) -> None:
    file = File(path, "m")
    other = model_pb2.Specification(classes=["s", "o"])
    with pytest.raises(
        InvalidArgument, match="specification: has other attributes or classes than the 5 batches"
    ):
        file.set_specification(other)
    file.drop_first(COUNT)
    file.set_specification(other, uid="u2")
    file.add_batches([batch(9)])
    file.close()
    file = File(path, "m")
    assert (file.specification, file.uid) == (other, "u2")
    file.close()


def test_rows_that_wait_fit_a_model_that_has_learned_more_values(tmp_path: Path) -> None:
    def specification(*values: str, name: str = "X") -> model_pb2.Specification:
        attribute = model_pb2.Attribute(name=name, nominal=model_pb2.NominalAttribute(values=values))
        return model_pb2.Specification(attributes=[attribute], classes=["o", "s"])

    file = File(tmp_path / "rows.buffer", "m")
    file.set_specification(specification("a", "b"))
    file.add_batches([batch(1)])
    for other in (specification("a"), specification("b", "a", "c"), specification("a", "b", name="Y")):
        with pytest.raises(InvalidArgument, match="other attributes or classes"):
            file.set_specification(other)
    file.set_specification(specification("a", "b", "c"), uid="u1")
    file.add_batches([batch(2)])
    file.close()
    file = File(tmp_path / "rows.buffer", "m")
    assert file.uid == "u1"
    file.close()


def test_a_passing_error_of_the_disk_is_not_damage(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(sqlite3.Connection):
        def execute(self, sql: str, *given: object) -> sqlite3.Cursor:
            if "SELECT number" in sql:
                error = sqlite3.OperationalError("disk I/O error")
                error.sqlite_errorcode = sqlite3.SQLITE_IOERR_READ
                raise error
            return super().execute(sql, *given)  # type: ignore[arg-type]

    connect = sqlite3.connect
    with monkeypatch.context() as patch:
        patch.setattr(
            "quercus.client.buffers.sqlite3.connect", lambda *a, **k: connect(*a, **k, factory=Failing)
        )
        with pytest.raises(
            InvalidArgument, match=r"cannot read .*rows.buffer, which is left unchanged: disk I/O"
        ):
            File(path, "m")
    assert numbers(path) == list(range(COUNT))


def test_the_space_of_acknowledged_rows_is_given_back(path: Path) -> None:
    file = File(path, "m")
    file.set_specification(SPECIFICATION)
    for _ in range(200):
        file.add_batches([batch(number) for number in range(COUNT)])
    full = path.stat().st_size
    file.drop_first(len(file.batches))
    file.add_batches([batch(8)])
    file.close()
    assert path.stat().st_size < full / 20
    assert numbers(path) == [8]


def test_what_a_crash_cuts_off_is_left_out(path: Path, tmp_path: Path) -> None:
    """Wherever the log of a put ends, the put is in as a whole or not at all."""
    file = File(path, "m")
    file.add_batches([batch(7), batch(8)])
    crash = tmp_path / "crash"
    log = path.with_name(f"{path.name}-wal").read_bytes()
    data = path.read_bytes()
    file.close()
    seen = set()
    for length in range(0, len(log) + 1, 499):
        shutil.rmtree(crash, ignore_errors=True)
        crash.mkdir()
        (crash / "rows.buffer").write_bytes(data)
        (crash / "rows.buffer-wal").write_bytes(log[:length])
        found = numbers(crash / "rows.buffer")
        assert found in ([*range(COUNT)], [*range(COUNT), 7, 8])
        seen.add(len(found))
    assert COUNT in seen


@pytest.mark.parametrize("number", range(1, COUNT + 1))
def test_a_batch_with_a_wrong_bit_is_left_out_and_reported(path: Path, number: int) -> None:
    spoilt = re.sub(
        rb"(again-%d.{13})x" % (number - 1), rb"\1y", path.read_bytes()
    )  # also where it stood before
    path.write_bytes(spoilt)
    with pytest.raises(InvalidArgument, match=r"was damaged: 4 batches with 8 rows are intact"):
        File(path, "m")
    (kept,) = path.parent.glob("rows.buffer.damaged-*")
    assert kept.read_bytes() == spoilt
    assert kept.stat().st_mode & 0o777 == 0o600
    kept.unlink()
    assert numbers(path) == [n for n in range(COUNT) if n != number - 1]
    assert list(path.parent.iterdir()) == [path]


def test_whatever_page_is_spoilt_the_rest_stays_or_the_file_is_left_as_it_is(path: Path) -> None:
    data = path.read_bytes()
    size = 4096
    for start in range(0, len(data), size):
        spoilt = data[:start] + bytes([0xA5]) * size + data[start + size :]
        path.write_bytes(spoilt)
        says = "not a buffer of quercus" if start == 0 else r"was damaged: \d batches"
        with pytest.raises(InvalidArgument, match=says):
            File(path, "m")
        kept = list(path.parent.glob("rows.buffer.damaged-*"))
        assert [each.read_bytes() for each in (kept or [path])] == [spoilt]
        for each in kept:
            each.unlink()
            assert set(numbers(path)) <= set(range(COUNT))
            path.unlink(missing_ok=True)


def test_a_truncated_file_is_reported_and_unchanged(path: Path) -> None:
    data = path.read_bytes()
    for length in range(4096, len(data), 4096):
        path.write_bytes(data[:length])
        with pytest.raises(InvalidArgument, match=r"is damaged, and is left unchanged .*\.recover"):
            File(path, "m")
        assert path.read_bytes() == data[:length]


def test_where_the_specification_is_spoilt_the_batches_stay(path: Path) -> None:
    base = sqlite3.connect(path)
    base.execute("UPDATE messages SET checksum = 1 WHERE number = 0")
    base.commit()
    base.close()
    with pytest.raises(InvalidArgument, match=r"was damaged: 5 batches with 10 rows are intact"):
        File(path, "m")
    file = File(path, "m")
    assert (len(file.batches), file.specification) == (COUNT, None)
    file.set_specification(SPECIFICATION)
    file.add_batches([batch(7)])
    file.close()
    file = File(path, "m")
    assert (len(file.batches), file.specification) == (COUNT + 1, SPECIFICATION)
    file.close()


def test_another_file_and_another_database_are_left_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "a.file"
    file.write_bytes(b"notes, and no buffer\n\x05\x00\x00\x00 and rows")
    with pytest.raises(InvalidArgument, match=r"a\.file is not a buffer of quercus"):
        File(file, "m")
    assert file.read_bytes() == b"notes, and no buffer\n\x05\x00\x00\x00 and rows"
    other = tmp_path / "other.db"
    base = sqlite3.connect(other)
    base.execute("CREATE TABLE messages (number INTEGER)")
    base.close()
    before = other.read_bytes()
    with pytest.raises(InvalidArgument, match=r"other\.db is not a buffer of quercus"):
        File(other, "m")
    assert other.read_bytes() == before


LIMITED = """
import resource, signal, sys
from pathlib import Path
from quercus.client import BufferFull
from unit.client.test_buffers import File, SPECIFICATION, batch
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))  # what a full disk does
file = File(Path(sys.argv[1]), "m")
file.set_specification(SPECIFICATION)
try:
    for number in range(1000):
        file.add_batches([batch(number), batch(number)])
except BufferFull as error:
    print(len(file.batches), error)
file.drop_first(2)
file.close()
"""


def test_a_full_disk_takes_all_of_a_put_or_nothing(tmp_path: Path) -> None:
    path = tmp_path / "rows.buffer"
    environment = {
        **os.environ,
        "PYTHONPATH": f"{os.environ.get('PYTHONPATH', '')}:{Path(__file__).parents[2]}",
    }
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path)],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    count, _, says = done.stdout.partition(" ")
    assert says.startswith(f"path: cannot write to {path}: ")
    assert int(count) > 10
    assert numbers(path)[-2:] == [int(count) // 2 - 1] * 2


HOLDING = """
import sys
from pathlib import Path
from quercus.client.buffers import File
file = File(Path(sys.argv[1]), "m")
print("held", flush=True)
sys.stdin.read()
"""


def test_another_process_is_kept_out_until_the_first_one_is_gone(path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(InvalidArgument, match="is the buffer of another process"):
        File(path, "m")
    os.kill(holder.pid, signal.SIGKILL)
    holder.communicate(timeout=60)
    assert numbers(path) == list(range(COUNT))
