"""A browser goes through link → correct → teach → link again, with the keyboard.

What each pair of keys may write at each latency is in state.test.mjs.

The notes of a test have names of their own, since all share one service.

It needs Debian's Chromium (or another, in CHROMIUM) and Playwright, which drives it.
"""

import csv
import json
import os
import re
import shutil
from collections.abc import Iterator
from random import Random
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from spacy.tokens import Span

from spacy_sapbert.serve.access import Access, Role
from spacy_sapbert.serve.reviews.store import ReviewStore
from spacy_sapbert.vocabularies.concepts import Concept

from .conftest import ThreadClient

playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright drives the browser"
)
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed")

SCRIPT = "<script>document.title = 'hacked'</script><img src=x onerror=alert(1)>"
NAME = "<b>Fever</b><script>document.title = 'hacked'</script>"
PARTS = ("notes", "note", "queue", "column", "agree", "teach", "look")
CURRENT = ".text .mention.current[role]"
WRITES = "**/reviews/decisions"
IN_ADDRESSES = {"reviewer", "format", "ending", "related"}  # and no words of a note


@pytest.fixture(scope="module")
def browser(shared_process) -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        options = {"executable_path": CHROMIUM, "args": ["--no-sandbox"]}
        opened = driver.chromium.launch(**options)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def reviewed(listen, make_kb, few_concepts, tmp_path_factory) -> ThreadClient:
    """A service with reviews, and a vocabulary with markup in its names."""
    folder = tmp_path_factory.mktemp("browser")
    hostile = Concept("C<i>9</i>", [NAME], definition=SCRIPT, types=["T047"])
    # Only names are linked; what is like a name has no concept, but candidates.
    fevers = [Concept(f"F{n}", [f"Fever of ward {n}"]) for n in range(10)]
    kb = make_kb(folder, [*few_concepts, hostile, *fevers])
    store = ReviewStore(folder / "reviews.db")
    return listen(kb, store, {"least_cosine": 0.999})


@pytest.fixture
def page(browser, reviewed) -> Iterator[Any]:
    """The page; at its end nothing was loaded from elsewhere, no script failed, and no
    word was in an address.
    """
    context = browser.new_context(accept_downloads=True)
    opened = context.new_page()
    opened.set_default_timeout(15_000)
    problems: list[str] = []
    address = f"http://127.0.0.1:{reviewed.port}/"
    opened.on("pageerror", lambda error: problems.append(str(error)))

    def read_console(message: Any) -> None:
        if message.type == "error" and "Failed to load resource" not in message.text:
            problems.append(message.text)

    def see_request(request: Any) -> None:
        names = {name for name, _ in parse_qsl(urlsplit(request.url).query)}
        if not request.url.startswith((address, "blob:")) or names - IN_ADDRESSES:
            problems.append(request.url)

    def answer(dialog: Any) -> None:
        """Let the page be left with what is not written, or delete."""
        if dialog.type in ("beforeunload", "confirm"):
            dialog.accept()
        else:
            problems.append(dialog.message)

    opened.on("console", read_console)
    opened.on("request", see_request)
    opened.on("dialog", answer)
    opened.goto(address)
    opened.wait_for_selector("#note")
    become(opened, "Ada")
    yield opened
    context.close()
    assert problems == []


def become(page: Any, name: str) -> None:
    """Write a name at the top, and wait until the page is that of this person."""
    page.fill("#reviewer", name)
    page.press("#reviewer", "Tab")
    page.wait_for_selector(f"body[data-reviewer='{name}']")


def link(page: Any, text: str, name: str = "note") -> None:
    """Paste a note, and wait until its text is shown."""
    page.goto(f"{page.url.partition('#')[0]}#notes")
    page.wait_for_selector("#note")
    page.fill("#note", text)
    page.fill("#name", name)
    page.click("#run")
    page.wait_for_selector(".bench .text")


def say(page: Any, text: str) -> None:
    """Wait until the status line has a text."""
    page.wait_for_selector(f"#status:has-text('{text}')")


def expect_saved(page: Any) -> None:
    """Wait until all decisions are written."""
    page.wait_for_selector("body[data-unsaved='0']", timeout=30_000)
    playwright.expect(page.locator(".text .unsaved")).to_have_count(0)


def expect_decided(page: Any, number: int) -> None:
    """Wait until a number of mentions is decided, and written."""
    playwright.expect(page.locator(".text .decided[role]")).to_have_count(
        number, timeout=30_000
    )
    expect_saved(page)


def expect_mentions(page: Any, number: int) -> None:
    """Wait until the text has a number of mentions."""
    playwright.expect(page.locator(".text .mention[role]")).to_have_count(number)


def decide_offline(page: Any, number: int) -> None:
    """Decide mentions while nothing can be written."""
    page.route(WRITES, lambda route: route.abort())
    for _ in range(number):
        page.keyboard.press("Enter")
    page.wait_for_selector(f"#saved.bad:has-text('{number} not saved')")


def choose_words(page: Any, words: str) -> None:
    """Select words in the text as a mouse does, blanks around them too."""
    page.evaluate(
        """words => {
            const walker = document.createTreeWalker(
                document.querySelector('.text'), NodeFilter.SHOW_TEXT);
            const nodes = [];
            while (walker.nextNode()) nodes.push(walker.currentNode);
            const whole = nodes.map((node) => node.nodeValue).join('');
            const place = (offset) => {
                for (const node of nodes) {
                    if (offset <= node.nodeValue.length) return [node, offset];
                    offset -= node.nodeValue.length;
                }
            };
            const start = whole.indexOf(words);
            getSelection().setBaseAndExtent(
                ...place(start), ...place(start + words.length));
        }""",
        words,
    )


def decisions(reviewed: ThreadClient, name: str) -> list[dict[str, Any]]:
    """The decisions that count on the document of a name, by place."""
    documents = reviewed.get("/reviews/documents").json()["documents"]
    (document,) = (one for one in documents if one["name"] == name)
    found = reviewed.get(f"/reviews/documents/{document['id']}").json()["decisions"]
    return sorted(found, key=lambda one: (one["start"], one["reviewer"]))


