"""What configs, YAML, JSON and tables of the pages name exists, with these defaults."""

import inspect
import json
import re
import shlex
import tomllib
from collections import ChainMap
from collections.abc import Iterable
from dataclasses import asdict
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest
import spacy
import srsly
from confection import Config
from spacy import Language
from spacy.language import DEFAULT_CONFIG

from spacy_sapbert.cli.main import app
from spacy_sapbert.evaluation.accuracy import TIES
from spacy_sapbert.evaluation.calibration import parse_criterion
from spacy_sapbert.evaluation.regression_cases import read_cases
from spacy_sapbert.formats import format_table
from spacy_sapbert.formats.format_table import list_formats
from spacy_sapbert.kb.indexes import backends
from spacy_sapbert.kb.indexes.backends import BACKENDS
from spacy_sapbert.linking.candidates import Candidate
from spacy_sapbert.linking.link import NIL_NOTES, TRUNCATED
from spacy_sapbert.linking.options import EVIDENCE
from spacy_sapbert.mapping.run import list_columns
from spacy_sapbert.verification.updates import MOVED, RELINKED, REVIEW
from spacy_sapbert.verification.verdicts import VERDICTS
from spacy_sapbert.vocabularies import reader_table
from spacy_sapbert.vocabularies.rrf.tables import COLUMNS
from spacy_sapbert.vocabularies.tables.columns import CODES, ROLES, STATUS
from tests.commands import make_tree
from tests.test_pages import PROJECT, ROOT
from tests.test_shell_lines import BLOCK, USER_PAGES, parse
from training.corpora.research import READERS
from training.losses.functions import registry

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
pytest.importorskip("prometheus_client", reason="the extra `serve` is not installed")

from spacy_sapbert.serve import access, agent_tools, application, settings  # noqa: E402
from spacy_sapbert.serve.protocols import fhir  # noqa: E402

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"][
    "optional-dependencies"
]
COMMAND = re.compile(r"spacy[- ]sapbert ((?:[^;|&<>()#]|\n)+)")
TABLE = re.compile(r"(?:^\|.*\|\n)+", re.MULTILINE)
GENERATED = re.compile(r"<!-- (.*): start -->.*?<!-- \1: end -->", re.DOTALL)
CODE = re.compile(r"`([^`]+)`")
DOT = re.compile(r"\.")


class Block(NamedTuple):
    """A fenced block of a page."""

    page: str
    language: str
    text: str


class Table(NamedTuple):
    """A table of a page: its head, and the other rows."""

    page: str
    head: tuple[str, ...]
    rows: list[list[str]]

    def codes(self, column: int = 0) -> list[str]:
        """Return all that is code in a column."""
        return [key for row in self.rows for key in CODE.findall(row[column])]


def list_blocks(*languages: str) -> list[Block]:
    """Return the blocks of all pages for users in some languages."""
    return [
        Block(page.stem, match[2], inspect.cleandoc(match[3]))
        for page in USER_PAGES
        for match in BLOCK.finditer(page.read_text("utf8"))
        if match[2] in languages
    ]


def list_tables(page: Path) -> list[Table]:
    """Return the tables of a page that nothing generates."""
    found = []
    for match in TABLE.finditer(GENERATED.sub("", page.read_text("utf8"))):
        lines = [re.split(r"(?<!\\)\|", line)[1:-1] for line in match[0].splitlines()]
        head, _, *rows = [[cell.strip() for cell in line] for line in lines]
        found.append(Table(page.stem, tuple(head), rows))
    return found


TABLES = [table for page in USER_PAGES for table in list_tables(page)]


def find_table(page: str, *head: str) -> Table:
    """Return the table of a page whose head begins with these cells."""
    (found,) = [
        table
        for table in TABLES
        if table.page == page and table.head[: len(head)] == head
    ]
    return found


def make_id(block: Block) -> str:
    return f"{block.page}: {block.text[:30]!r}"


@pytest.mark.parametrize("block", list_blocks("ini"), ids=make_id)
def test_config_of_a_page_is_one_of_spacy(block):
    sections = re.findall(r"^\[(.+)\]$", block.text, re.MULTILINE)
    above = {name[: dot.start()] for name in sections for dot in DOT.finditer(name)}
    heads = "".join(f"[{section}]\n" for section in sorted(above - {*sections}))
    config = Config().from_str(heads + block.text, interpolate=False)
    nlp = spacy.blank("en")
    for name, given in config.pop("components", {}).items():
        nlp.add_pipe(given.pop("factory", name), name, config=given)  # opens no kb
    for name, given in config.get("initialize", {}).pop("components", {}).items():
        pipe = nlp.get_pipe(name) if name in nlp.pipe_names else nlp.add_pipe(name)
        assert given.keys() <= inspect.signature(pipe.initialize).parameters.keys()
    weights = config.get("training", {}).pop("score_weights", {})
    scores = [
        Language.get_factory_meta(name).default_score_weights
        for name in ("ner", "sapbert_linker")
    ]
    assert weights.keys() <= ChainMap(*scores).keys()
    for section, given in config.items():
        assert given.keys() <= DEFAULT_CONFIG[section].keys(), section


