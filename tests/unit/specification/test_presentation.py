"""Presentations and displays of rows: every bound, and URLs that no browser should load."""

from collections.abc import Callable

import pytest

from quercus.belief.errors import InvalidInput
from quercus.specification.display import LinkItem, MediaItem, SeriesItem, TextItem, check_items, media_type
from quercus.specification.presentation import (
    AttributeView,
    MediaTemplate,
    Presentation,
    SeriesView,
    check_url,
)

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


def curve(**position: float) -> Presentation:
    """Return a presentation with one curve of two attributes."""
    return Presentation(series=(SeriesView("t", ("a", "b"), **position),))


def test_a_curve_with_the_largest_positions_can_be_drawn() -> None:
    curve(start=-1e100, step=1e100).check_drawable()


@pytest.mark.parametrize(
    ("make", "field", "said"),
    [
        (lambda: AttributeView("a", title="t" * 201), "title", "at most 200"),
        (lambda: AttributeView("a", description="t" * 2001), "description", "at most 2,000"),
        (lambda: AttributeView("a", format="{0.__class__}"), "format", "must be like .2f"),
        (lambda: SeriesView("", ("a", "b")), "title", "is empty"),
        (lambda: SeriesView("t", ("a",)), "attributes", "must be at least 2"),
        (lambda: SeriesView("t", ("a", "a")), "attributes[1]", "distinct"),
        (lambda: SeriesView("t", ("a", "b"), step=0.0), "step", "must be a positive and finite number"),
        (lambda: SeriesView("t", ("a", "b"), step="1"), "step", "is '1', must be a positive"),
        (lambda: SeriesView("t", ("a", "b"), start=float("nan")), "start", "must be a finite number"),
        (lambda: SeriesView("t", ("a", "b"), start=10**400), "start", "must be a finite number"),
        (lambda: SeriesView("t", "ab"), "attributes", "must be a list of names"),
        (lambda: SeriesView("t", None), "attributes", "must be a list of names"),
        (lambda: SeriesView("t", (1, 2)), "attributes[0]", "must be text"),
        (lambda: AttributeView("a", format=2), "format", "must be text"),
        (lambda: MediaTemplate("image", "t", 5), "url", "must be text"),
        (lambda: MediaTemplate("svg", "t", "https://a.example/"), "kind", "image, audio, link"),
        (lambda: MediaTemplate("image", "t", "https://{id}.example/"), "url", "must not depend on the row"),
        (lambda: Presentation(series=(SeriesView("t", ("a", "b")),) * 17), "series", "at most 16"),
        (lambda: Presentation((AttributeView("a"), AttributeView("a"))), "attributes[1]", "distinct"),
        (lambda: curve(start=-2e307).check_drawable(), "series[0].start", "leads to 2e+307, must lead to"),
        (lambda: curve(start=9e99, step=9e99).check_drawable(), "series[0].step", "leads to 1.8e+100, must"),
        (lambda: curve(step=1e308).check_drawable(), "series[0].step", "in [-1e100, 1e100]"),
        (lambda: Presentation(withheld=("score",)), "withheld[0]", "reason, guess, belief, neighbours"),
        (lambda: Presentation(withheld=("reason",) * 2), "withheld[1]", "distinct"),
        (lambda: TextItem("t", "x" * 10_001), "text", "at most 10,000"),
        (lambda: TextItem(" ", "x"), "title", "is empty"),
        (lambda: SeriesItem("t", ()), "values", "must be 1 to 10,000"),
        (lambda: SeriesItem("t", (float("inf"),)), "values", "infinite"),
        (lambda: MediaItem("image", "t"), "image", "either a url or data"),
        (lambda: MediaItem("image", "t", "https://a.example/x", PNG), "image", "either a url or data"),
        (lambda: MediaItem("image", "t", data=b"<svg onload=alert(1)>"), "data", "PNG, JPEG, WebP or GIF"),
        (lambda: MediaItem("audio", "t", data=PNG), "data", "WAV, OGG, FLAC or MP3"),
        (lambda: LinkItem("t", "javascript:alert(1)"), "url", "must begin with https://"),
        (lambda: check_items([TextItem("t", "x")] * 17), "items", "at most 16"),
        (lambda: check_items([SeriesItem("t", (1.0, -1e101))]), "items[0].values", "leads to 1e+101, must"),
        (lambda: check_items([SeriesItem("t", (1.0,), start=2e307)]), "items[0].start", "in [-1e100, 1e100]"),
        (lambda: check_items([SeriesItem("t", (1.0,) * 3, step=9e99)]), "items[0].step", "leads to 1.8e+100"),
    ],
)
def test_what_is_wrong_is_named_with_its_bound(make: Callable[[], object], field: str, said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        make()
    assert caught.value.field == field
    assert said in caught.value.reason


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1234567.0, "1234567"),
        (20231101.5, "20231101.5"),
        (-3.0, "-3"),
        (0.1 + 0.2, "0.3"),
        (1e300, "1e%2B300"),
        ("a b", "a%20b"),
    ],
)
def test_a_url_has_all_digits_of_a_number(value: float | str, text: str) -> None:
    """It had 1.23457e+06 of 1234567: the picture of no row, or of another one."""
    template = MediaTemplate("image", "frame", "https://cam.example/{frame}.jpg")
    assert template.fill_url("a", {"frame": value}) == f"https://cam.example/{text}.jpg"


