"""Items and one's own answers in a browser, and the way from a file without labels to the first label."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from browser.conftest import CLASSES, glance
from playwright.sync_api import Page, expect

from quercus.client import Client, RowFilter

pytestmark = pytest.mark.browser
Visit = Callable[..., Page]
UNLABELLED = "length,colour,note\n" + "\n".join(
    f"{k / 4},{'rb'[k % 2]},the wing of moth {k} has a spot" for k in range(40)
)


def test_rows_are_found_labelled_together_and_the_labels_taken_back(
    visit: Visit, client: Client, wine: str
) -> None:
    """Without a script: each step is a form or a link."""
    page = visit(f"/m/{wine}/items", java_script_enabled=False)
    page.get_by_label("Search").fill("bottle-1")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_role("status")).to_have_text("11 rows of this filter")
    page.locator("select[name=of]").select_option("all")
    page.locator("select[name=label]").select_option(CLASSES[1])
    page.get_by_role("button", name="Show what would change").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(
        f"11 rows would be labelled {CLASSES[1]} by ann."
    )
    assert client.row_page(wine, RowFilter(labelled=True)).total == 0
    page.get_by_role("button", name=f"Label 11 rows as {CLASSES[1]}").click()
    page.get_by_role("button", name="Undo all of it").wait_for()
    assert client.row_page(wine, RowFilter(class_name=CLASSES[1])).total == 11
    page.get_by_role("button", name="Undo all of it").click()
    expect(page.get_by_text("11 rows: as before.")).to_be_visible()
    assert client.row_page(wine, RowFilter(labelled=True)).total == 0
    page.get_by_role("link", name="bottle-17").click()
    page.get_by_role("button", name=CLASSES[2]).click()
    expect(page.get_by_text(f"You said {CLASSES[2]}.")).to_be_visible()
    page.get_by_role("button", name="Take my label back").click()
    expect(page.get_by_text("the row may be asked again")).to_be_visible()


def test_from_a_file_without_labels_to_the_first_label_in_six_actions(
    visit: Visit, client: Client, tmp_path: Path
) -> None:
    file = tmp_path / "moths.csv"
    file.write_text(UNLABELLED)
    page = visit("/")
    started, actions = time.monotonic(), 0

    def act(action: Callable[[], object]) -> None:
        nonlocal actions
        actions += 1
        action()

    act(page.get_by_role("link", name="New model").click)
    act(lambda: page.get_by_label("File", exact=True).set_input_files(file))
    classes = page.get_by_label("Names of the classes")
    act(lambda: classes.fill("Lymantria, Tortrix"))
    expect(page.get_by_text("Classes (2): Lymantria, Tortrix.")).to_be_visible()
    expect(page.locator(".previews")).to_contain_text("the wing of moth 2 has a spot")
    act(page.get_by_role("button", name="Create the model").click)
    page.locator("#stage h1").wait_for()
    glance(page)
    act(lambda: page.keyboard.press("l"))
    expect(page.locator("#said")).to_contain_text("Lymantria")
    print(f"from the file to the first label: {actions} actions, {time.monotonic() - started:.1f} s")
    assert actions <= 6
    page.goto(page.url)  # what waits is sent
    for _ in range(100):
        answers = list(client.answers("moths"))
        if answers:
            break
        page.wait_for_timeout(50)
    assert [each.label for each in answers] == ["Lymantria"]
    client.delete_model("moths")


def test_what_is_wrong_with_a_file_and_a_form_is_said_where_one_looks(visit: Visit, tmp_path: Path) -> None:
    page = visit("/create")
    (tmp_path / "moths.txt").write_text(UNLABELLED)
    page.get_by_label("File", exact=True).set_input_files(tmp_path / "moths.txt")
    expect(page.get_by_role("alert")).to_contain_text("file: is 'moths.txt', must end in .csv")
    (tmp_path / "moths.csv").write_text(UNLABELLED)
    page.get_by_label("File", exact=True).set_input_files(tmp_path / "moths.csv")
    page.get_by_role("button", name="Create the model").click()
    expect(page.get_by_role("alert")).to_contain_text("type the names of the classes")
    page.get_by_label("Kind of note").select_option("leave out")
    expect(page.get_by_text("Left out (1): note.")).to_be_visible()  # the script goes on with the new form
    page.get_by_text("Advanced: learner").click()
    page.get_by_role("radio", name="forest A forest").check()
    expect(page.get_by_label("max features")).to_be_visible()
