"""Time to open spaCy with and without this package, and a knowledge base.

`spacy.blank` imports every installed component. So it is timed with no components,
with ours, with spacy-transformers' (which this package needs) and with all.
"""

import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import typer
from wasabi import msg

from benchmarks.harness import machine_line, print_table

MODULES_SHOWN = 5
COMPONENTS: dict[str, list[str]] = {  # the packages whose entry points spaCy sees
    "none": [],
    "ours": ["spacy_sapbert"],
    "spacy-transformers'": ["spacy_transformers"],
    "all": [""],
}
# Times the steps in a new process whose spaCy sees the entry points of some packages.
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
import spacy, catalogue
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
    timed("`nlp.add_pipe`", lambda: nlp.add_pipe("sapbert_linker", config=config))
    timed("knowledge base opened and verified (`nlp.initialize`)", nlp.initialize)
    def link(text):
        doc = nlp.make_doc(text)
        doc.ents = [Span(doc, 0, len(doc), "X")]
        return nlp(doc)
    first = "first mention: index and encoder loaded"
    timed(first, lambda: link("not the name of any disease"))
    timed("second mention", lambda: link("nor is this one"))
print(json.dumps([steps, modules]))
"""


def run_program(kb: str, packages: list[str]) -> Any:
    """Return the seconds and the imported packages of each step of `PROGRAM`."""
    command = [sys.executable, "-c", PROGRAM, kb, *packages]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def format_times(values: list[float]) -> str:
    """Format median and range."""
    median = statistics.median(values)
    return f"{median:.3f} s ({min(values):.3f}–{max(values):.3f})"


def format_modules(modules: set[str]) -> str:
    """Format third-party packages; those after the first few are counted."""
    names = sorted(m for m in modules - sys.stdlib_module_names if m[0] != "_")
    more = len(names) - MODULES_SHOWN
    others = f" and {more} others" if more > 0 else ""
    return ", ".join(names[:MODULES_SHOWN]) + others


def measure_opening(
    kb: Path = typer.Argument(..., help="Folder of a knowledge base."),
    rounds: int = typer.Option(5, min=1, help="Processes for each line."),
) -> None:
    """kb/ -> times of `spacy.blank`, and of opening the knowledge base

    Example: python -m benchmarks.speed opening models/kb
    """
    blank: dict[str, list[Any]] = {name: [] for name in COMPONENTS}
    opened: list[Any] = []
    for _ in range(rounds):  # in turns, so that a busy moment affects all lines
        for name, packages in COMPONENTS.items():
            blank[name].append(run_program("", packages))
        opened.append(run_program(str(kb), ["spacy_sapbert"]))
    without = {*blank["none"][0][1]["blank"]}
    rows = [
        (
            name,
            format_times([steps["blank"] for steps, _ in runs]),
            format_modules({*runs[0][1]["blank"]} - without),
        )
        for name, runs in blank.items()
    ]
    msg.text(machine_line())
    header = ("Components that spaCy sees", '`spacy.blank("en")`', "Imports besides")
    msg.table(rows, header=header, divider=True, max_col=80)
    size = sum(file.stat().st_size for file in kb.rglob("*") if file.is_file())
    steps = [step for step in opened[0][0] if step != "blank"]
    times = [(s, format_times([seconds[s] for seconds, _ in opened])) for s in steps]
    print_table((f"{kb.name}, {size / 1e6:,.0f} MB", "Time"), times)
    msg.text(f"Medians of {rounds} processes, and the ranges.")
