"""The desk of a lead, the tokens and the guidelines, in a real browser: accessible at every size, in light and dark."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browser.conftest import make_wine, press
from integration.client.serving import Serving
from playwright.sync_api import Browser, Page, expect
from support.accessible import faults_of
from support.consoles import ConsoleProcess

from quercus.client import ClassExample, Client, Guidance, Numeric, Specification
from quercus.server.gate.access import issue_token
from quercus.storage import Store, file_url

pytestmark = pytest.mark.browser
Visit = Callable[..., Page]
SIZES = {"wide": (1440, 900), "middle": (1024, 768), "phone": (390, 844)}
ENDS = ["wide", pytest.param("middle", marks=pytest.mark.release), "phone"]
"""The largest screen and the smallest: between them a layout is seldom wrong."""
GUIDANCE = Guidance(
    "Bottles of the valley",
    "Look at the colour before the numbers.\n\nIn doubt, see https://wine.example/barolo and ask.",
    (ClassExample("Barolo", "bottle-3", "brick red at the rim"), ClassExample("Barbera", "bottle-8", "dark")),
)


@pytest.fixture(scope="module")
def led(client: Client) -> str:
    """A model with guidelines, answers and people."""
    name = make_wine(client, "b-led")
    client.update_model(name, guidance=GUIDANCE)
    for labeller in ("ann", "bea"):
        for _ in range(3):
            (query,) = client.lease(name, labeller, wait_s=20).queries
            client.answer(query, "Barolo")
    return name


def test_a_lead_works_without_scripts(visit: Visit, client: Client, wine: str) -> None:
    page = visit(f"/m/{wine}/desk", java_script_enabled=False)
    page.get_by_label("Answers in all").fill("77")
    page.get_by_role("button", name="Set the budget").click()
    expect(page.get_by_role("status").first).to_contain_text("The budget is set: 77 answers in all.")
    page.get_by_label("Names of those who label").fill("ann\nbea")
    page.get_by_role("button", name="Set who labels").click()
    expect(page.get_by_role("status").first).to_contain_text("Who labels is set")
    page.get_by_label("Title").fill("Our wines")
    page.get_by_label("Guidelines").fill("Look twice.")
    page.get_by_label("Row of example 1").fill("bottle-1")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Our wines")
    assert client.get_model(wine).budget == 77
    assert client.labelling_policy(wine).labellers == ("ann", "bea")
    page.get_by_label(f"Type {wine} to confirm").fill(wine)
    page.get_by_role("button", name=f"Delete {wine}").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Models")
    assert wine not in {each.name for each in client.models()}


@pytest.mark.parametrize("size", ENDS)
def test_h_shows_the_guidelines_beside_the_item(visit: Visit, led: str, size: str) -> None:
    width, height = SIZES[size]
    page = visit(f"/m/{led}/label", name=f"carl-{size}", viewport={"width": width, "height": height})
    press(page, "h")
    guide = page.locator("#stage .guide")
    expect(guide).to_contain_text("Look at the colour before the numbers.")
    expect(guide).to_contain_text("brick red at the rim")
    link = guide.get_by_role("link", name="https://wine.example/barolo")
    expect(link).to_have_attribute("rel", "noopener noreferrer")
    assert faults_of(page) == []
    page.keyboard.press("h")
    expect(guide.get_by_text("Look at the colour")).to_be_hidden()


@pytest.fixture(scope="module")
def administered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ConsoleProcess, str]]:
    folder: Path = tmp_path_factory.mktemp("administered")
    serving = Serving(folder, 0, "--access", "tokens", grower=False)
    with Store.open(file_url(folder / "quercus.db")) as store:
        secret, _ = issue_token(store.access, "olga", ["operator"])
        for name in ("ann", "bea", "press-7"):
            issue_token(
                store.access, name, ["labeller" if name != "press-7" else "sensor"], ["wine"], 86_400.0
            )
        store.access.revoke_token(issue_token(store.access, "carl", ["reader"])[1].id)
    with Client(serving.address, token=secret) as olga:
        olga.create_model("wine", Specification([Numeric("x")], ("a", "b")))
    console = ConsoleProcess(serving.address)
    yield console, secret
    assert "Traceback" not in console.stop()
    serving.stop()


@pytest.mark.parametrize("size", ENDS)
def test_tokens_are_made_and_revoked_in_a_browser(
    browser: Browser, administered: tuple[ConsoleProcess, str], size: str
) -> None:
    console, secret = administered
    width, height = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": height})
    page = context.new_page()
    page.goto(f"{console.url}/sign-in")
    page.get_by_label("Token").fill(secret)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("link", name="Tokens").click()
    page.wait_for_url("**/tokens")  # axe fails in a page that is being left
    assert faults_of(page) == []
    page.get_by_label("Name of the owner").fill(f"dora-{size}")
    page.get_by_role("checkbox", name="labeller").check()
    page.get_by_role("checkbox", name="wine").check()
    page.get_by_role("button", name="Create the token").click()
    made = page.get_by_label("Copy it now")
    assert made.input_value().startswith("quercus_")
    assert faults_of(page) == []
    page.reload()
    expect(made).to_have_count(0)
    row = page.get_by_role("row").filter(has_text=f"dora-{size}")
    row.locator("summary").click()
    row.get_by_role("button", name="Revoke it now").click()
    expect(page.get_by_role("status").first).to_contain_text("is revoked")
    context.close()


def test_gold_questions_are_marked_asked_and_scored(visit: Visit, client: Client, wine: str) -> None:
    page = visit(f"/m/{wine}/desk", java_script_enabled=False)
    page.get_by_label("Share of the queries, in percent").fill("100")
    page.get_by_role("button", name="Set the share").click()
    expect(page.get_by_role("status").first).to_have_text(
        "100 % of the queries are gold questions from now on."
    )
    page.get_by_label("Rows to mark").fill("bottle-1, Barolo\nbottle-2, nothing of ours")
    page.get_by_role("button", name="Mark the rows").click()
    expect(page.get_by_role("alert")).to_contain_text("line 2")
    assert client.gold_questions(wine) == []
    page.get_by_label("Rows to mark").fill("bottle-1, Barolo\n\nbottle-2, Barbera")
    page.locator("#gold-file").set_input_files(
        {
            "name": "known.csv",
            "mimeType": "text/csv",
            "buffer": b"id,label\nbottle-3,Barolo\nbottle-4,Barolo\n",
        }
    )
    page.get_by_role("button", name="Mark the rows").click()
    expect(page.get_by_role("status").first).to_have_text("4 rows marked.")
    page.get_by_role("checkbox", name="Take the mark of bottle-4 back").check()
    page.get_by_role("button", name="Take the checked marks back").click()
    expect(page.get_by_role("status").first).to_contain_text("1 row unmarked.")
    assert [(each.instance, each.text) for each in client.gold_questions(wine)] == [
        ("bottle-1", "Barolo"), ("bottle-2", "Barbera"), ("bottle-3", "Barolo"),
    ]  # fmt: skip
    answered = []
    for _ in range(3):
        (query,) = client.lease(wine, "dora", wait_s=20).queries
        client.answer(query, "Barolo")
        answered.append(query.instance)
    assert sorted(answered) == ["bottle-1", "bottle-2", "bottle-3"]
    page.reload()
    row = page.get_by_role("row").filter(has_text="dora")
    expect(row).to_contain_text("2 of 3 (25 % to 92 %)".replace(" %", "\N{NO-BREAK SPACE}%"))
    for size in SIZES.values():
        page = visit(f"/m/{wine}/desk", viewport={"width": size[0], "height": size[1]})
        assert faults_of(page) == []
    page = visit(f"/m/{wine}/items/row?id=bottle-9", java_script_enabled=False)
    page.get_by_label("Gold question: it is").select_option("Barbera")
    page.get_by_role("button", name="Mark it").click()
    expect(page.get_by_role("status").first).to_contain_text("1 row marked.")
    page = visit(f"/m/{wine}/items", java_script_enabled=False)
    page.get_by_role("checkbox", name="Choose bottle-10", exact=True).check()
    page.locator("select[name=label]").select_option("Barolo")
    page.get_by_role("button", name="Make the checked rows gold questions").click()
    marked = {each.instance: each.text for each in client.gold_questions(wine)}
    assert (marked["bottle-9"], marked["bottle-10"]) == ("Barbera", "Barolo")
