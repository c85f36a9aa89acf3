"""The page of parameters says what the package says."""

from support.parameter_page import PAGE, page


def test_the_page_is_made_from_the_declarations() -> None:
    assert PAGE.read_text() == page(), "write it anew: python tests/support/parameter_page.py"
