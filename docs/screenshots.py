"""Pictures of pages for README.md and docs/page.md, taken by a browser."""

import csv
import json
import shutil
import subprocess
import sys
import threading
import urllib.request
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import typer

from spacy_sapbert.io.terminal import msg

NOTES = {
    "admission.txt": (
        "78-year-old woman with atrial fibrillation and high cholesterol. Her mother "
        "had a heart attack. She takes Lipitor and aspirin. Today fever and shortness "
        "of breath. MI was ruled out.\n\nOn the second day she had a funny turn, and "
        "then a headache. No diabetes, no asthma. Fever again in the evening."
    ),
    "clinic.txt": "Review of asthma. Fever last week, now well. Takes aspirin.",
    "letter.txt": "He has high cholesterol and takes Lipitor. Fever has gone.",
}
TERMS = "heart attack\nH/O Asthma, NOS (J45.9)\nhigh blood presure\nMI\nzebra"
NARROW, WIDE, HEIGHT = 390, 1280, 800  # pixels
NOTE_SIZE = {"width": 1100, "height": 585}
THEMES = ("light", "dark")
SAMPLE = Path(__file__).parents[1] / "assets" / "sample"
CORRECTIONS = SAMPLE / "corrections.csv"


def send(address: str, path: str, data: dict[str, Any]) -> Any:
    """Send a POST request, and return its answer."""
    body, headers = json.dumps(data).encode(), {"content-type": "application/json"}
    request = urllib.request.Request(f"{address}{path}", body, headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def add_decisions(address: str) -> None:
    """Send the corrections of the sample as decisions of Ada, and some of Ben."""
    with CORRECTIONS.open(encoding="utf8", newline="") as file:
        rows = list(csv.DictReader(file))
    for id, group in groupby(rows, key=lambda row: row["id"]):
        mentions = list(group)
        text = "; ".join(row["text"] for row in mentions)
        given = {"name": id, "text": text}
        document = send(address, "/reviews/documents", given)["document"]
        start = 0
        for number, row in enumerate(mentions):
            end = start + len(row["text"])
            place = {"document": document, "start": start, "end": end}
            chosen = {"reviewer": "Ada", "chosen": row["cui"] or "NIL"}
            key = f"correction-{id}-{number}"
            decision = {"key": key, **place, **chosen}
            send(address, "/reviews/decisions", {"decisions": [decision]})
            if number == 0:
                other = {"reviewer": "Ben", "key": f"other-{key}"}
                chosen |= {} if len(text) % 3 else {"chosen": "NIL"}
                decision = {**place, **chosen, **other}
                send(address, "/reviews/decisions", {"decisions": [decision]})
            start = end + 2


def take_picture(page: Any, path: Path) -> None:
    """Write what the browser shows, with few colours."""
    from PIL import Image

    page.wait_for_timeout(400)
    page.screenshot(path=path)
    with Image.open(path) as image:  # 64 colours are enough, and small
        image.convert("RGB").quantize(64).save(path, optimize=True)


def take_linked_note(kb: Path, folder: Path, chromium: str) -> Path:
    """Link the notes of the sample, and write a picture of the first one."""
    from playwright.sync_api import sync_playwright

    path = folder / "linked-note.png"
    with TemporaryDirectory() as work, sync_playwright() as driver:
        output = Path(work, "notes.html")
        command = [sys.executable, "-m", "spacy_sapbert", "link"]
        options = [str(kb), str(SAMPLE / "notes"), "--output", str(output)]
        subprocess.run([*command, *options], check=True)
        browser = driver.chromium.launch(
            executable_path=chromium, args=["--no-sandbox"]
        )
        page = browser.new_page(viewport=NOTE_SIZE, color_scheme="light")
        page.goto(output.as_uri())
        take_picture(page, path)
        browser.close()
    return path


def take_pictures(address: str, folder: Path, chromium: str) -> list[Path]:
    """Use the page, and write pictures of it."""
    from playwright.sync_api import sync_playwright

    taken: list[Path] = []
    notes = {
        name: send(address, "/reviews/documents", {"name": name, "text": text})
        for name, text in NOTES.items()
    }
    add_decisions(address)

    def take(page: Any, name: str) -> None:
        taken.append(folder / f"serve-{name}.png")
        take_picture(page, taken[-1])

    def show(page: Any, part: str, element: str) -> None:
        page.goto(f"{address}/#{part}")
        page.wait_for_selector(element)

    def decide(page: Any) -> None:
        first = notes["admission.txt"]["document"]
        show(page, f"note/{first}", ".text [role]")
        for key in ("Enter", "Enter", "Enter", "1", "Enter"):
            page.keyboard.press(key)

    def use(page: Any, kind: str, *, whole: bool) -> None:
        decide(page)
        page.keyboard.press("n")
        take(page, f"note-{kind}")
        show(page, "queue", ".places li")
        take(page, f"queue-{kind}")
        show(page, "notes", "#list tbody td")
        take(page, f"notes-{kind}")
        if not whole:
            return
        show(page, "column", "#terms")
        page.fill("#terms", TERMS)
        page.click("#map")
        page.wait_for_selector("#accept")
        page.click("#accept")
        take(page, f"column-{kind}")
        show(page, "agree", "tr[aria-current]")
        take(page, f"agree-{kind}")
        measured = "dt:text-is('First candidate is right')"
        show(page, "teach", measured)
        if not page.locator("#use").count():
            page.click("#teach")
        page.wait_for_selector("#use", timeout=120_000)
        page.wait_for_selector(measured)
        take(page, f"teach-{kind}")
        show(page, "look/C0027051", ".panel h3")
        take(page, f"look-{kind}")

    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=chromium, args=["--no-sandbox"]
        )
        for theme in THEMES:
            for width in (WIDE, NARROW):
                size = {"width": width, "height": HEIGHT}
                context = browser.new_context(viewport=size, color_scheme=theme)
                name = "localStorage.setItem('reviewer', 'Ada')"
                context.add_init_script(name)
                page = context.new_page()
                kind = theme if width == WIDE else f"narrow-{theme}"
                use(page, kind, whole=width == WIDE)
                context.close()
        browser.close()
    return taken


def main(
    kb: Path = typer.Argument(..., help="Knowledge base."),
    output: Path = typer.Argument(..., help="Folder for the pictures."),
    chromium: str = typer.Option(shutil.which("chromium") or "chromium"),
) -> None:
    """kb/ + notes and corrections of the sample -> pictures of the pages"""
    output.mkdir(parents=True, exist_ok=True)
    msg.good(f"Wrote {take_linked_note(kb, output, chromium)}")
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "spacy_sapbert", "serve", "--port", "0"]
        service = subprocess.Popen(
            [*command, str(kb), "--reviews", f"{folder}/reviews.db"],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert service.stderr is not None
        try:
            lines = (line for line in service.stderr if '"listening"' in line)
            address = str(json.loads(next(lines))["url"])
            threading.Thread(target=service.stderr.read, daemon=True).start()
            for path in take_pictures(address, output, chromium):
                msg.good(f"Wrote {path}")
        finally:
            service.terminate()
            service.wait()


if __name__ == "__main__":
    typer.run(main)