@pytest.mark.parametrize("block", list_blocks("yaml"), ids=make_id)
def test_yaml_of_a_page_has_cases_or_commands(block, tmp_path):
    path = tmp_path / "cases.yaml"
    path.write_text(block.text, "utf8")
    data = srsly.read_yaml(path)
    if isinstance(data, list):
        assert len([*read_cases(path)]) == len(data)
        return
    steps = [step for job in data["jobs"].values() for step in job["steps"]]
    found = [COMMAND.findall(step.get("run", "")) for step in steps]
    commands = [command for commands in found for command in commands]
    assert commands
    for command in commands:
        parse(make_tree(app), shlex.split(command))


@pytest.mark.parametrize("block", list_blocks("json", "xml"), ids=make_id)
def test_json_and_xml_of_a_page_are_whole(block):
    parse = json.loads if block.language == "json" else ElementTree.fromstring
    parse(block.text)


def test_concept_of_a_page_is_read(tmp_path):
    (block,) = [block for block in list_blocks("json") if block.page == "vocabularies"]
    path = tmp_path / "concepts.jsonl"
    path.write_text(block.text, "utf8")
    (concept,) = reader_table.read_vocabulary(path)
    data = json.loads(block.text)
    del data["name"]  # it is the first alias
    assert {name: getattr(concept, name) for name in data} == data


def list_requests() -> set[str]:
    """Return the requests that the service answers: "POST /link"."""
    return {
        f"{method} {route.path}"
        for router in application.ROUTERS
        for route in router.routes
        for method in route.methods
    }


def list_architectures() -> set[str]:
    """Return the encoders of this package that a config can name."""
    points = entry_points(group="spacy_architectures")
    return {point.name for point in points if ".encoder." in point.value}


# What the first column of a table has, by the page and the beginning of its head.
KEYS: dict[tuple[str, ...], Iterable[str]] = {
    ("agents", "tool"): agent_tools.TOOLS,
    ("corpora", "`--format`", "own options"): list_formats("read"),
    ("corpora", "`--format`", "layout"): READERS,
    ("evaluation", ""): TIES,
    ("install", "extra"): EXTRAS,
    ("knowledge_base", "`--backend`"): BACKENDS,
    ("linker", "key"): Candidate.__annotations__,
    ("linker", "note"): (*NIL_NOTES, TRUNCATED),
    ("linker", "evidence"): EVIDENCE,
    ("linker", "`@architectures`"): list_architectures(),
    ("protocols", "operation"): (
        *(f"{kind}/${name}" for kind, name, *_ in fhir.OPERATIONS),
        "metadata",
    ),
    ("service", "name"): asdict(settings.DEFAULT_LIMITS),
    ("training", "step"): PROJECT["workflows"]["all"],
    ("training", "file in `training/configs`"): [
        path.name for path in (ROOT / "training" / "configs").glob("*.cfg")
    ],
    ("verify", "verdict"): VERDICTS,
    ("verify", "`update`"): (MOVED, RELINKED, REVIEW),
}
# Those of which not all are named, or not by a single word, and what compares them.
OTHERS = {
    ("architecture", "package"): "tests/test_layout.py",
    ("architecture", "begin with"): "test_functions_of_the_page_of_architecture",
    ("evaluation", "`--criterion`"): "test_criteria",
    ("knowledge_base", "command"): "tests/test_shell_lines.py",
    ("knowledge_base", "encoder"): "names on the hub",
    ("mapping", "column"): "test_columns_of_map",
    ("service", "request"): "test_requests_of_the_service",
    ("training", "registered"): "test_registered_functions_have_these_arguments",
    ("vocabularies", "role"): "test_roles_of_columns",
    ("vocabularies", "table"): "test_tables_of_releases",
}
OTHER_SOFTWARE = "migration"  # the page whose first columns have names of it


@pytest.mark.parametrize("where", KEYS, ids=" ".join)
def test_table_of_a_page_has_all_keys(where):
    assert sorted(find_table(*where).codes()) == sorted(KEYS[where])


