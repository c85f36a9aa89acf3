"""The process that helps to compile kernels is started where they may be missing, and only there."""

from pathlib import Path

import pytest

from quercus.server.growth import compiling_helper
from quercus.server.growth.kernel_note import note_all_compiled
from quercus.trees.precompile import kernel_cache


def test_the_note_is_found_where_numba_keeps_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = kernel_cache()
    assert folder is not None
    note_all_compiled()  # as it is: the tests have compiled them
    assert not compiling_helper.is_wanted()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert compiling_helper.is_wanted()
    (tmp_path / Path(folder).name).mkdir()
    (tmp_path / Path(folder).name / compiling_helper.NOTE).touch()
    assert not compiling_helper.is_wanted()


def test_without_a_chosen_folder_the_note_is_beside_the_sources_or_in_the_users_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = kernel_cache()
    assert folder is not None
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(compiling_helper, "NOTE", "a note that no other test writes")
    assert compiling_helper.is_wanted()
    (tmp_path / "numba" / Path(folder).name).mkdir(parents=True)
    (tmp_path / "numba" / Path(folder).name / compiling_helper.NOTE).touch()
    assert not compiling_helper.is_wanted()


def test_a_helper_ends_at_once_where_nothing_is_missing(capfd: pytest.CaptureFixture[str]) -> None:
    note_all_compiled()
    helper = compiling_helper.start_helper()
    assert helper.wait(60) == 0
    assert capfd.readouterr() == ("", "")