@pytest.mark.parametrize(
    "url",
    [
        *(
            "http://cam.example/x.jpg",
            "http://127.0.0.1.example/x",
            "https://user@cam.example/",
            "https:///x",
        ),
        *("https://cam.example/\u202egpj.exe", "https://cam.example/ x", 'https://cam.example/"onerror="x'),
        *("data:image/svg+xml,<svg/>", "file:///etc/passwd", "//cam.example/x", "https://[::1"),
        "https://a.example:99999999/",
    ],
)
def test_urls_that_no_browser_should_load(url: str) -> None:
    with pytest.raises(InvalidInput):
        check_url(url, "url")


def test_a_template_is_filled_and_its_values_stay_values() -> None:
    template = MediaTemplate("image", "camera", "https://cam.example/{id}/{line}.jpg?t={t}")
    assert template.place_names == ("id", "line", "t")
    filled = template.fill_url("../../x?y=1#z", {"line": "a/b&c", "t": 1.5})
    assert filled == "https://cam.example/..%2F..%2Fx%3Fy%3D1%23z/a%2Fb%26c.jpg?t=1.5"
    assert template.fill_url("x", {"line": None, "t": 1.0}) is None
    check_url("http://[::1]:8000/x", "url")


def test_names_that_the_model_does_not_have() -> None:
    names, numeric = {"a", "n", "m"}, {"n", "m"}
    for look, field in (
        (Presentation((AttributeView("b"),)), "attributes[0].attribute"),
        (Presentation((AttributeView("a", format=".2f"),)), "attributes[0].format"),
        (Presentation(series=(SeriesView("t", ("n", "a")),)), "series[0].attributes[1]"),
        (Presentation(media=(MediaTemplate("link", "t", "https://x.example/{b}"),)), "media[0].url"),
    ):
        with pytest.raises(InvalidInput) as caught:
            look.check_names(names, numeric)
        assert caught.value.field == field


def test_files_are_known_by_their_first_bytes() -> None:
    assert media_type(PNG) == "image/png"
    assert media_type(b"\xff\xfb\x90\x00") == "audio/mpeg"
    assert media_type(b"RIFF\0\0\0\0WEBPVP8 ") == "image/webp"
    assert media_type(b"RIFF\0\0\0\0WAVEfmt ") == "audio/wav"
    assert {media_type(data) for data in (b"", b"RIFF", b"<?xml", b"\xff\xff\xff\xff", b"%PDF-1.7")} == {None}