def test_tables_whose_rows_begin_with_keys_are_compared():
    known = {find_table(*where).head: where[0] for where in (*KEYS, *OTHERS)}
    for table in TABLES:
        if all(row[0].startswith("`") for row in table.rows):
            assert known.get(table.head) == table.page or table.page == OTHER_SOFTWARE


def test_defaults_of_the_table_of_limits():
    rows = find_table("service", "name").rows
    shown = {CODE.findall(name)[0]: default for name, _, default in rows}
    limits = asdict(settings.DEFAULT_LIMITS)
    assert shown == {name: f"{value:,.0f}" for name, value in limits.items()}


def test_roles_of_the_service():
    nobody, *roles = find_table("service", "role").rows
    assert [role for role, _ in roles] == [*access.ROLES]
    assert ["/", *CODE.findall(nobody[1])] == [*access.OPEN]


def test_requests_of_the_service():
    known = list_requests()
    for request, _ in find_table("service", "request").rows:
        method, *paths = re.findall(r"[A-Z]{3,}|/[\w{}/]+", request)
        for path in paths:
            assert re.sub(r"{\w+}", "", f"{method} {path}") in {
                re.sub(r"{[\w:]+}", "", each) for each in known
            }


def test_parameters_of_operations():
    models = {f"{kind}/${name}": model for kind, name, model, _ in fhir.OPERATIONS}
    for operations, parameters in find_table("protocols", "operation").rows:
        for operation in CODE.findall(operations):
            if operation in models:
                named = {*CODE.findall(parameters)}
                assert named <= models[operation].model_fields.keys()


def test_options_of_formats():
    command = make_tree(app).get_command(None, "convert")
    options = {
        name for each in command.params for name in (*each.opts, *each.secondary_opts)
    }
    assert {*find_table("corpora", "`--format`", "own options").codes(1)} <= options


def test_columns_of_map():
    keys = find_table("mapping", "column").codes()
    assert {*keys} - {"match_2_id"} <= {*list_columns(1)} | {"--split"}
    assert {*list_columns(0)} <= {*keys}


def test_criteria():
    for criterion in find_table("evaluation", "`--criterion`").codes():
        parse_criterion(criterion)


def test_roles_of_columns():
    keys = find_table("vocabularies", "role").codes()
    hidden = {STATUS}  # of MedCAT's tables alone
    assert {key.partition(".")[0] for key in keys} == {*ROLES.names, CODES} - hidden


def test_tables_of_releases():
    keys = find_table("vocabularies", "table").codes()
    assert {key.removesuffix(".RRF") for key in keys} <= COLUMNS.keys()


def test_functions_of_the_page_of_architecture():
    for row in find_table("architecture", "begin with").rows:
        function, module = CODE.findall(row[0])
        assert hasattr(import_module(f"spacy_sapbert.{module}"), function)


def test_registered_functions_have_these_arguments():
    """A name without `@` is one of the kind before it, in the same form."""
    kind, found = "", set()
    for names, arguments in find_table("training", "registered").rows:
        shown = dict(re.findall(r"`(\w+)`(?: \(.+?\))? ([\w.]+)", arguments))
        for name in CODE.findall(names):
            match = re.fullmatch(r'@(\w+) = "spacy-sapbert\.(\w+)\.v1"', name)
            kind, name = match.groups() if match else (kind, name)
            found.add((kind, name))
            make = registry.get(kind, f"spacy-sapbert.{name}.v1")
            parameters = inspect.signature(make).parameters
            if name != "NoMiner":  # it stands in a row with another one
                defaults = {key: f"{one.default}" for key, one in parameters.items()}
                whole = {key: text.removesuffix(".0") for key, text in defaults.items()}
                assert shown == whole, name
    known = {
        (kind, name.split(".")[1])
        for kind in ("losses", "miners", "schedules", "loggers")
        for name in getattr(registry, kind).get_all()
        if name.startswith("spacy-sapbert.")
    }
    assert found == known


def test_groups_of_entry_points():
    groups = {*find_table("extending", "what").codes(1)}
    ours = {reader_table.PLUGINS, format_table.PLUGINS, backends.PLUGINS}
    kinds = {"losses", "miners", "schedules", "loggers"}
    assert groups == ours | {"spacy_sapbert_losses"} | {
        f"…_{kind}" for kind in kinds - {"losses"}
    }


def test_keys_of_the_page():
    script = (ROOT / "spacy_sapbert" / "serve" / "page" / "keys.js").read_text("utf8")
    shown = {*re.findall(r'shown: "(.+?)"', script)}
    cells = [row[0] for row in find_table("page", "key").rows]
    keys = {part.strip("` ") for cell in cells for part in cell.split(", ")}
    assert {key.replace("`", "") for key in keys} == shown