def find(reviewed: ThreadClient, name: str, text: str) -> list[tuple[str, str | None]]:
    """What was chosen for which words of a note."""
    found = decisions(reviewed, name)
    return [(text[one["start"] : one["end"]], one["chosen"]) for one in found]


def open_file(page: Any, name: str, text: str) -> None:
    file = {"name": name, "mimeType": "text/plain", "buffer": text.encode("utf8")}
    page.set_input_files("#file", files=[file])
    say(page, "1 note read")
    page.wait_for_selector(".bench .text")


def test_a_person_links_corrects_teaches_and_goes_back(page, reviewed):
    for number in range(12):
        link(page, f"{number}: the vwkj zzz, and fever", f"tour-{number}")
        page.keyboard.press("Enter")  # accepts fever
        expect_decided(page, 1)
        field = page.locator(".missed label")  # a mouse does not need it
        assert field.bounding_box()["width"] == 1
        page.keyboard.press("m")
        page.keyboard.type("VWKJ zzz")
        assert field.bounding_box()["width"] > 100
        page.keyboard.press("Enter")
        expect_mentions(page, 2)
        page.keyboard.press("/")
        page.keyboard.type("appendectomy")
        page.keyboard.press("Enter")
        expect_decided(page, 2)
    found = decisions(reviewed, "tour-3")
    assert [one["chosen"] for one in found] == ["C0000008", "C0000004"]
    page.click("nav a[href='#teach']")
    page.click("#teach")
    say(page, "Learned")
    assert page.get_by_role("cell", name="With decisions as names").count() == 1
    page.click("#use")
    say(page, "uses the taught")
    link(page, "Once more the vwkj zzz.")
    assert "Appendectomy" in page.locator(CURRENT).get_attribute("aria-label")
    assert reviewed.get("/kb").json()["taught"] is not None
    page.click("nav a[href='#teach']")
    page.wait_for_selector("main:has-text('these figures are too good')")
    right = "dt:text-is('First candidate is right') + dd"
    assert page.inner_text(right) == "100.0 %"
    page.click("#back")
    say(page, "original")
    page.wait_for_selector(f"{right}:not(:text-is('100.0 %'))")
    assert not page.locator("main:has-text('these figures are too good')").count()
    assert reviewed.get("/kb").json()["taught"] is None


SLOW = """delay => {
    const send = window.fetch;
    window.fetch = async (...request) => {
        await new Promise((done) => setTimeout(done, delay));
        return send(...request);
    };
}"""
QUICK = """count => {
    for (let at = 0; at < count; at += 1) {
        const key = {key: 'Enter', bubbles: true, cancelable: true};
        setTimeout(() => document.activeElement.dispatchEvent(
            new KeyboardEvent('keydown', key)), at * 200 / count);
    }
}"""


@pytest.mark.parametrize("delay", [0, 500])
def test_twenty_keys_in_a_fifth_of_a_second_decide_one_mention_each(
    page, reviewed, delay
):
    name = f"fast-{delay}.txt"
    words = ["fever", "aspirin", "headache", "diabetes"] * 5
    open_file(page, name, f"{delay}: {', '.join(words)}.")
    expect_mentions(page, 20)
    page.evaluate(SLOW, delay)
    page.evaluate(QUICK, 20)
    expect_decided(page, 20)
    found = decisions(reviewed, name)
    assert len({one["start"] for one in found}) == len(words)
    ids = {"aspirin": "C0000006", "headache": "C0000007", "diabetes": "C0000005"}
    ids["fever"] = "C0000004"
    assert [one["chosen"] for one in found] == [ids[word] for word in words]


def test_marks_changes_and_searches_are_of_their_mention_and_stay(page, reviewed):
    become(page, "Mia")
    name, text = "mark", "Mark: fever after a funny turn, heart attack."
    link(page, text, name)
    page.evaluate(SLOW, 500)
    page.keyboard.press("/")
    page.keyboard.type("appendectomy")
    page.keyboard.down("Enter")
    for _ in range(5):  # it is held
        page.keyboard.down("Enter")
    page.keyboard.up("Enter")
    page.keyboard.press("Enter")
    page.keyboard.type("x1")
    expect_decided(page, 1)
    assert find(reviewed, name, text) == [("fever", "C0000008")]
    assert page.input_value("#search") == ""
    page.wait_for_selector(".text .current:has-text('heart attack')")
    page.wait_for_function("document.activeElement.id !== 'search'")
    choose_words(page, "funny turn")
    page.keyboard.press("m")
    page.keyboard.press("2")  # not of the mention that was shown before
    page.wait_for_selector(".text .current:has-text('funny turn')")
    page.wait_for_selector(".panel .choose >> nth=3")
    expect_saved(page)
    assert [one for one, _ in find(reviewed, name, text)] == ["fever", "funny turn"]
    choose_words(page, "heart")
    page.keyboard.press("c")
    page.wait_for_selector(".text .current:text-is('heart')")
    page.keyboard.press("0")
    expect_saved(page)
    page.reload()
    page.click(".text .mention:has-text('funny turn')")
    page.keyboard.press("x")  # a mark that is no mention goes, decided or not
    expect_saved(page)
    page.reload()
    page.wait_for_selector(".text .decided:text-is('heart')")
    assert sorted(find(reviewed, name, text)) == [
        *(("fever", "C0000008"), ("heart", "NIL"), ("heart attack", "NO_MENTION"))
    ]


