"""Pictures of the page of a service for docs/serve.md, taken by a browser."""

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

from benchmarks.harness import run_cli
from spacy_sapbert.io.terminal import msg

NOTE = (
    "78-year-old woman with atrial fibrillation and high cholesterol. Her mother had a "
    "heart attack. She takes Lipitor and aspirin. Today fever and shortness of breath."
)
TERMS = "heart attack\nH/O Asthma, NOS (J45.9)\nhigh blood presure\nzebra"
NARROW, WIDE, HEIGHT, TALL = 380, 1200, 860, 1340  # pixels
CORRECTIONS = Path(__file__).parents[1] / "assets" / "sample" / "corrections.csv"


def send(address: str, path: str, data: dict[str, Any]) -> Any:
    """Send a POST request, and return its answer."""
    body, headers = json.dumps(data).encode(), {"content-type": "application/json"}
    request = urllib.request.Request(f"{address}{path}", body, headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def add_decisions(address: str) -> None:
    """Send the corrections of the sample as decisions of a reviewer."""
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
            send(address, "/reviews/decisions", {"key": key, **place, **chosen})
            start = end + 2


def take_pictures(address: str, folder: Path, chromium: str) -> list[Path]:
    """Use the page, and write pictures of it."""
    from playwright.sync_api import sync_playwright

    taken: list[Path] = []

    def take(page: Any, name: str) -> None:
        taken.append(folder / f"serve-{name}.png")
        page.screenshot(path=taken[-1])

    def link(page: Any) -> None:
        page.goto(address)
        page.fill("#reviewer", "Ada")
        page.fill("#note", NOTE)
        page.click("#run")
        page.wait_for_selector(".text button")
        page.keyboard.press("Enter")
        page.wait_for_selector(".text button.decided")

    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=chromium, args=["--no-sandbox"]
        )
        for name, width, scheme in (
            ("light", WIDE, "light"),
            ("dark", WIDE, "dark"),
            ("narrow", NARROW, "light"),
        ):
            size = {"width": width, "height": HEIGHT}
            page = browser.new_page(viewport=size, color_scheme=scheme)
            link(page)
            take(page, name)
            if name == "light":
                page.click("nav a[href='#column']")
                page.fill("#terms", TERMS)
                page.click("#map")
                page.wait_for_selector("#accept")
                take(page, "column")
                add_decisions(address)
                page.set_viewport_size({"width": WIDE, "height": TALL})
                page.click("nav a[href='#quality']")
                page.wait_for_selector("body[data-part='quality'] table")
                take(page, "quality")
                page.click("nav a[href='#teach']")
                page.click("#teach")
                page.wait_for_selector("#use")
                take(page, "teach")
            page.close()
        browser.close()
    return taken


def main(
    kb: Path = typer.Argument(..., help="Knowledge base."),
    output: Path = typer.Argument(..., help="Folder for the pictures."),
    chromium: str = typer.Option(shutil.which("chromium") or "chromium"),
) -> None:
    """kb/ + the corrections of the sample -> pictures of each part of the page"""
    output.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "spacy_sapbert", "serve", "--port", "0"]
        service = subprocess.Popen(
            [*command, "--kb", str(kb), "--reviews", f"{folder}/reviews.db"],
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
    run_cli(main)
