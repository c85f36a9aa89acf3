"""Cells of files: what is written is read again, whatever signs a name has."""

from hypothesis import given
from hypothesis import strategies as st

from quercus.files.cells import set_in
from quercus.specification.values import Spellings
from quercus.specification.written_cells import name_cell, set_cell

NAMES = st.text("ab|\\", min_size=1, max_size=4)


@given(st.sets(NAMES, min_size=1, max_size=5), st.data())
def test_names_and_sets_are_read_as_they_were_written(values: set[str], data: st.DataObject) -> None:
    spellings = Spellings(sorted(values))
    chosen = data.draw(st.sets(st.sampled_from(sorted(values)), min_size=1))
    written: dict[str, str | frozenset[str]] = {name_cell(name): name for name in chosen}
    if len(chosen) > 1:
        written[set_cell(chosen)] = frozenset(chosen)
    for cell, meant in written.items():  # what is a value as it stands is that value
        assert set_in(cell, spellings) == (cell if cell in values else meant)