def test_enter_takes_no_neighbour_of_nonsense_and_a_digit_takes_what_is_found(
    page, reviewed
):
    text = "Weak: fever."
    link(page, text, "weak")
    page.keyboard.press("/")
    page.keyboard.type("xqzzk vvwp")
    page.keyboard.press("Enter")
    say(page, "No concept has these words")
    page.keyboard.press("Control+a")
    page.keyboard.type("m")
    page.keyboard.press("Enter")
    say(page, "Several concepts fit")
    assert decisions(reviewed, "weak") == []
    results = page.locator("[aria-label='Found concepts'] .choose")
    cui = results.nth(1).get_attribute("data-cui")
    assert results.count() > 1
    page.keyboard.press("Tab")
    page.keyboard.press("9" if results.count() < 9 else "0")
    page.keyboard.press("2")
    expect_decided(page, 1)
    assert find(reviewed, "weak", text) == [("fever", cui)]


def test_a_concept_that_was_searched_for_keeps_its_name(page, reviewed):
    link(page, "Named: fever, MI.", "named")
    other = page.context.new_page()
    other.goto(page.url)
    other.wait_for_selector(CURRENT)
    page.keyboard.press("/")
    page.keyboard.type("appendectomy")
    page.keyboard.press("Enter")
    expect_decided(page, 1)
    shown = ".text .decided[aria-label^='fever, Appendectomy']"
    other.wait_for_selector(shown)
    page.reload()
    page.wait_for_selector(shown)
    page.click(".text .mention:has-text('fever')")
    chosen = page.locator(".panel .choose[aria-pressed=true]")
    playwright.expect(chosen).to_contain_text("Appendectomy")
    # Two persons differ, and a third concept settles it.
    become(page, "Cleo")
    page.locator(CURRENT).focus()
    page.keyboard.press("1")
    expect_decided(page, 1)
    page.click("nav a[href='#agree']")
    page.select_option("#of-document", label="named")
    rows = page.locator("[aria-label=Differences] tbody tr")
    playwright.expect(rows).to_have_count(1)
    rows.locator("td").last.click()
    page.keyboard.press("/")
    page.keyboard.type("headache")
    page.keyboard.press("Enter")
    page.wait_for_selector("tr:has-text('Headache C0000007 ✓')")
    expect_saved(page)
    page.reload()
    page.select_option("#of-open", label="all")
    settled = "tr:has-text('Appendectomy C0000008'):has-text('Headache C0000007 ✓')"
    page.wait_for_selector(settled)


def test_the_code_stands_beside_each_name_and_details_by_a_key(page, reviewed):
    """They were behind a button without a key, over the one that marks words."""
    page.set_viewport_size({"width": 1280, "height": 800})
    link(page, "Codes: MI, then fever.", "coded")
    first = page.locator(".candidates .choose").first
    playwright.expect(first).to_contain_text("C0000001 · I21")
    page.keyboard.press("i")
    about = page.locator(".about")
    playwright.expect(about).to_contain_text("Death of heart muscle")
    boxes = {
        name: page.locator(name).bounding_box()
        for name in (".about", "#mark", ".panel .choose >> nth=0")
    }
    over, mark, choose = boxes.values()
    assert over["x"] + over["width"] <= min(mark["x"], choose["x"])
    assert max(one["y"] + one["height"] for one in boxes.values()) <= 800
    page.keyboard.press("i")
    playwright.expect(about).to_be_hidden()
    page.select_option("#of-codes", label="none")
    playwright.expect(first).not_to_contain_text("I21")
    page.reload()
    page.wait_for_selector(CURRENT)
    playwright.expect(first.locator(".code")).to_have_text("C0000001")
    page.select_option("#of-codes", label="ICD10CM")
    page.keyboard.press("1")
    expect_decided(page, 1)
    page.click("nav a[href='#queue']")
    queued = page.locator(
        "[aria-label=Queue] tr:has-text('fever'):has-text('C0000004')"
    )
    playwright.expect(queued.first).to_be_visible()
    page.click("nav a[href='#column']")
    page.fill("#terms", "heart attack\nqwertz")
    page.click("#map")
    row = page.locator("[aria-label=Terms] tr:has-text('C0000001 · I21')")
    playwright.expect(row).to_have_count(1)


def test_what_is_negated_is_seen_kept_and_not_accepted_with_what_is_sure(
    page, tmp_path
):
    """A component of the pipeline has said it: `Span.is_negated` of another package."""
    Span.set_extension("is_negated", getter=lambda span: span.start > 0)
    try:
        become(page, "Nia")
        link(page, "Fever, and no headache, aspirin.", "negated")
    finally:
        Span.remove_extension("is_negated")
    headache = page.locator(".text .mention[data-name^='negated: Headache']")
    playwright.expect(headache).to_have_count(1)
    page.keyboard.press("a")
    say(page, "1 accepted, u takes it back. 2 left: negated")
    page.click(".text .mention:has-text('aspirin')")
    page.keyboard.press("t")  # past
    page.click(".remark summary")
    page.select_option("#context", label="it is so")
    page.locator(CURRENT).focus()
    page.keyboard.press("k")
    page.keyboard.type("Since when?")
    page.keyboard.press("Enter")
    page.check("#asks")
    page.locator(CURRENT).focus()
    page.keyboard.press("a")
    say(page, "1 accepted, u takes it back. 1 left: negated")
    page.click(".text .mention:has-text('headache')")
    page.keyboard.press("Enter")
    expect_decided(page, 3)
    expect_saved(page)
    page.reload()
    page.click(".text .mention:has-text('aspirin')")
    playwright.expect(page.locator("#comment")).to_have_value("Since when?")
    assert page.is_checked("#asks")
    become(page, "Otto")
    page.click(".text .mention:has-text('aspirin')")
    page.wait_for_selector(".remark:has-text('Nia asks: Since when?')")
    page.click("nav a[href='#notes']")
    page.select_option("#which", label="asked")
    page.wait_for_selector("#list tr:has-text('negated'):has-text('1 question')")
    become(page, "Nia")
    page.click("summary:has-text('Download')")
    page.select_option("#who", label="Nia")
    page.select_option("#kind", label="jsonl")
    with page.expect_download() as waiting:
        page.click("#export")
    waiting.value.save_as(tmp_path / "decisions.jsonl")
    lines = map(json.loads, (tmp_path / "decisions.jsonl").read_text().splitlines())
    (found,) = (one["entities"] for one in lines if one["id"] == "negated")
    assert [(o["text"], o.get("context"), o.get("comment")) for o in found] == [
        ("Fever", None, None),
        ("headache", "negated", None),
        ("aspirin", None, "Since when?"),
    ]
    assert all(one["candidates"] for one in found)


