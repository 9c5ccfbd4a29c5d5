"""The commands that the pages show are understood, and run as they are typed.

Those of README and docs run on small files. Those of the experiments need corpora: they
are only parsed.
"""

import gzip
import re
import shlex
import shutil
from glob import glob
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer
from spacy.cli._util import app as spacy_app

from spacy_sapbert.cli.main import app as package_app
from spacy_sapbert.io.tables.files import read_rows, write_table
from spacy_sapbert.kb.learned_order import names
from tests.commands import invoke, make_tree
from training.__main__ import app as training_app
from training.trainer.settings import parse_overrides, read_config

ROOT = Path(__file__).parents[1]
USER_PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES = [
    *USER_PAGES,
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "experiments").rglob("README.md")),
]
MODULES = {"training": training_app, "spacy": spacy_app}
APPS = {"spacy sapbert": package_app, "-m training": training_app}
BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`((?:python -m (?:training|spacy)|spacy sapbert) [^`]+)`")
# what the shell gives to a command: up to the next one
WORDS = r"""((?:[^;|&<>()#'"]|'[^']*'|"[^"]*")+)"""
COMMAND = re.compile(rf"(?:^|[ ;{{])(spacy sapbert|-m training) {WORDS}")
PLACEHOLDERS = re.compile(r"…|COMMAND|→|\bN$")
OURS = re.compile(r"spacy |python -m ")
WRONG = ("NoSuchOption", "NoSuchCommand", "UsageError")


class Line(NamedTuple):
    text: str
    whole: bool  # it is in a block; a sentence may name a command without arguments


def list_lines(page: Path) -> list[Line]:
    """Return the shell lines of a page, in order."""
    found = []
    text = page.read_text("utf8")
    places = [(match.start(), match[3], match[2]) for match in BLOCK.finditer(text)]
    prose = BLOCK.sub(lambda match: " " * len(match[0]), text)
    places += [(match.start(), match[1], None) for match in INLINE.finditer(prose)]
    for _, lines, language in sorted(places):
        if language is None:
            found.append(Line(" ".join(lines.split()), False))
        elif language == "bash":
            joined = lines.replace("\\\n", " ").splitlines()
            found += [Line(line.strip(), True) for line in joined if line.strip()]
    return [line for line in found if not PLACEHOLDERS.search(line.text)]


LINES = {page.relative_to(ROOT).as_posix(): list_lines(page) for page in PAGES}
COMMANDS = [
    (page, *match, line.whole)
    for page, lines in LINES.items()
    for line in lines
    for match in COMMAND.findall(line.text)
]


def parse(command: Any, words: list[str], context: Any = None) -> Any:
    """Return the context of the command at the end, which is not run."""
    made = command.make_context("typed", words, parent=context)
    if not hasattr(command, "resolve_command"):
        return made
    _, inner, rest = command.resolve_command(made, [*made._protected_args, *made.args])
    return parse(inner, rest, made)


@pytest.mark.parametrize(
    ("page", "program", "words", "whole"),
    COMMANDS,
    ids=[f"{page}: {words[:40]}" for page, _, words, _ in COMMANDS],
)
def test_command_of_a_page_is_understood(page, program, words, whole, monkeypatch):
    monkeypatch.chdir(ROOT)
    typed = shlex.split(re.sub(r"\$\w+", "0", words))  # variables of the shell
    try:
        context = parse(make_tree(APPS[program]), typed)
    except Exception as error:  # of the copy of click in typer, or of click
        if whole or type(error).__name__ in WRONG:
            raise
        return
    if context.args:  # settings of training
        read_config(context.params["config_path"], parse_overrides(context.args))


# Lines that do not run below, by their beginning, and where they run.
ELSEWHERE = {
    "pip |python3 -m venv|docker |source ": ".ci/environments",
    "python -m spacy project": "tests/test_project.py",
    "spacy sapbert serve|curl ": "tests/serve/test_server.py",
    "spacy sapbert mcp": "tests/serve/test_agent.py",
    "spacy sapbert fetch-encoder": "tests/encoder/test_minilm.py",
    "spacy sapbert kb set models/kb ef=": "tests/kb/test_build.py",
}
PAGES_ELSEWHERE = {
    "docs/table1.md": "tests/evaluation/test_table1.py",
    "docs/mapping.md": "tests/mapping/test_run.py",
}
# The files that the lines of a page read: name on the page=file that is put there.
# A folder of assets/sample and tests is there already; `store` has the others.
NEEDS = {
    "README.md": """assets/umls=assets/sample models/sample/kb=kb
        cambridgeltl/SapBERT-from-PubMedBERT-fulltext=encoder
        notes.txt=assets/sample/notes/ct_report.txt""",
    "docs/commands.md": """models/kb=kb notes=assets/sample/notes
        visits.parquet=visits.csv notes.jsonl.gz=linked.jsonl""",
    "docs/corpora.md": """corpus/NCBIdevelopset_corpus.txt=mesh.txt my_pipeline=pipeline
        AskAPatient.fold-0.train.txt=askapatient.txt""",
    "docs/deployment.md": "models/sample/kb=kb",
    "docs/evaluation.md": """models/kb=kb models/sample/kb=kb models/pipeline=pipeline
        corpus/dev.tsv=corpus/dev.tsv corpus/train.tsv=corpus/dev.tsv
        base.jsonl=predictions.jsonl
        es_1k_test_query.txt=query.txt corpus/xlbel_ru.test.tsv=corpus/dev.tsv
        results/base.json=metrics.json results/trained-0.json=metrics.json
        results/trained-1.json=metrics.json cases/ward.yaml=cases.yaml
        corpus/train.tsv.gz=corpus/dev.tsv corpus/dev.tsv.gz=corpus/dev.tsv""",
    "docs/first_hour.md": "models/sample/kb=kb models/minilm=encoder",
    "docs/formats.md": "models/kb=kb notes=assets/sample/notes",
    "docs/hierarchies.md": """corpus/concepts.jsonl=concepts.jsonl
        assets/umls=assets/sample
        microsoft/BiomedNLP-BiomedBERT-base-uncased-abstract-fulltext=encoder""",
    "docs/install.md": "",
    "docs/knowledge_base.md": """corpus/concepts.jsonl=concepts.jsonl
        models/encoder=encoder models/umls-2024AA=kb models/umls-2024AB=release
        local.jsonl=local.jsonl old.jsonl=concepts.jsonl new.jsonl=local.jsonl""",
    "docs/languages.md": """assets/umls=assets/sample
        FacebookAI/xlm-roberta-base=encoder""",
    "docs/linker.md": "models/kb=kb train.txt=assets/sample/annotated.txt",
    "docs/migration.md": """models/kb=kb terms.txt=terms.txt
        usagi.csv=tests/vocabularies/examples/table/usagi.csv terms.csv=codes.csv
        umls.jsonl=tests/vocabularies/examples/scispacy/umls.jsonl""",
    "docs/speed.md": "models/kb=kb",
    "docs/stability.md": "models/kb=kb",
    "docs/teaching.md": "models/sample/kb=kb",
    "docs/training.md": """assets/umls=assets/sample models/minilm=encoder
        corpus/concepts.jsonl=concepts.jsonl corpus/ncbi/train.tsv=corpus/dev.tsv
        corpus/ncbi/concepts.jsonl=concepts.jsonl titles.en-fi.tsv.gz=titles.tsv
        en-fi.txt=assets/sample/words.en-es.txt""",
    "docs/verify.md": """models/sample/kb=kb claims.csv=codes.csv models/umls-2024AA=kb
        models/umls-2024AB=release linked.jsonl=linked.jsonl""",
    "docs/vocabularies.md": """assets/umls=umls diagnoses.xlsx=assets/sample/codes.csv
        desc2024.gz=tests/vocabularies/examples/mesh/desc2024.xml hp.obo=hp.obo
        mondo.json.gz=mondo.json""",
}
TEXTS = {
    "askapatient.txt": "C0018681\tHeadache\tmy head hurts\n",
    "codes.csv": "term,code,label\nfever,C0027051,Fever\n",
    "cases.yaml": "- mention: fever\n  expected: C0015967\n",
    "hp.obo": "[Term]\nid: HP:1\nname: adult diabetes\nxref: MESH:D003924\n",
    "local.jsonl": '{"cui": "X:1", "name": "Ward fever"}\n',
    "mesh.txt": "1|t|Fever.\n1|a|Pain.\n1\t0\t5\tFever\tDisease\tD005334\n",
    "mondo.json": """{"graphs": [{"nodes": [{
        "id": "http://purl.obolibrary.org/obo/MONDO_1", "lbl": "late diabetes",
        "type": "CLASS", "meta": {"xrefs": [{"val": "MESH:D003924"}]}}]}]}""",
    "query.txt": "C0015967||fiebre\n",
    "terms.txt": "heart attack\nfever\n",
    "titles.tsv": "heart failure\tsydämen vajaatoiminta\n",
    "visits.csv": "visit_id,ward,day,note\n1,A,Monday,She has a fever.\n",
}

MESH_ROW = (
    "C0011860|ENG|S|L9|PF|S9|Y|A9||||MSH|MH|D003924|Diabetes Mellitus, Type 2|0|N||\n"
)


def is_run(line: Line) -> bool:
    """Return whether a line runs below: it is complete, and does not run elsewhere."""
    if any(re.match(beginning, line.text) for beginning in ELSEWHERE):
        return False
    found = COMMAND.search(line.text)
    if line.whole or not found:
        return line.whole
    try:
        parse(make_tree(APPS[found[1]]), shlex.split(found[2]))
    except Exception:
        return False
    return True


def make_app(module: str) -> typer.Typer:
    """Return the command line of a script of the experiments."""
    app = typer.Typer()
    app.command()(import_module(module).main)
    return app


def run_line(line: str) -> None:
    """Run a line in this process, as the shell splits it; it writes what it names.

    A training takes two steps.
    """
    words = [
        name for word in shlex.split(line) for name in sorted(glob(word)) or [word]
    ]
    if words[0] == "spacy":
        app, words = package_app, words[2:]
    else:  # python -m MODULE
        app, words = MODULES.get(words[2]) or make_app(words[2]), words[3:]
    few = ["--training.steps", "2"] if words[0] == "train" else []
    invoke(*words, *few, app=app, code=0)
    paths = [word for word in words if re.search(r"^[^-]\S*(/|\.[a-z]+(\.gz)?$)", word)]
    assert [path for path in paths if not Path(path).exists()] == []


@pytest.fixture(scope="module")
def store(demo_folder, tiny_encoder, tmp_path_factory) -> Path:
    """A folder with what the pages read."""
    folder = tmp_path_factory.mktemp("store")
    shutil.copytree(demo_folder / "models" / "sample" / "kb", folder / "kb")
    shutil.copytree(tiny_encoder, folder / "encoder")
    for name in ("assets", "tests", "training"):
        (folder / name).symlink_to(ROOT / name)
    place(ROOT / "assets" / "sample" / "mentions.tsv", folder / "corpus" / "dev.tsv")
    for name, text in TEXTS.items():
        (folder / name).write_text(text, "utf8")
    place(folder / "kb", folder / "release")
    place(ROOT / "assets" / "sample", folder / "umls")
    rows = folder / "umls" / "MRCONSO.RRF"
    rows.write_text("".join(sorted([*rows.open(), MESH_ROW])), "utf8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for line in (
            "spacy sapbert concepts assets/sample -o concepts.jsonl --languages all",
            "spacy sapbert assemble kb pipeline",
            "spacy sapbert kb add release --cui C0015967 --alias 'hot forehead'",
            "spacy sapbert link kb assets/sample/notes -o linked.jsonl",
            "spacy sapbert evaluate kb corpus/dev.tsv -o metrics.json"
            " --predictions predictions.jsonl",
        ):
            run_line(line)
    return folder


def place(source: Path, target: Path) -> None:
    """Put a file or a folder where a page has it, compressed as its name says."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target)
    elif target.suffix == ".gz":
        target.write_bytes(gzip.compress(source.read_bytes()))
    elif source.suffix == ".csv" != target.suffix:
        write_table(target, *[*read_rows(source)][:1], [*read_rows(source)][1:])
    else:
        shutil.copy(source, target)


@pytest.fixture
def lines(page, store, tmp_path, monkeypatch) -> list[str]:
    """The lines of a page, in a folder with what they read."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "training").symlink_to(ROOT / "training")
    place(ROOT / "assets" / "sample", tmp_path / "assets" / "sample")
    for need in NEEDS[page].split():
        target, source = need.split("=")
        place(store / source, tmp_path / target)
    return [line.text for line in LINES[page] if is_run(line)]


@pytest.mark.parametrize("page", NEEDS)
def test_lines_of_a_page_run_as_typed(lines, few_trees, monkeypatch):
    for constant in ("MOST_NAMES", "MOST_OTHERS", "MANY"):  # an order in a second
        monkeypatch.setattr(names, constant, getattr(names, constant) // 100)
    for line in lines:
        if OURS.match(line):
            run_line(line)


@pytest.mark.parametrize("page", ["docs/corpora.md"])
def test_lines_with_other_programs_run(lines, new_process):
    others = [line for line in lines if not OURS.match(line)]
    new_process.run(["bash", "-e", "-c", "\n".join(others)], check=True)
    written = Path("corpus/askapatient/train-0.txt").read_text("utf8")
    assert written == "my head hurts||C0018681\n"


def test_lines_of_all_pages_run_somewhere():
    pages = {page.relative_to(ROOT).as_posix() for page in USER_PAGES}
    found = [(page, line) for page in pages for line in LINES[page] if is_run(line)]
    assert {page for page, _ in found} == NEEDS.keys() | PAGES_ELSEWHERE.keys()
    others = {page for page, line in found if not OURS.match(line.text)}
    assert others - PAGES_ELSEWHERE.keys() == {"docs/corpora.md"}
    for path in ELSEWHERE.values():
        assert (ROOT / path).is_file(), path
    for page, path in PAGES_ELSEWHERE.items():
        assert Path(page).name in (ROOT / path).read_text("utf8")
