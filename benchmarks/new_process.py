"""Times of new processes: opening a knowledge base, and the steps of a build."""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import spacy
import typer

from benchmarks.harness import machine_line, print_table
from spacy_sapbert.evaluation.gold_mentions import read_mentions
from spacy_sapbert.formats.registry import read_docs
from spacy_sapbert.kb.folder.versions import read_version
from spacy_sapbert.system.terminal import msg
from spacy_sapbert.vocabularies.concepts import read_concepts

ROUNDS = 5  # processes for each line
COMPONENTS: dict[str, list[str]] = {  # the packages whose entry points spaCy sees
    "none": [],
    "ours": ["spacy_sapbert"],
    "spacy-transformers'": ["spacy_transformers"],
    "all": [""],
}
# Times the steps in a new process whose spaCy sees the entry points of some packages.
PROGRAM = """
import json, sys, time
steps = {}
def timed(name, work):
    start = time.perf_counter()
    result = work()
    steps[name] = time.perf_counter() - start
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
print(json.dumps(steps))
"""
# Runs Python; a process of its own, since the peak memory of a child process is at
# least that of its parent.
LAUNCHER = """
import resource, subprocess, sys, time
start = time.monotonic()
subprocess.run([sys.executable, *sys.argv[1:]], stdout=subprocess.DEVNULL, check=True)
kilobytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(time.monotonic() - start, kilobytes)
"""


def run_program(kb: str, packages: list[str]) -> Any:
    """Return the seconds of each step of `PROGRAM`."""
    command = [sys.executable, "-c", PROGRAM, kb, *packages]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def format_times(values: list[float]) -> str:
    """Format median and range."""
    median = statistics.median(values)
    return f"{median:.3f} s ({min(values):.3f}–{max(values):.3f})"


def measure_opening(
    kb: Path = typer.Argument(..., help="Folder of a knowledge base."),
) -> None:
    """kb/ -> times of `spacy.blank`, and of opening the knowledge base

    `spacy.blank` imports every installed component. So it is timed with no components,
    with ours, with spacy-transformers' (which this package needs) and with all.

    Example: python -m benchmarks.speed opening models/kb
    """
    blank: dict[str, list[float]] = {name: [] for name in COMPONENTS}
    opened: list[dict[str, float]] = []
    for _ in range(ROUNDS):  # in turns, so that a busy moment affects all lines
        for name, packages in COMPONENTS.items():
            blank[name].append(run_program("", packages)["blank"])
        opened.append(run_program(str(kb), ["spacy_sapbert"]))
    msg.text(machine_line())
    rows = [(name, format_times(seconds)) for name, seconds in blank.items()]
    print_table(("Components that spaCy sees", '`spacy.blank("en")`'), rows)
    size = sum(file.size for file in read_version(kb).manifest.files.values())
    rows = [(step, format_times([run[step] for run in opened])) for step in opened[0]]
    print_table((f"{kb.name}, {size / 1e6:,.0f} MB", "Time"), rows[1:])
    msg.text(f"Medians of {ROUNDS} processes, and the ranges.")