# The place of the mention that is shown, and its candidates.
READ_SCREEN = """() => ({
    start: Number(document.querySelector('.text .mention.current[role]').dataset.start),
    cuis: [...document.querySelectorAll('.panel ol .choose')]
        .map((one) => one.dataset.cui),
    chosen: document.querySelector('.panel .choose[aria-pressed=true]')?.dataset.cui,
})"""
STEPS = {  # and how often
    **dict.fromkeys("123", 4),
    **dict.fromkeys(["0", "x", "Enter", "a", "n", "p", "search", "reload"], 1),
    "click": 5,
    "u": 4,
}


@pytest.mark.parametrize("delay", [0, 150, 500, 1_000])
def test_a_random_walk_stores_what_was_on_the_screen(page, reviewed, delay):
    """The same steps each time: keys, clicks, searches, reloads, at some latencies."""
    random = Random(delay)
    name = f"walk-{delay}"
    words = ("fever", "MI", "headache", "diabetes", "aspirin", "heart attack")
    text = "; ".join(f"{word} and" for word in words * 4)
    become(page, "Wanda")
    link(page, f"{delay}: {text}", name)
    (id,) = (
        one["id"]
        for one in reviewed.get("/reviews/documents").json()["documents"]
        if one["name"] == name
    )
    mentions = reviewed.get(f"/reviews/documents/{id}").json()["mentions"]
    found = {one["start"]: one for one in mentions}
    assert len(found) == 24
    page.add_init_script(f"({SLOW})({delay})")
    page.evaluate(SLOW, delay)
    chosen: dict[int, str] = {}
    steps: list[dict[int, str | None]] = []  # what each undo gives back

    def choose(new: dict[int, str]) -> None:
        steps.append({start: chosen.get(start) for start in new})
        chosen.update(new)

    for step in random.choices([*STEPS], [*STEPS.values()], k=148):
        if step == "click":
            page.locator(".text .mention[role]").nth(random.randrange(24)).click()
            continue
        if step == "reload":
            page.reload()
            page.wait_for_selector(CURRENT)
            del steps[:-50]
            continue
        screen = page.evaluate(READ_SCREEN)
        start = screen["start"]
        here = found[start]
        assert screen.get("chosen") == chosen.get(start)
        if step == "search":
            page.keyboard.press("/")
            page.keyboard.type("appendectomy")
            page.keyboard.press("Enter")
            page.wait_for_selector("#search:not(:focus)")
            choose({start: "C0000008"})
            continue
        page.keyboard.press(step)
        if step in "123":
            choose({start: screen["cuis"][int(step) - 1]})
        elif step in ("0", "x"):
            choose({start: {"0": "NIL", "x": "NO_MENTION"}[step]})
        elif step == "Enter" and start in chosen:
            choose({start: chosen[start]})
        elif step == "Enter" and here["certainty"] in ("sure", "none"):
            choose({start: here["cui"] or "NIL"})
        elif step == "a":
            sure = {
                place: o["cui"] for place, o in found.items() if place not in chosen
            }
            sure = {
                p: cui for p, cui in sure.items() if found[p]["certainty"] == "sure"
            }
            if sure:
                choose(sure)
        elif step == "u" and steps:
            for place, before in steps.pop().items():
                if before is None:
                    del chosen[place]
                else:
                    chosen[place] = before
    expect_saved(page)
    stored = {one["start"]: one["chosen"] for one in decisions(reviewed, name)}
    assert stored == chosen
    shown = page.locator(".text .mention.decided[role]")
    playwright.expect(shown).to_have_count(len(chosen))
    page.reload()
    playwright.expect(shown).to_have_count(len(chosen))


def test_undo_takes_back_what_was_decided_before_a_reload(page, reviewed):
    become(page, "Uma")
    link(page, "Undone: fever, MI.", "undone")
    page.keyboard.press("1")
    expect_decided(page, 1)
    expect_saved(page)
    page.reload()
    page.wait_for_selector(CURRENT)
    page.keyboard.press("u")
    expect_decided(page, 0)
    page.keyboard.press("u")
    say(page, "Nothing to undo")
    page.keyboard.press("1")
    expect_decided(page, 1)
    expect_saved(page)
    page.click("nav a[href='#queue']")
    page.wait_for_selector("#counts:has-text('mention')")
    count = page.inner_text("#counts")
    page.reload()
    page.wait_for_selector(f"#counts:has-text('{count}')")
    page.keyboard.press("u")  # also from the queue, which did not decide it
    say(page, "Undone in “undone”.")
    playwright.expect(page.locator("#counts")).not_to_have_text(count)
    page.click("nav a[href='#column']")
    page.fill("#terms", "fever\nMI\nqwertz")
    page.click("#map")
    page.wait_for_selector("tr[aria-current]")
    page.keyboard.press("a")
    page.wait_for_selector(".facets:has-text('accepted ✓ 1')")
    page.click("tr:has-text('qwertz') td")
    page.keyboard.press("0")
    page.wait_for_selector(".facets:has-text('decided ✓ 1')")
    expect_saved(page)
    page.reload()
    page.wait_for_selector(".facets:has-text('decided ✓ 1')")
    page.keyboard.press("u")
    page.wait_for_selector(".facets:not(:has-text('decided'))")
    page.keyboard.press("u")
    page.wait_for_selector(".facets:not(:has-text('accepted'))")
    expect_saved(page)
    page.reload()
    page.wait_for_selector(".facets:not(:has-text('✓'))")


