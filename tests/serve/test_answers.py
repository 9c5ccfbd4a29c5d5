"""What a small service answers today, in `answers.jsonl`: requests in order.

A line has the method, the path and the body of a request, the status and the answer,
with the name of its file. After a change, keep the first three of a line, run this
test, and read what git shows.
"""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import srsly

from spacy_sapbert.io.version import __version__
from spacy_sapbert.serve.reviews.store import ReviewStore
from spacy_sapbert.vocabularies.concepts import Concept
from tests.golden import check_golden

from .conftest import JSON
from .test_fhir import CONCEPTS

FILE = Path(__file__).parent / "answers.jsonl"
MORE = [Concept("C6", ["Mitral insufficiency", "MI"], types=["T047"])]
CODES = {"X": ["C1", "I51.9"]}  # the one is an id, and the other a code of C3 too
MORE += [Concept("C7", ["Heart clinic", "MI"], types=["T046"], codes=CODES)]
COUNTED = ("sapbert_requests_total", "sapbert_linked_total", "sapbert_jobs_waiting")
TIMES = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[\d.]*(\+00:00|Z)?")


def read(body: bytes, digest: str) -> Any:
    """Return an answer without what is different each time."""
    text = body.decode().replace(digest, "DIGEST").replace(__version__, "VERSION")
    today = datetime.now(tz=UTC).date().isoformat()
    text = TIMES.sub("NOW", text).replace(today, "TODAY")
    if text.startswith("# HELP"):  # metrics, without times
        return [line for line in text.splitlines() if line.startswith(COUNTED)]
    try:
        return json.loads(text)
    except ValueError:
        return text.splitlines()


def test_answers_are_those_of_the_last_version(open_local, make_kb, tmp_path):
    store = ReviewStore(tmp_path / "reviews.db")
    concepts = [*CONCEPTS, *MORE]
    client = open_local(make_kb(tmp_path, concepts, backend="exact"), store)
    digest = client.get("/kb").json()["digest"]
    known = [*srsly.read_jsonl(FILE)]
    found = []
    for method, path, body, *_ in known:
        if isinstance(body, str):
            answer = client.send(method, path, body.encode())
        else:
            sent = b"" if body is None else json.dumps(body).encode()
            answer = client.send(method, path, sent, JSON)
        found.append([method, path, body, answer.status, read(answer.body, digest)])
        if name := answer.headers.get("content-disposition"):
            found[-1].append(name)
    store.close()
    assert '"gone"' not in client.log.getvalue()  # nobody has left
    if min(map(len, known)) < 5:
        srsly.write_jsonl(FILE, found)
        pytest.fail(f"{FILE} is written anew: read what git shows.")
    check_golden(found, known)
