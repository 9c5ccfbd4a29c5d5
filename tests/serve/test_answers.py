"""What a small service answers today, in the files of `answers`: requests in order.

A case has the method, the path and the body of a request, and the status, the answer
and the name of its file; a reader checks that a client could work with it. Scores, and
candidates after the first that only cosines order, are left out: they differ with the
processor. After a change, take the answer off a case, run this test, and read what git
shows.
"""

import base64
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from spacy_sapbert.io.version import __version__
from spacy_sapbert.serve.reviews.store import ReviewStore
from spacy_sapbert.vocabularies.concepts import Concept
from tests.golden import check_golden, read_golden

from .conftest import JSON
from .test_fhir import CONCEPTS

FOLDER = Path(__file__).parent / "answers"
FILES = ("linking", "concepts", "columns", "reconcile", "fhir", "reviews")
MORE = [Concept("C6", ["Mitral insufficiency", "MI"], types=["T047"])]
CODES = {"X": ["C1", "I51.9"]}  # the one is an id, and the other a code of C3 too
MORE += [Concept("C7", ["Heart clinic", "MI"], types=["T046"], codes=CODES)]
COUNTED = ("sapbert_requests_total", "sapbert_linked_total", "sapbert_jobs_waiting")
TIMES = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[\d.]*(\+00:00|Z)?")
# Candidates in a cell of CSV or a value of BioC, and numbers beside them
CANDIDATES = re.compile(r'\[\{"+cui"+: .*?\}\]')
NUMBER = re.compile(r"(?<=[,>])0\.\d+(?=[,<])|^0\.\d{3,}$")
FULL = {"score": (1.0, 100.0), "probability": ()}  # numbers that are kept


def read(body: bytes, digest: str) -> Any:
    """Return an answer without what is different each time."""
    text = body.decode().replace(digest, "DIGEST").replace(__version__, "VERSION")
    today = datetime.now(tz=UTC).date().isoformat()
    text = TIMES.sub("NOW", text).replace(today, "TODAY")
    if text.startswith("# HELP"):  # metrics, without times
        return [line for line in text.splitlines() if line.startswith(COUNTED)]
    try:
        return shorten(json.loads(text))
    except ValueError:
        return [shorten_line(line) for line in text.splitlines()]


def shorten_line(line: str) -> Any:
    """Return a line of a file, or what is in it if it is JSON."""
    try:
        return shorten(json.loads(line)) if line.startswith("{") else shorten_text(line)
    except ValueError:
        return shorten_text(line)


def shorten_text(text: str) -> str:
    """Return a text without scores if it has candidates, which get a line each."""

    def replace(found: re.Match[str]) -> str:
        return str(list_shown(json.loads(found[0].replace('""', '"'))))

    short = CANDIDATES.sub(replace, text)
    is_plain = short == text and not NUMBER.fullmatch(text)
    return text if is_plain else NUMBER.sub("NUMBER", short)


def list_shown(candidates: list[Any]) -> list[str]:
    """Return the first candidate, and those of score 1."""
    names = [(c.get("score"), f"{c['cui']}, {c['alias']}") for c in candidates]
    return [text for n, (score, text) in enumerate(names) if not n or score == 1]


def shorten(value: Any) -> Any:
    """Return an answer without scores, and with a line for each candidate."""
    if isinstance(value, list):
        return [shorten(part) for part in value]
    if isinstance(value, str):
        return shorten_text(value)
    if not isinstance(value, dict):
        return value
    short = {}
    for name, part in value.items():
        if name == "candidates" and isinstance(part, list):
            short[name] = list_shown(part)
        elif isinstance(part, float) and part not in FULL.get(name, (part,)):
            continue
        else:
            short[name] = shorten(part)
    return short


def encode(body: Any) -> tuple[bytes, dict[str, str]]:
    """Return the bytes of a body and its headers; "form" and "text" are encoded."""
    if isinstance(body, str):
        return body.encode(), {}
    if body is None:
        return b"", JSON
    if isinstance(body, dict) and "form" in body:
        form = {name: json.dumps(value) for name, value in body["form"].items()}
        return urlencode(form).encode(), {}
    if isinstance(body, dict) and isinstance(body.get("files"), list):
        files = [
            {
                "name": file["name"],
                "content": base64.b64encode(file["text"].encode()).decode(),
            }
            if "text" in file
            else file
            for file in body["files"]
        ]
        body = {**body, "files": files}
    return json.dumps(body).encode(), JSON


def test_answers_are_those_of_the_last_version(open_local, make_kb, tmp_path):
    store = ReviewStore(tmp_path / "reviews.db")
    concepts = [*CONCEPTS, *MORE]
    client = open_local(make_kb(tmp_path, concepts, backend="exact"), store)
    digest = client.get("/kb").json()["digest"]
    found: dict[str, list[Any]] = {}
    for name in FILES:
        found[name] = []
        for method, path, body, *_ in read_golden(FOLDER / f"{name}.json"):
            sent, headers = encode(body)
            place = quote(path, safe="/?=&$%+:,|;")
            answer = client.send(method, place, sent, headers)
            gives = [answer.status, read(answer.body, digest)]
            if file := answer.headers.get("content-disposition"):
                gives.append(file)
            found[name].append([method, path, body, gives])
    store.close()
    assert '"gone"' not in client.log.getvalue()  # nobody has left
    for name, cases in found.items():
        check_golden(FOLDER / f"{name}.json", cases)