def test_decisions_wait_for_the_network_and_a_reload(page, reviewed):
    link(page, "Offline: fever, aspirin, headache.", "offline.txt")
    decide_offline(page, 2)
    playwright.expect(page.locator(".text .unsaved[role]")).to_have_count(2)
    assert decisions(reviewed, "offline.txt") == []
    page.unroute(WRITES)
    expect_decided(page, 2)
    decide_offline(page, 1)
    page.unroute(WRITES)
    page.reload()
    expect_decided(page, 3)
    assert len(decisions(reviewed, "offline.txt")) == 3
    refuse = {"status": 404, "body": json.dumps({"error": {"message": "Not so."}})}
    page.route(WRITES, lambda route: route.fulfill(**refuse))
    page.click(".text .mention:has-text('fever')")
    page.keyboard.press("0")  # it is taken back
    say(page, "Not so.")
    playwright.expect(page.locator(".text .nil")).to_have_count(0)


def test_offsets_are_those_of_a_file_with_other_line_ends(page, reviewed):
    text = "Windows\r\nwrites\r\n\r\nit: fever\r\nand the rose \U0001f339 thorn\r\n"
    open_file(page, "windows.txt", text)
    page.keyboard.press("Enter")
    expect_decided(page, 1)
    choose_words(page, " rose \U0001f339 thorn\r\n")
    page.keyboard.press("m")
    page.wait_for_selector(".text .mention:has-text('thorn')")
    page.keyboard.press("0")
    expect_decided(page, 2)
    choose_words(page, "thorn")  # in a mention that is decided
    page.click("#mark")
    page.wait_for_selector(".text .current[data-nested]:has-text('thorn')")
    page.keyboard.press("1")
    expect_saved(page)
    spans = [words for words, _ in find(reviewed, "windows.txt", text)]
    # Blanks around the selection are no part of the mark.
    assert spans == ["fever", "rose \U0001f339 thorn", "thorn"]


@pytest.mark.parametrize("delay", [0, 500])
def test_two_tabs_decide_one_note_at_the_same_time(page, reviewed, delay):
    name, text = f"both-{delay}", f"{delay}, both: fever, aspirin, headache."
    link(page, text, name)
    other = page.context.new_page()
    other.goto(page.url)
    other.wait_for_selector(CURRENT)
    page.evaluate(SLOW, delay)
    page.keyboard.press("Enter")  # fever; if it is slow, it is on its way
    if not delay:
        expect_saved(page)
    other.keyboard.press("0")  # fever too
    other.keyboard.press("x")  # aspirin
    expect_saved(other)
    page.wait_for_selector(".text .decided.none:has-text('aspirin')")
    page.keyboard.press("1")  # aspirin: it is still what is on the screen
    for tab in (page, other):
        expect_saved(tab)
    page.wait_for_timeout(2 * delay)
    found = dict(find(reviewed, name, text))
    last = "C0000004" if delay else "NIL"  # what was written last
    assert found == {"fever": last, "aspirin": "C0000006"}
    for tab in (page, other):
        for words, cui in found.items():
            kind = {"NIL": ".nil", "NO_MENTION": ".none"}.get(cui or "", ":not(.nil)")
            tab.wait_for_selector(f".text .decided{kind}:has-text('{words}')")


def test_files_are_dropped_and_the_queue_decides_equal_mentions_together(
    page, reviewed
):
    same = b"cephalalgia, cephalalgia."
    files = [
        {
            "name": f"queue-{n}.txt",
            "mimeType": "text/plain",
            "buffer": b"%d: " % n + same,
        }
        for n in range(3)
    ]
    page.set_input_files("#file", files=files)
    say(page, "3 notes read")
    page.wait_for_selector("#list tr:has-text('queue-2.txt'):has-text('0 of 2')")
    become(page, "Quinn")
    page.click("nav a[href='#queue']")
    row = page.locator("tr[aria-current]")
    for _ in range(30):
        if "cephalalgia" in row.inner_text():
            break
        page.keyboard.press("n")
    assert "6 times in 3 notes" in row.inner_text()
    row.locator("input").last.click()
    page.keyboard.press("1")
    playwright.expect(row).to_contain_text("1 of 6 open")
    expect_saved(page)
    found = [decisions(reviewed, f"queue-{number}.txt") for number in range(3)]
    assert [len(one) for one in found] == [2, 2, 1]
    page.keyboard.press("u")
    say(page, "Undone")
    expect_saved(page)
    assert decisions(reviewed, "queue-0.txt") == []


def test_decisions_are_downloaded_beside_the_notes(page, tmp_path):
    link(page, "Download: fever.", "download.txt")
    page.keyboard.press("1")
    expect_decided(page, 1)
    page.click("nav a[href='#notes']")
    page.click("summary:has-text('Download the decisions')")
    page.select_option("#who", label="Ada")
    page.select_option("#kind", label="csv")
    with page.expect_download() as waiting:
        page.click("#export")
    waiting.value.save_as(tmp_path / "decisions.csv")
    with (tmp_path / "decisions.csv").open(encoding="utf8", newline="") as file:
        found = {row["id"]: row["cui"] for row in csv.DictReader(file)}
    assert found["download.txt"] == "C0000004"


def test_notes_are_shown_by_their_folders(page):
    page.goto(f"{page.url.partition('#')[0]}#notes")
    page.wait_for_selector("#file")
    page.evaluate(
        """() => {
            const files = new DataTransfer();
            for (const [name, text] of [["a.txt", "fever one"], ["b.txt", "two"]]) {
                const file = new File([text], name, {type: "text/plain"});
                const of = {value: `ward ${name[0]}/${name}`};
                files.items.add(Object.defineProperty(file, "webkitRelativePath", of));
            }
            const field = document.getElementById("file");
            field.files = files.files;
            field.dispatchEvent(new Event("change"));
        }"""
    )
    say(page, "2 notes read")
    page.select_option("#folder", label="ward a")
    rows = page.locator("#list tbody tr")
    playwright.expect(rows).to_have_count(1)
    playwright.expect(rows).to_contain_text("ward a/a.txt")
    page.wait_for_selector("#list:has-text('0 of 1 note done')")


