"""Teaches the knowledge base of a service what its reviewers have decided."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typing_extensions import TypedDict

from ...errors import Errors, SapbertError
from ...formats.gold import NIL
from ...kb.knowledge_base import KnowledgeBase
from ...kb.teaching.documents import AnnotatedDocument
from ...kb.teaching.teach import teach_documents
from ...pipeline.teaching import annotate
from ..logs import EventLog, describe_exception
from ..problems import RequestError, describe_problem, failed
from ..service import Service
from .export import group_decisions
from .store import ReviewStore

SOURCE = "reviews"
NONE, RUNNING, DONE, FAILED = "none", "running", "done", "failed"


def annotate_reviews(store: ReviewStore) -> Iterator[AnnotatedDocument]:
    """Yield the decisions of all reviewers as annotated documents."""
    for _, document, decisions in group_decisions(store, None):
        mentions = [
            (
                document.text[one.start : one.end],
                [] if one.chosen in (None, NIL) else [[one.chosen]],
            )
            for one in decisions
        ]
        yield annotate(SOURCE, document.text, mentions)


class TeachingState(TypedDict):
    """How far the teaching is.

    Attributes:
        report: Of `TeachingReport`.
        folder: The taught copy; `used` = the service uses it.
    """

    state: str
    report: dict[str, Any] | None
    error: dict[str, str] | None
    folder: str | None
    used: bool


class Teacher:
    """Makes a taught copy of the knowledge base beside the file of the reviews.

    One copy is made at a time; the service uses it when `switch` is called.
    """

    def __init__(self, service: Service, store: ReviewStore, log: EventLog) -> None:
        self.service = service
        self.store = store
        self.log = log
        self.lock = threading.Lock()
        self.state = NONE
        self.report: dict[str, Any] | None = None
        self.error: dict[str, Any] | None = None
        self.taught: KnowledgeBase | None = None

    def describe(self) -> TeachingState:
        """Return how far it is, and whether there is a new version."""
        taught = self.taught
        return {
            "state": self.state,
            "report": self.report,
            "error": self.error,
            "folder": str(taught.folder) if taught else None,
            "used": taught is not None and taught is self.service.kb,
        }

    def start(self, *, force: bool) -> None:
        """Start to teach.

        Args:
            force: Make the copy also if nothing gets better.
        """
        with self.lock:
            if self.state == RUNNING:
                raise RequestError(Errors.E468, 409)
            self.state, self.report, self.error = RUNNING, None, None
        thread = threading.Thread(
            target=self.run, args=(force,), name="teacher", daemon=True
        )
        thread.start()

    def choose_folder(self) -> Path:
        """Return a folder beside the reviews that does not exist."""
        parent = self.store.path.with_name(f"{self.store.path.name}.taught")
        parent.mkdir(exist_ok=True)
        parent.chmod(0o700)  # the names in it are texts of the documents
        used = [int(path.name) for path in parent.iterdir() if path.name.isdecimal()]
        return parent / str(max(used, default=0) + 1)

    def run(self, force: bool) -> None:
        """Teach, and keep the report."""
        try:
            folder = self.choose_folder()
            kb, report = teach_documents(
                self.service.kb,
                annotate_reviews(self.store),
                output=folder,
                add=True,  # to what was taught elsewhere
                instead_of=SOURCE,  # a withdrawn decision counts no more
                curve=True,
                force=force,
            )
            if report.changed:
                for path in (folder, *folder.rglob("*")):
                    path.chmod(0o700 if path.is_dir() else 0o600)
            self.report = report.to_json()
            self.taught = kb if report.changed else self.taught
            self.state = DONE
            self.log.write("taught", changed=report.changed)
        except SapbertError as error:
            self.error = describe_problem(error)["error"]
            self.state = FAILED
            self.log.write("not_taught", code=str(error)[1:5])
        except Exception as error:
            self.error = describe_problem(failed())["error"]
            self.state = FAILED
            self.log.write("not_taught", **describe_exception(error))

    def switch(self) -> None:
        """Open the taught copy in the service."""
        if self.taught is None:
            raise RequestError(Errors.E469, 409)
        self.service.switch(self.taught)
        self.log.write("kb_switched", digest=self.taught.manifest.digest)
