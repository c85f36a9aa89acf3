"""A buffer in a file: what a crash cuts off, and what a failing disk spoils."""

from pathlib import Path

import pytest

from quercus.client import InvalidArgument
from quercus.client.buffers import HEAD, MAGIC, File
from quercus.client.pushing import Batch
from quercus.proto.v1 import instance_pb2, model_pb2

SPECIFICATION = model_pb2.Specification(classes=["o", "s"])
COUNT = 5


def batch(number: int) -> Batch:
    request = instance_pb2.PushInstancesRequest(model="models/m", ids=[f"{number}", f"again-{number}"])
    return Batch(request, rows=2)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A buffer with five batches."""
    file = File(tmp_path / "rows.buffer", "m")
    file.begin(SPECIFICATION)
    file.add([batch(number) for number in range(COUNT)])
    file.close()
    return tmp_path / "rows.buffer"


def numbers(path: Path) -> list[int]:
    file = File(path, "m")
    found = [int(each.request.ids[0]) for each in file.batches]
    assert all(each.rows == 2 for each in file.batches)
    file.close()
    return found


def places(data: bytes) -> list[int]:
    """Where each batch begins, and the end."""
    at = [len(MAGIC) + HEAD.size + HEAD.unpack_from(data, len(MAGIC))[0]]
    while at[-1] < len(data):
        at.append(at[-1] + HEAD.size + HEAD.unpack_from(data, at[-1])[0])
    return at


def test_what_is_cut_off_is_left_out(path: Path) -> None:
    data = path.read_bytes()
    start, *ends = places(data)
    for length in range(start, len(data)):
        path.write_bytes(data[:length])
        assert numbers(path) == list(range(sum(end <= length for end in ends)))
        path.write_bytes(data[:length] + bytes(100))  # grown, and never written
        assert numbers(path) == list(range(sum(end <= length for end in ends)))
    assert list(path.parent.iterdir()) == [path]


def test_what_is_whole_behind_damage_stays(path: Path) -> None:
    """Whatever byte of a batch is spoilt, its length and checksum too, only that batch is lost, and it is said."""
    data = path.read_bytes()
    at = places(data)
    for place in range(at[0], at[-2]):
        spoilt = bytearray(data)
        spoilt[place] ^= 0xFF
        path.write_bytes(spoilt)
        hit = sum(begin <= place for begin in at) - 1
        with pytest.raises(InvalidArgument, match=r"was damaged: 4 batches with 8 rows are whole"):
            File(path, "m")
        (kept,) = path.parent.glob("rows.buffer.damaged-*")
        assert kept.read_bytes() == spoilt
        assert kept.stat().st_mode & 0o777 == 0o600
        kept.unlink()
        assert numbers(path) == [number for number in range(COUNT) if number != hit]


def test_where_the_specification_is_spoilt_the_batches_stay(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(MAGIC) + HEAD.size + 2] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(InvalidArgument, match=r"was damaged: 5 batches with 10 rows are whole"):
        File(path, "m")
    file = File(path, "m")
    assert (len(file.batches), file.specification) == (COUNT, None)
    file.close()


def test_a_buffer_is_mended_on_the_disk_before_it_is_said(path: Path) -> None:
    """Batches that are added after the damage was told stand behind those that were whole."""
    data = bytearray(path.read_bytes())
    data[places(data)[1] + HEAD.size] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(InvalidArgument, match="Open it again"):
        File(path, "m")
    file = File(path, "m")
    file.begin(SPECIFICATION)
    file.add([batch(7)])
    file.close()
    assert numbers(path) == [0, 2, 3, 4, 7]