def test_where_reviewers_differ_is_seen_and_settled(page, reviewed):
    link(page, "Differ: MI.", "differ.txt")
    page.keyboard.press("1")
    expect_decided(page, 1)
    become(page, "Ben")
    playwright.expect(page.locator(".text .decided[role]")).to_have_count(0)
    page.locator(CURRENT).focus()
    page.keyboard.press("2")
    expect_decided(page, 1)
    page.click("nav a[href='#agree']")
    rows = page.locator("[aria-label=Differences] tbody tr")
    page.select_option("#of-document", label="differ.txt")
    playwright.expect(rows).to_have_count(1)
    row = page.locator("tr:has-text('differ.txt')")
    assert "Mitral insufficiency" in row.inner_text()
    row.locator("td").last.click()
    page.click(".panel .choose:has-text('Mitral')")
    expect_saved(page)
    found = decisions(reviewed, "differ.txt")
    (agreed,) = (one for one in found if one["settles"])
    assert (agreed["chosen"], agreed["reviewer"]) == ("C0000002", "Ben")
    assert len(found) == 3  # the answers stay as they were
    page.keyboard.press("u")
    say(page, "Undone")
    expect_saved(page)
    assert len(decisions(reviewed, "differ.txt")) == 2
    row.locator("a").click()
    page.wait_for_selector(".bench .text")


def test_a_page_shows_what_its_token_may_do(browser, listen, sample_kb, tmp_path):
    reader, ida = Access("r" * 20, Role.READER), Access("i" * 20, Role.REVIEWER, "Ida")
    store = ReviewStore(tmp_path / "reviews.db")
    guarded = listen(sample_kb, store, tokens=(reader, ida))

    def enter(access: Access) -> Any:
        page = browser.new_page()
        page.set_default_timeout(15_000)
        page.on("dialog", lambda dialog: dialog.accept(access.token))  # it is asked
        page.goto(f"http://127.0.0.1:{guarded.port}/")
        page.wait_for_selector("body[data-part='notes']")
        return page

    page = enter(ida)
    name = page.locator("#reviewer")
    assert (name.input_value(), name.is_editable()) == ("Ida", False)
    link(page, "Roles: fever.", "roles.txt")
    page.keyboard.press("1")
    expect_decided(page, 1)
    (document,) = store.documents()
    with page.expect_response("**/reviews/reviewers"):
        page.click("nav a[href='#notes']")
    page.wait_for_selector("#list tr:has-text('roles.txt')")
    assert not page.locator("#list tbody button").count()
    for hidden in ("agree", "teach"):
        assert not page.locator(f"nav a[href='#{hidden}']").is_visible()
    page.goto(f"{page.url.partition('#')[0]}#teach")
    page.wait_for_selector("main:has-text('An admin teaches it')")
    assert not page.locator("main button").count()
    store.set_done(document.id, "Ben", True)  # who differs without a decision
    page.click("nav a[href='#queue']")
    page.click("nav a[href='#agree']")
    page.wait_for_selector("[aria-label=Differences] tr:has-text('roles.txt')")

    page = enter(reader)
    page.wait_for_selector("main:has-text('for linking and search only')")
    for hidden in ("[href='#queue']", "[href='#agree']", "#list table"):
        assert not page.locator(hidden).first.is_visible()
    link(page, "Only read: fever.", "Only read")
    page.keyboard.press("1")
    playwright.expect(page.locator(".text .decided[role]")).to_have_count(1)
    page.goto(f"{page.url.partition('#')[0]}#queue")
    page.wait_for_selector("main:has-text('for linking and search only')")
    page.goto(f"{page.url.partition('#')[0]}#column")  # it is not kept
    page.fill("#terms", "fever\nzebra")
    page.click("#map")
    page.wait_for_selector("tr[aria-current]:has-text('fever')")
    page.keyboard.press("Enter")
    page.wait_for_selector(".facets:has-text('decided ✓ 1')")
    page.click("nav a[href='#notes']")
    page.wait_for_selector("#note")
    page.click("nav a[href='#column']")
    page.wait_for_selector(".facets:has-text('decided ✓ 1')")
    page.click("summary:has-text('Terms, one a line')")
    page.wait_for_selector("main:has-text('until this page is closed')")
    assert store.query("SELECT count(*) FROM columns") == [(0,)]
    page.close(run_before_unload=False)


def open_table(page: Any, table: str, name: str = "a.csv", **chosen: str) -> None:
    """Read a table, choose columns for what its fields ask for, and map it."""
    file = {"name": name, "mimeType": "text/csv", "buffer": table.encode()}
    page.set_input_files("#table", files=[file])
    page.wait_for_selector("#which")
    who = page.input_value("#reviewer")
    become(page, f"{who} too")  # what was read stays
    become(page, who)
    for field, column in chosen.items():
        page.select_option(f"#{field}", label=column)
    page.click("button:has-text('Map it')")


def test_the_ids_of_a_column_are_verified(page):
    table = "code,term\nC0000004,fever\nC0000001,fever\nC9999999,heart attack\n,MI\n"
    page.click("nav a[href='#column']")
    open_table(page, table, which="term", claimed="code")
    cells = page.locator("[aria-label=Terms] tbody td:last-child")
    playwright.expect(cells).to_have_text(
        ["C0000004: right, C0000001: wrong", "C9999999: retired", ""]
    )


