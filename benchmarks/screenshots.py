"""Pictures of the page of a service for docs/serve.md, taken by a browser."""

import json
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import typer

from benchmarks.harness import run_cli
from spacy_sapbert.system.terminal import msg

NOTE = (
    "78-year-old woman with atrial fibrillation and high cholesterol. Her mother had a "
    "heart attack. She takes Lipitor and aspirin. Today fever and shortness of breath."
)
TERMS = "heart attack\nH/O Asthma, NOS (J45.9)\nhigh blood presure\nzebra"
NARROW, WIDE, HEIGHT = 380, 1200, 860  # pixels


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
            page.close()
        browser.close()
    return taken


def main(
    kb: Path = typer.Argument(..., help="Knowledge base."),
    output: Path = typer.Argument(..., help="Folder for the pictures."),
    chromium: str = typer.Option(shutil.which("chromium") or "chromium"),
) -> None:
    """Write pictures in light, dark and narrow."""
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
