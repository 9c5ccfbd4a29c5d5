"""How long opening takes: spaCy with and without us, the component, a knowledge base.

spaCy imports every component that is installed, in `spacy.blank`. So that is timed with
no installed components, with ours, with spacy-transformers' (which we need), and with
all; each in processes of their own.

python -m benchmarks.opening models/kb
"""

import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import typer
from wasabi import msg

from benchmarks.machine import machine_line

# What a process does: of installed components it sees those of some packages.
PROGRAM = """
import json, sys, time
steps, modules = {}, {}
def timed(name, work):
    before, start = {*sys.modules}, time.perf_counter()
    result = work()
    steps[name] = time.perf_counter() - start
    modules[name] = sorted({m.partition(".")[0] for m in {*sys.modules} - before})
    return result
kb, *packages = sys.argv[1:]
spacy = timed("import spacy", lambda: __import__("spacy"))
import catalogue
list_points = catalogue.Registry._get_entry_points
def list_some(self):
    return [
        point
        for point in list_points(self)
        if self.entry_point_namespace != "spacy_factories"
        or any(point.value.startswith(package) for package in packages)
    ]
catalogue.Registry._get_entry_points = list_some
nlp = timed("blank", lambda: spacy.blank("en"))
if kb:
    from spacy.tokens import Span
    config = {"kb": kb}
    linker = timed(
        "add_pipe", lambda: nlp.add_pipe("sapbert_linker", config=config)
    )
    timed("open", nlp.initialize)
    def link(text):
        doc = nlp.make_doc(text)
        doc.ents = [Span(doc, 0, len(doc), "X")]
        return nlp(doc)
    timed("first link", lambda: link("not the name of any disease"))
    timed("second link", lambda: link("nor is this one"))
print(json.dumps([steps, modules]))
"""
NAMES_TOLD = 5
ENVIRONMENTS: dict[str, list[str]] = {
    "no installed components": [],
    "ours": ["spacy_sapbert"],
    "spacy-transformers'": ["spacy_transformers"],
    "all that are installed": [""],
}
STEPS = {
    "add_pipe": "`nlp.add_pipe`",
    "open": "knowledge base opened and verified (`nlp.initialize`)",
    "first link": "first mention: index and encoder loaded",
    "second link": "second mention",
}


def run_program(kb: str, packages: list[str]) -> Any:
    """Run the program in a process of its own.

    kb (str): Folder of a knowledge base; empty to link nothing.
    packages (list[str]): Whose entry points it may see.
    RETURNS (Any): Seconds and top-level modules that were imported, by step.
    """
    command = [sys.executable, "-c", PROGRAM, kb, *packages]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def render_times(values: list[float]) -> str:
    """Write a median and a range."""
    median = statistics.median(values)
    return f"{median:.3f} s ({min(values):.3f}–{max(values):.3f})"


def render_names(modules: set[str]) -> str:
    """List third-party modules, and count those that are too many to list."""
    names = sorted(m for m in modules - sys.stdlib_module_names if m[0] != "_")
    more = f" and {len(names) - NAMES_TOLD} others" if len(names) > NAMES_TOLD else ""
    return ", ".join(names[:NAMES_TOLD]) + more


def main(
    kb: Path = typer.Argument(..., help="Folder of a knowledge base."),
    rounds: int = typer.Option(5, min=1, help="Processes for each line."),
) -> None:
    """kb/ -> tables of times"""
    msg.text(machine_line())
    found: dict[str, list[Any]] = {name: [] for name in ENVIRONMENTS}
    linked: list[Any] = []
    for _ in range(rounds):  # in turns, so that a busy moment spoils no line alone
        for name, packages in ENVIRONMENTS.items():
            found[name].append(run_program("", packages))
        linked.append(run_program(str(kb), ["spacy_sapbert"]))
    none = found["no installed components"][0]
    rows = [
        (
            name,
            render_times([steps["blank"] for steps, _ in runs]),
            render_names({*runs[0][1]["blank"]} - {*none[1]["blank"]}),
        )
        for name, runs in found.items()
    ]
    imports = [steps["import spacy"] for runs in found.values() for steps, _ in runs]
    msg.text(f"`import spacy`: {render_times(imports)}")
    header = ("Components that spaCy sees", '`spacy.blank("en")`', "Imports besides")
    msg.table(rows, header=header, divider=True)
    size = sum(file.stat().st_size for file in kb.rglob("*") if file.is_file())
    rows_kb = [
        (what, render_times([steps[step] for steps, _ in linked]))
        for step, what in STEPS.items()
    ]
    header_kb = (f"{kb.name}, {size / 1e6:,.0f} MB", "Time")
    msg.table(rows_kb, header=header_kb, divider=True)
    msg.text(f"Medians of {rounds} processes, and the ranges.")


if __name__ == "__main__":
    typer.run(main)