def test_a_column_is_decided_by_keys_with_relations_and_ids(page, tmp_path):
    page.click("nav a[href='#column']")
    table = "code;term\nX:1;fever\nX:2;MI\nX:3;zebra\n"
    open_table(page, table, which="term", subject="code")
    page.wait_for_selector("tr[aria-current]:has-text('fever')")
    page.keyboard.press("a")
    page.wait_for_selector("tr[aria-current]:has-text('MI')")
    page.keyboard.press("u")
    page.wait_for_selector("tr[aria-current]:has-text('fever')")
    page.keyboard.press("Enter")
    page.wait_for_selector("tr[aria-current]:has-text('MI')")
    page.keyboard.press("Enter")
    say(page, "Several concepts fit")
    page.keyboard.press("2")
    page.wait_for_selector("tr[aria-current]:has-text('zebra')")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("r")
    say(page, "broad")
    page.keyboard.press("n")
    page.keyboard.press("0")
    page.keyboard.press("u")
    say(page, "Undone")
    page.keyboard.press("0")
    page.wait_for_selector(".facets:has-text('decided ✓ 3')")
    with page.expect_download() as waiting:
        page.click("summary:has-text('Download')")
        page.click(".menu button:text-is('sssom.tsv')")
    path = tmp_path / "mapped.sssom.tsv"
    waiting.value.save_as(path)
    lines = [line for line in path.read_text("utf8").splitlines() if line[0] != "#"]
    rows = [*csv.DictReader(lines, delimiter="\t")]
    assert [row["subject_id"] for row in rows] == ["X:1", "X:2", "X:3"]
    assert [row["predicate_id"] for row in rows[:2]] == [
        *("skos:exactMatch", "skos:broadMatch")
    ]


def test_a_column_that_is_mapped_leaves_a_person_where_they_are(page):
    page.click("nav a[href='#column']")
    page.fill("#terms", "fever\nslow zebra")
    page.evaluate(SLOW, 500)
    page.click("#map")
    page.click("nav a[href='#notes']")
    say(page, "2 terms in 2 rows")
    assert page.url.endswith("#notes")
    page.click("nav a[href='#column']")
    page.wait_for_selector("tr:has-text('Terms'):has-text('0 of 2')")


def test_what_is_accepted_in_bulk_is_no_choice_of_a_person(page, tmp_path):
    """Nobody looked at it: a download said that a person has curated it."""
    page.click("nav a[href='#column']")
    open_table(page, "term\nfever\naspirin\nzebra\n", "bulk.csv")
    page.wait_for_selector("tr[aria-current]:has-text('fever')")
    page.keyboard.press("a")
    say(page, "2 accepted")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("0")
    page.keyboard.press("u")  # it is as it was accepted
    say(page, "Undone")
    expect_saved(page)
    page.reload()
    page.wait_for_selector(".facets:has-text('accepted ✓ 2')")
    page.click("tr:has-text('aspirin') td")
    page.keyboard.press("Enter")  # a person has looked at it
    expect_saved(page)
    page.reload()
    for text in ("accepted ✓ 1", "decided ✓ 1"):
        page.wait_for_selector(f".facets:has-text('{text}')")
    found = {}
    for format in ("csv", "sssom.tsv"):
        with page.expect_download() as waiting:
            page.click("summary:has-text('Download')")
            page.click(f".menu button:text-is('{format}')")
        path = tmp_path / format
        waiting.value.save_as(path)
        lines = [one for one in path.read_text("utf8").splitlines() if one[0] != "#"]
        delimiter = "," if format == "csv" else "\t"
        found[format] = [*csv.DictReader(lines, delimiter=delimiter)]
        page.click("summary:has-text('Download')")
    fever, aspirin, _ = found["csv"]
    assert (fever["match_chosen"], fever["match_id"]) == ("", "C0000004")
    assert (aspirin["match_chosen"], aspirin["match_id"]) == ("C0000006",) * 2
    kinds = [one["mapping_justification"] for one in found["sssom.tsv"]]
    assert kinds[:2] == ["semapv:LexicalMatching", "semapv:ManualMappingCuration"]


def test_rows_of_one_term_are_one_and_a_history_decides_the_next_table(page, tmp_path):
    become(page, "Hana")
    page.click("nav a[href='#column']")
    rows = "what,ward\nFunny turn,A\nfunny  TURN,B\n,C\nf/h fever,D\nMI,E\nmi,F\n"
    open_table(page, rows, "first.csv", which="what")
    page.wait_for_selector("tr[aria-current]:has-text('Funny turn × 2')")
    current = page.locator("tr[aria-current]")
    playwright.expect(current).to_contain_text("ward: A")
    playwright.expect(page.locator("[aria-label=Terms] tbody tr")).to_have_count(4)
    read = page.locator("[aria-label=Terms] tr:has-text('f/h fever')")
    playwright.expect(read).to_contain_text("read as “fever”")
    page.keyboard.press("/")
    page.keyboard.type("appendectomy")
    page.keyboard.press("Enter")
    page.fill("#filter", "e")
    page.select_option("#of", label="ward")
    playwright.expect(page.locator("[aria-label=Terms] tbody tr")).to_have_count(1)
    page.click("summary:has-text('All shown')")
    page.click("#nothing")
    say(page, "1 decided")
    expect_saved(page)
    saved = {}
    for name in ("csv", "history.json"):
        page.click("summary:has-text('Download')")
        with page.expect_download() as waiting:
            page.click(f".menu button:text-is('{name}')")
        waiting.value.save_as(tmp_path / name)
        saved[name] = (tmp_path / name).read_text("utf8")
        page.click("summary:has-text('Download')")
    first, second, empty, family, mi, other = csv.DictReader(saved["csv"].splitlines())
    assert first["match_id"] == second["match_id"] == "C0000008"
    assert first["match_1_id"] != "C0000008"  # what was proposed
    assert (empty["match_id"], empty["match_status"]) == ("", "")
    assert (family["match_id"], mi["match_id"]) == ("", "")
    assert other["match_chosen"] == ""
    choices = json.loads(saved["history.json"])["choices"]
    assert [one["chosen"] for one in choices] == ["C0000008", "NIL"]
    page.click("nav a[href='#column']")
    page.wait_for_selector("h2:has-text('Map a column of terms')")
    open_table(page, "term\nfever\nFUNNY TURN\nMI\n", "next.csv")
    page.wait_for_selector("tr[aria-current]:has-text('fever')")
    page.click("summary:has-text('All shown')")
    page.set_input_files("#history", tmp_path / "csv")
    say(page, "is no history of a column")
    page.set_input_files("#history", tmp_path / "history.json")
    say(page, "2 decided")
    expect_saved(page)
    page.reload()
    page.wait_for_selector(".facets:has-text('decided ✓ 2')")
    decided = page.locator("[aria-label=Terms] tr:has-text('Appendectomy C0000008')")
    playwright.expect(decided).to_contain_text("FUNNY TURN")


