"""A cache that holds every kernel is known as long as no source changes."""

import os
from pathlib import Path

import pytest

from quercus.server.growth import kernel_note
from quercus.server.growth.kernel_note import is_all_compiled, note_all_compiled


def test_a_full_cache_is_known_until_a_source_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    monkeypatch.setattr(kernel_note, "kernel_cache", lambda: str(cache))
    monkeypatch.setattr(kernel_note.trees, "__file__", str(tmp_path / "trees" / "__init__.py"))
    for package in ("belief", "trees"):
        (tmp_path / package / "deep").mkdir(parents=True)
        (tmp_path / package / "deep" / "kernel.py").write_text("import numba")
    assert not is_all_compiled()
    note_all_compiled()
    assert is_all_compiled()
    os.utime(tmp_path / "belief" / "deep" / "kernel.py", (1, 1))  # Numba compiles its kernels again
    assert not is_all_compiled()
    note_all_compiled()
    assert is_all_compiled()
    (tmp_path / "trees" / "more.py").write_text("")
    assert not is_all_compiled()
    monkeypatch.setattr(kernel_note, "kernel_cache", lambda: None)  # no folder may be written
    note_all_compiled()
    assert not is_all_compiled()