def measure_process(command: list[str]) -> tuple[str, str]:
    """Run Python in a new process; return seconds and peak memory in words."""
    launch = [sys.executable, "-c", LAUNCHER, *command]
    done = subprocess.run(launch, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        msg.fail(f"Stopped: {' '.join(command)}", exits=1)
    seconds, kilobytes = map(float, done.stdout.split())
    return f"{seconds:.1f} s", f"{kilobytes / 1024:,.0f} MB"


def count_output(path: Path) -> str:
    """Count what an output of `measure_build` has."""
    if path.name == "kb":
        return f"{read_version(path).manifest.counts.rows:,} rows"
    if path.name == "concepts.jsonl":
        names = [len(concept.aliases) for concept in read_concepts(path)]
        return f"{len(names):,} concepts, {sum(names):,} names"
    lines = path.read_text("utf8").splitlines()
    if path.name == "pairs.tsv":
        return f"{len(lines):,} pairs"
    entities = sum(len(json.loads(line)["entities"]) for line in lines)
    return f"{len(lines):,} documents, {entities:,} entities"


def measure_build(
    vocabulary: Path = typer.Argument(..., help="Folder with MRCONSO."),
    texts: Path = typer.Argument(..., help="PubTator file to link."),
    encoder: str = typer.Option(..., help="Folder or hub id, with mean pooling."),
    out: Path = typer.Option(..., help="Folder for all outputs."),
) -> None:
    """vocabulary + encoder -> table of counts, seconds and peak memory

    Example: python -m benchmarks.speed build $DATA/open-rrf
    $DATA/eval-text/NCBIdevelopset_corpus.txt.gz --encoder models/minilm --out
    results/build
    """
    out.mkdir(parents=True, exist_ok=True)
    docs = read_docs(texts, spacy.blank("en"), format="pubtator")
    lines = [json.dumps({"id": number, "text": doc.text}) for number, doc in docs]
    documents, concepts = out / "documents.jsonl", str(out / "concepts.jsonl")
    documents.write_text("\n".join(lines) + "\n", "utf8")
    sapbert, mean = ["spacy", "sapbert"], ["--pooling", "mean", "--force"]
    kb = ["--kb", str(out / "kb"), "--force"]
    steps = {  # each output is the last argument of its command
        "concepts.jsonl": [*sapbert, "concepts", str(vocabulary), "--output"],
        "pairs.tsv": ["training", "pairs", concepts],
        "kb": [*sapbert, "kb", "build", "--encoder", encoder, *mean, concepts],
        "link.jsonl": [*sapbert, "link", str(documents), *kb, "--output"],
    }
    rows = []
    for name, command in steps.items():
        measured = measure_process(["-m", *command, str(out / name), "--quiet"])
        rows.append((name.partition(".")[0], count_output(out / name), *measured))
    msg.text(machine_line())
    msg.table(rows, header=("Step", "Makes", "Time", "Peak memory"), divider=True)


# Programs and engines: what follows `python -m`, and the options of each command.
MEASURED_BUSY: dict[str, tuple[list[str], list[str]]] = {
    "python -m spacy sapbert": (["spacy", "sapbert"], []),
    "spacy-sapbert": (["spacy_sapbert"], []),
    "the same, OpenVINO bf16": (
        ["spacy_sapbert"],
        ["--engine", "openvino", "--precision", "bf16"],
    ),
}


def measure_busy(
    concepts: Path = typer.Argument(..., help="concepts.jsonl to build of."),
    texts: Path = typer.Argument(..., help="Annotated documents to link."),
    kb: Path = typer.Option(..., help="Knowledge base, exported for OpenVINO."),
    encoder: str = typer.Option(..., help="Folder or hub id, with mean pooling."),
) -> None:
    """concepts + documents -> times of `kb build` and `link` beside a busy process

    Example: python -m benchmarks.speed busy concepts.jsonl notes.txt.gz --kb models/kb
    --encoder models/minilm
    """
    rows = []
    with TemporaryDirectory() as folder:
        built, linked = f"{folder}/kb", f"{folder}/linked.jsonl"
        build = [str(concepts), built, "--encoder", encoder, "--pooling", "mean"]
        link = [str(texts), "--kb", str(kb), "--output", linked]
        for step, arguments in ((["kb", "build"], build), (["link"], link)):
            for name, (program, options) in MEASURED_BUSY.items():
                command = ["-m", *program, *step, *arguments, "--force", "--quiet"]
                idle, _ = measure_process([*command, *options])
                busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
                try:
                    beside, _ = measure_process([*command, *options])
                finally:
                    busy.kill()
                rows.append((f"{name}: {' '.join(step)}", idle, beside))
    msg.text(machine_line())
    print_table(("Command", "Idle", "Beside a busy process"), rows)


# Links mentions, and waits until its input is closed.
LINKER = """
import sys, spacy
from spacy.tokens import Doc, Span
kb, *texts = sys.stdin.readline().rstrip("\\n").split("\\t")
nlp = spacy.blank("en")
encoder = {"@architectures": "spacy-sapbert.OpenVinoEncoder.v1", "precision": "bf16"}
nlp.add_pipe("sapbert_linker", config={"kb": kb, "encoder": encoder})
nlp.initialize()
def make_doc(text):
    doc = nlp.make_doc(text)
    doc.ents = [Span(doc, 0, len(doc), "X")]
    return doc
for _ in nlp.pipe(map(make_doc, texts)):
    pass
print("linked", flush=True)
sys.stdin.read()
"""


def read_memory(process: int) -> dict[str, int]:
    """Return the memory of a process in MB, from /proc: Rss, Pss, Private …"""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text("ascii").splitlines()[1:]
    sizes = {line.split(":")[0]: int(line.split()[1]) // 1024 for line in lines}
    sizes["Private"] = sizes["Private_Clean"] + sizes["Private_Dirty"]
    return sizes


def measure_sharing(
    kb: Path = typer.Argument(..., help="Knowledge base, exported for OpenVINO."),
    mentions: Path = typer.Argument(..., help="Gold mentions to link."),
    packages: Path | None = typer.Option(
        None, help="Folder of the only packages to use, e.g. without torch."
    ),
) -> None:
    """kb/ + mentions -> memory of one process and of two that run OpenVINO

    Example: python -m benchmarks.speed sharing models/kb mentions.tsv
    """
    texts = sorted({gold.mention for gold in read_mentions(mentions)})
    words = [sys.executable, *(["-S"] if packages else []), "-c", LINKER]
    path = f"{os.environ.get('PYTHONPATH', os.getcwd())}{os.pathsep}{packages}"
    environment = {**os.environ, "PYTHONPATH": path} if packages else None
    started: list[subprocess.Popen[str]] = []
    rows = []
    for _ in range(2):
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            words, stdin=pipe, stdout=pipe, text=True, env=environment
        )
        started.append(process)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\t".join([str(kb), *texts]) + "\n")
        process.stdin.flush()
        process.stdout.readline()
        for number, each in enumerate(started, 1):
            sizes = read_memory(each.pid)
            shown = [f"{sizes[name]:,} MB" for name in ("Rss", "Pss", "Private")]
            rows.append((f"{number} of {len(started)}", *shown))
    for process in started:
        process.communicate()
    msg.text(machine_line())
    print_table(("process", "RSS", "PSS", "private"), rows)