# The page gets no answer to what it sends to addresses with an ending, until `allow`.
REFUSED = """(ending) => {
    const real = window.fetch;
    window.fetch = (to, ...rest) =>
        to.endsWith(ending) ? Promise.reject(new TypeError("no")) : real(to, ...rest);
    window.allow = () => { window.fetch = real; };
}"""


def test_a_column_is_kept_through_reloads_and_tabs_as_it_was_decided(page, reviewed):
    become(page, "Cora")
    page.click("nav a[href='#column']")
    terms = [f"ward {number} fever" for number in range(1_000)]
    open_table(
        page,
        "term,n\n" + "".join(f"{term},1\n" for term in [*terms, "MI"]),
        "wards.csv",
    )
    page.wait_for_selector("tr[aria-current]:has-text('ward 0 fever')", timeout=60_000)
    other = page.context.new_page()
    other.goto(page.url)
    page.keyboard.press("/")
    page.keyboard.type("appendectomy")
    page.keyboard.press("Enter")
    row = "tr:has-text('ward {} fever'):has-text('{}'):has-text('decided')"
    page.wait_for_selector(row.format(0, "Appendectomy"))
    other.wait_for_selector(row.format(0, "Appendectomy"))
    decided = page.locator(".facets:has-text('decided ✓ 3')")
    page.evaluate(REFUSED, "/choices")  # a route of one of two tabs may come late
    page.keyboard.press("0")  # ward 1: it waits
    page.wait_for_selector("#saved.bad:has-text('1 not saved')")
    other.keyboard.press("n")
    other.keyboard.press("n")
    other.keyboard.press("0")  # ward 2
    expect_saved(other)
    page.evaluate("window.allow()")
    playwright.expect(decided).to_be_visible()
    page.reload()
    for tab in (page, other):
        tab.wait_for_selector(row.format(0, "Appendectomy"))
        for number in (1, 2):
            tab.wait_for_selector(row.format(number, "no concept"))
        expect_saved(tab)
    other.keyboard.press("u")  # its own choice, and no other
    say(other, "Undone")
    expect_saved(other)
    page.click("nav a[href='#notes']")
    page.click("nav a[href='#column']")
    page.wait_for_selector("tr:has-text('wards.csv'):has-text('2 of 1001')")
    become(page, "Cleo")  # has decided nothing
    page.wait_for_selector("tr:has-text('wards.csv'):has-text('0 of 1001')")
    page.click("a:has-text('wards.csv')")
    page.wait_for_selector("tr[aria-current]:has-text('ward 0 fever')")
    assert "decided" not in page.locator(".facets").inner_text()
    page.click("a:has-text('All columns')")
    page.click("tr:has-text('wards.csv'):has-text('of 1001') button:has-text('Delete')")
    say(page, "Deleted for good.")
    assert (
        reviewed.get(f"/reviews/columns/{other.url.rpartition('/')[2]}").status == 404
    )


def test_texts_and_names_stay_texts_and_are_read_apart(page):
    link(page, f"{SCRIPT} with {NAME} and fever")
    assert SCRIPT in page.locator(".text").inner_text()
    page.goto(f"{page.url.partition('#')[0]}#look/C%3Ci%3E9%3C%2Fi%3E")
    page.wait_for_selector(".panel h3")
    assert page.locator(".panel h3").inner_text() == NAME
    assert SCRIPT in page.locator(".panel").inner_text()
    assert page.title() == "Vocabulary – concept linking"
    link(page, "לחולה יש fever ו aspirin")
    direction = "getComputedStyle(document.querySelector('.text')).direction"
    assert page.evaluate(direction) == "rtl"
    assert page.locator(".text [tabindex='0']").count() == 1  # one tab stop
    label = page.locator(".text .mention[role]").first.get_attribute("aria-label")
    assert label.startswith("fever, ")
    assert "Fever" in label
    page.click("nav a[href='#notes']")  # what was typed stays
    page.fill("#note", "A note that is not linked yet")
    page.click("nav a[href='#column']")
    page.fill("#terms", "fever")
    page.click("nav a[href='#notes']")
    page.wait_for_selector("body[data-part='notes']")
    assert page.input_value("#note") == "A note that is not linked yet"
    page.click("nav a[href='#column']")
    page.wait_for_selector("body[data-part='column']")
    assert page.input_value("#terms") == "fever"


WORDS = r"below_threshold|NIL\b|[Dd]igest|--\w|/search|undefined|null|\b1 \w+s\b"


@pytest.mark.parametrize(
    ("width", "scheme"),
    [(1200, "dark"), (380, "light")],
)
def test_axe_finds_nothing_and_words_are_those_of_users(page, scheme, width):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 800})
    link(page, "Fever and heart attacc. MI.")
    note = page.url.partition("#")[2]
    found = []
    for part in PARTS:
        address = note if part == "note" else part
        page.goto(f"{page.url.partition('#')[0]}#{address}")
        page.wait_for_selector(f"body[data-part='{part}']")
        rules = {"label-content-name-mismatch": {"enabled": True}}
        result = axe.Axe().run(page, options={"rules": rules})
        found += [
            (part, one["id"], [node["html"] for node in one["nodes"]])
            for one in result.response["violations"]
        ]
        wide = "document.documentElement.scrollWidth > innerWidth"
        if page.evaluate(wide):
            found.append((part, "wider than the screen", []))
        if words := re.findall(WORDS, page.inner_text("body")):
            found.append((part, "no words of users", words))
    assert found == []
