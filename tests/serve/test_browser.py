"""A browser goes through link → correct → teach → link again, with the keyboard.

It needs Debian's Chromium (or another, in CHROMIUM) and Playwright, which drives it.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.vocabularies.concepts import Concept

from .conftest import Client, Start

playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright drives the browser"
)
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed")

SCRIPT = "<script>document.title = 'hacked'</script><img src=x onerror=alert(1)>"
NAME = "<b>Fever</b><script>document.title = 'hacked'</script>"
PARTS = ("link", "column", "review", "teach", "quality", "look")


@pytest.fixture(scope="module")
def browser(shared_process: Any) -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        options = {"executable_path": CHROMIUM, "args": ["--no-sandbox"]}
        opened = driver.chromium.launch(**options)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def reviewed(
    start_service: Start,
    make_kb: Any,
    few_concepts: list[Concept],
    tmp_path_factory: pytest.TempPathFactory,
) -> Client:
    """A service with reviews, and a vocabulary with markup in its names."""
    folder = tmp_path_factory.mktemp("browser")
    hostile = Concept("C<i>9</i>", [NAME], definition=SCRIPT, types=["T047"])
    # Only names are linked; what is like a name has no concept, but candidates.
    kb = make_kb(folder, [*few_concepts, hostile], threshold=0.999)
    return start_service("--kb", kb, "--reviews", folder / "reviews.db")


@pytest.fixture
def page(browser: Any, reviewed: Client) -> Iterator[Any]:
    """The page; at its end nothing was loaded from elsewhere, and no script failed."""
    context = browser.new_context(accept_downloads=True)
    opened = context.new_page()
    problems: list[str] = []
    address = f"http://127.0.0.1:{reviewed.port}/"
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on(
        "console",
        lambda message: (
            problems.append(message.text) if message.type == "error" else None
        ),
    )
    opened.on(
        "request",
        lambda request: (
            None
            if request.url.startswith((address, "blob:"))
            else problems.append(request.url)
        ),
    )
    opened.on("dialog", lambda dialog: problems.append(dialog.message))
    opened.goto(address)
    opened.wait_for_selector("#note")
    opened.fill("#reviewer", "Ada")
    yield opened
    context.close()
    assert problems == []


def link(page: Any, text: str) -> None:
    page.fill("#note", text)
    page.click("#run")
    say(page, "mentions.")


def say(page: Any, text: str) -> None:
    """Wait until the status line has a text."""
    page.wait_for_selector(f"#status:has-text('{text}')")


def expect_decided(page: Any, number: int) -> None:
    """Wait until a number of mentions is decided."""
    playwright.expect(page.locator(".text button.decided")).to_have_count(number)


def test_a_person_links_corrects_teaches_and_sees_the_change(
    page: Any, reviewed: Client
) -> None:
    for number in range(12):
        link(page, f"{number}: the vwkj zzz, and fever")
        page.keyboard.press("Enter")  # accepts fever
        say(page, "Written")
        expect_decided(page, 1)
        start = page.evaluate(
            "note => { note.focus(); const at = note.value.indexOf('vwkj');"
            "note.setSelectionRange(at, at + 8); return at; }",
            page.query_selector("#note"),
        )
        assert start > 0
        page.click("#mark")
        page.wait_for_selector(".text button:has-text('vwkj zzz')")
        page.keyboard.press("/")
        page.keyboard.type("appendectomy")
        page.keyboard.press("Enter")
        page.click(".panel ul button[data-cui='C0000008']")
        expect_decided(page, 2)
    page.click("nav a[href='#teach']")
    page.click("#teach")
    say(page, "Learned")
    assert page.locator("figure svg .line-0 circle").count() == 4
    page.click("#use")
    say(page, "uses the taught")
    page.click("nav a[href='#link']")
    link(page, "Once more the vwkj zzz.")
    found = page.locator(".text button").first
    assert "vwkj zzz" in found.inner_text()
    assert "Appendectomy" in found.inner_text()
    assert reviewed.get("/kb").json()["taught"] is not None
    page.click("nav a[href='#quality']")
    page.wait_for_selector("dd")
    decided = page.locator("dd").first.inner_text()
    assert decided == "24"


def test_the_keyboard_chooses_none_and_undoes(page: Any) -> None:
    link(page, "Fever, fever and heart attack.")
    page.keyboard.press("0")
    page.wait_for_selector(".text button.decided:has-text('NIL')")
    page.keyboard.press("p")
    page.keyboard.press("u")
    expect_decided(page, 0)
    page.keyboard.press("n")
    assert page.locator(".text button[aria-pressed='true']").inner_text() != ""


def decisions(reviewed: Client, name: str) -> list[dict[str, Any]]:
    """The decisions that count on the document of a name, by place."""
    documents = reviewed.get("/reviews/documents").json()["documents"]
    (document,) = (one for one in documents if one["name"] == name)
    found = reviewed.get(f"/reviews/documents/{document['id']}").json()["decisions"]
    return sorted(found, key=lambda one: (one["start"], one["reviewer"]))


def open_file(page: Any, name: str, text: str) -> None:
    file = {"name": name, "mimeType": "text/plain", "buffer": text.encode("utf8")}
    page.set_input_files("#file", files=[file])
    playwright.expect(page.locator("#note")).not_to_have_value("")
    page.click("#run")
    say(page, "mentions.")


SLOW = """delay => {
    const send = window.fetch;
    window.fetch = async (...request) => {
        await new Promise((done) => setTimeout(done, delay));
        return send(...request);
    };
}"""


@pytest.mark.parametrize("delay", [0, 500])
def test_keys_faster_than_the_network_decide_one_mention_each(
    page: Any, reviewed: Client, delay: int
) -> None:
    name = f"fast-{delay}.txt"
    words = ["fever", "aspirin", "headache", "diabetes"] * 5
    open_file(page, name, f"{delay}: {', '.join(words)}.")
    page.evaluate(SLOW, delay)
    page.keyboard.press("2")
    for _ in words[1:]:
        page.keyboard.press("Enter")
    playwright.expect(page.locator(".text button.decided")).to_have_count(
        len(words), timeout=30_000
    )
    found = decisions(reviewed, name)
    assert len({one["start"] for one in found}) == len(words)
    ids = {"aspirin": "C0000006", "headache": "C0000007", "diabetes": "C0000005"}
    ids["fever"] = "C0000004"
    assert found[0]["chosen"] == found[0]["shown"][1]["cui"]
    assert [one["chosen"] for one in found[1:]] == [ids[word] for word in words[1:]]


def test_a_key_that_is_held_decides_once(page: Any) -> None:
    link(page, "Held: fever, aspirin, headache.")
    page.keyboard.down("Enter")
    page.keyboard.down("Enter")  # the browser repeats it
    page.keyboard.up("Enter")
    expect_decided(page, 1)


def test_enter_keeps_no_concept_as_no_concept(page: Any, reviewed: Client) -> None:
    open_file(page, "nil.txt", "A purple elephant with fever.")
    page.evaluate(
        "note => { note.focus(); note.setSelectionRange(2, 17); }",
        page.query_selector("#note"),
    )
    page.click("#mark")
    page.wait_for_selector(".text button.nil:has-text('purple elephant')")
    assert page.locator(".candidates .choose").count() > 1
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Enter")
    expect_decided(page, 1)
    (found,) = decisions(reviewed, "nil.txt")
    assert found["chosen"] == "NIL"


def test_a_decision_that_cannot_be_written_is_taken_back(
    page: Any, reviewed: Client
) -> None:
    open_file(page, "offline.txt", "Offline: fever, aspirin, headache.")
    page.keyboard.press("Enter")
    expect_decided(page, 1)
    page.evaluate(
        "() => { window.online = window.fetch;"
        "window.fetch = () => Promise.reject(new TypeError('no network')); }"
    )
    page.keyboard.press("Enter")
    say(page, "no network")
    expect_decided(page, 1)
    assert page.locator(".text button.saving").count() == 0
    page.evaluate("() => { window.fetch = window.online; }")
    page.keyboard.press("p")
    page.keyboard.press("n")
    page.keyboard.press("Enter")
    expect_decided(page, 2)
    assert len(decisions(reviewed, "offline.txt")) == 2


def test_offsets_are_those_of_a_file_with_other_line_ends(
    page: Any, reviewed: Client
) -> None:
    text = "Windows\r\nwrites\r\n\r\nit: fever\r\nand the rose \U0001f339 thorn\r\n"
    open_file(page, "windows.txt", text)
    assert "\r" not in page.locator(".text").inner_text()
    page.keyboard.press("Enter")
    expect_decided(page, 1)
    page.evaluate(
        "note => { note.focus(); const at = note.value.indexOf('rose');"
        "note.setSelectionRange(at - 1, note.value.length); }",
        page.query_selector("#note"),
    )
    page.click("#mark")
    page.wait_for_selector(".text button:has-text('thorn')")
    page.keyboard.press("0")
    expect_decided(page, 2)
    found = decisions(reviewed, "windows.txt")
    spans = [text[one["start"] : one["end"]] for one in found]
    # Blanks around the selection are no part of the mark.
    assert spans == ["fever", "rose \U0001f339 thorn"]


def test_undo_is_under_the_name_that_decided_and_removes_marks(
    page: Any, reviewed: Client
) -> None:
    open_file(page, "undo.txt", "Undo: fever and the rose.")
    page.keyboard.press("Enter")
    expect_decided(page, 1)
    page.evaluate(
        "note => { note.focus(); const at = note.value.indexOf('rose');"
        "note.setSelectionRange(at, at + 4); }",
        page.query_selector("#note"),
    )
    page.click("#mark")
    page.wait_for_selector(".text button:has-text('rose')")
    page.fill("#reviewer", "Ben")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("u")
    playwright.expect(page.locator(".text button")).to_have_count(1)
    page.keyboard.press("u")
    expect_decided(page, 0)
    say(page, "Written")
    assert [one["reviewer"] for one in decisions(reviewed, "undo.txt")] in ([], ["Ada"])
    assert all(one["chosen"] is None for one in decisions(reviewed, "undo.txt"))


@pytest.mark.smoke
def test_markup_in_texts_and_names_stays_text(page: Any) -> None:
    link(page, f"{SCRIPT} with {NAME} and fever")
    assert SCRIPT in page.locator(".text").inner_text()
    page.goto(f"{page.url.partition('#')[0]}#look/C%3Ci%3E9%3C%2Fi%3E")
    page.wait_for_selector(".panel h3")
    assert page.locator(".panel h3").inner_text() == NAME
    assert SCRIPT in page.locator(".panel").inner_text()
    assert page.title() == "Look – spacy-sapbert"


def test_a_column_is_mapped_and_downloaded(page: Any, tmp_path: Path) -> None:
    page.click("nav a[href='#column']")
    page.fill("#terms", "fever\nheart attack\nzebra")
    page.click("#map")
    page.wait_for_selector("#accept")
    page.click("#accept")
    say(page, "accepted")
    with page.expect_download() as waiting:
        page.click("text=Download csv")
    path = tmp_path / "mapped.csv"
    waiting.value.save_as(path)
    rows = path.read_text("utf8").splitlines()
    assert rows[1].startswith("fever,fever,C0000004,exact,")


def test_the_hierarchy_opens_by_the_keyboard(page: Any) -> None:
    page.click("nav a[href='#look']")
    page.wait_for_selector("summary")
    page.focus("summary")
    page.keyboard.press("Enter")
    page.wait_for_selector("details details summary:has-text('Myocardial infarction')")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 380])
def test_axe_finds_nothing_serious(page: Any, scheme: str, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 800})
    link(page, "Fever and heart attack. MI.")
    found = []
    for part in PARTS:
        page.click(f"nav a[href='#{part}']")
        page.wait_for_selector(f"body[data-part='{part}']")
        if part == "link":
            page.wait_for_selector(".candidates")
        result = axe.Axe().run(page)
        found += [
            (part, one["id"], [node["html"] for node in one["nodes"]])
            for one in result.response["violations"]
            if one["impact"] in ("serious", "critical")
        ]
        wide = "document.documentElement.scrollWidth > innerWidth"
        if page.evaluate(wide):
            found.append((part, "wider than the screen", []))
    assert found == []


def test_text_from_right_to_left_is_shown_so(page: Any) -> None:
    link(page, "לחולה יש fever ו fever")
    direction = "getComputedStyle(document.querySelector('.text')).direction"
    assert page.evaluate(direction) == "rtl"
