"""Teaches the knowledge base of a service what its reviewers have decided.

Each teaching starts from the newest version of the knowledge base that the service was
started with, the base, and makes a version of its own in `FILE.taught/N`.
`version.json` in it says what it learned from; `FILE.taught/USED` names the one in use,
also after a restart and for other processes.
"""

import json
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from typing_extensions import TypedDict

from ...errors import SapbertError
from ...formats.gold import GoldDocument
from ...io.writing import remove_leftovers, write_atomically, write_json
from ...kb.folder.versions import read_version
from ...kb.knowledge_base import KnowledgeBase, load_kb
from ...kb.teaching.teach import FEWEST, teach_documents
from ...pipeline.teaching import annotate
from ..logs import EventLog, describe_exception
from ..problems import RequestError, describe_problem, failed
from ..service import Service
from .decisions import AGREED
from .export import group_decisions, make_gold
from .store import ReviewStore, current_time

SOURCE = "reviews"
NONE, RUNNING, DONE, FAILED = "none", "running", "done", "failed"
ABOUT, USED = "version.json", "USED"


def annotate_reviews(store: ReviewStore) -> Iterator[tuple[str, GoldDocument]]:
    """Yield the id and what holds of each document; see `judge_places`."""
    for _, document, decisions in group_decisions(store, AGREED):
        gold = make_gold(document.id, document, decisions)
        yield document.id, annotate(gold, SOURCE)


class TaughtVersion(TypedDict):
    """A version that has learned from decisions.

    Attributes:
        number: The name of its folder.
        before, after: Shares of right first answers, cross-validated.
        report: Of `TeachingReport`.
        used: The service uses it.
        older_base: It was taught from an older version of the base.
    """

    number: int
    time: str
    documents: int
    mentions: int
    before: float | None
    after: float | None
    report: dict[str, Any]
    used: bool
    older_base: bool


class TeachingState(TypedDict):
    """How far the teaching is, and the versions, the newest first.

    Attributes:
        report: Of `TeachingReport`, of the last teaching.
        folder: The version that it made; `used` = the service uses it.
        fewest: Mentions from which an order of candidates can be learned.
    """

    state: str
    report: dict[str, Any] | None
    error: dict[str, str] | None
    folder: str | None
    used: bool
    fewest: int
    versions: list[TaughtVersion]


class Teacher:
    """Makes taught versions of the knowledge base beside the file of the reviews.

    One is made at a time; the service uses it when `use` is called.
    """

    def __init__(self, service: Service, store: ReviewStore, log: EventLog) -> None:
        self.service = service
        self.store = store
        self.log = log
        self.lock = threading.RLock()
        self.base = service.kb
        self.parent = store.path.with_name(f"{store.path.name}.taught")
        self.number: int | None = None  # of the version in use
        self.refused: int | None = 0  # of a version that cannot be opened
        self.last: int | None = None  # of the version that was made last
        self.state = NONE
        self.report: dict[str, Any] | None = None
        self.learned: list[str] = []  # documents of the report
        self.error: dict[str, Any] | None = None

    def restore(self) -> None:
        """Use the version that was in use when the service ended.

        What a killed teaching or deletion has left is removed: it has texts of the
        documents.
        """
        for part in self.parent.glob(".*.tmp"):
            remove_leftovers(self.parent / part.name.split(".")[1])
        self.remove_unfinished()
        self.remove_learned(self.is_gone)
        self.follow()

    def follow(self) -> None:
        """Use the version that USED names, which another process may have written."""
        with self.lock:
            number = self.read_used()
            if number in (self.number, self.refused):
                return
            try:
                self.open(number)
                self.refused = 0
                self.store.forget_links(kb=self.service.kb.manifest.digest)
                self.log.write("kb_switched", digest=self.service.kb.manifest.digest)
            except SapbertError as error:
                self.refused = number
                self.log.write("taught_not_used", **describe_exception(error))

    def read_used(self) -> int | None:
        """Return the version that is to be used."""
        try:
            return int((self.parent / USED).read_text())
        except (OSError, ValueError):
            return None

    def describe(self) -> TeachingState:
        """Return how far it is, and the versions."""
        last = self.last
        return {
            "state": self.state,
            "report": self.report,
            "error": self.error,
            "folder": None if last is None else str(self.parent / str(last)),
            "used": last is not None and last == self.number,
            "fewest": FEWEST,
            "versions": self.list_versions(),
        }

    def read_about(self, number: int) -> dict[str, Any]:
        """Return what is known of a version; of one that was not finished nothing."""
        try:
            text = (self.parent / str(number) / ABOUT).read_text("utf8")
        except OSError:
            return {}
        about: dict[str, Any] = json.loads(text)
        return about

    def numbers(self) -> list[int]:
        """Return the numbers of the folders, the newest first."""
        if not self.parent.is_dir():
            return []
        every = [path for path in self.parent.iterdir() if path.name.isdecimal()]
        return sorted((int(path.name) for path in every), reverse=True)

    def list_versions(self) -> list[TaughtVersion]:
        """Return the versions, the newest first."""
        digest = self.base.manifest.digest
        with suppress(SapbertError):  # it is told when it is to be used
            digest = read_version(self.base.folder).manifest.digest
        found: list[TaughtVersion] = []
        for number in self.numbers():
            about = self.read_about(number)
            if not about:
                continue
            report = about["report"]
            best = report["after"] or report["names"]
            found.append(
                {
                    "number": number,
                    "time": about["time"],
                    "documents": report["counts"]["documents"],
                    "mentions": report["counts"]["mentions"],
                    "before": report["before"]["all"],
                    "after": best["all"],
                    "report": report,
                    "used": number == self.number,
                    "older_base": about["base"] != digest,
                }
            )
        return found

    def start(self, *, force: bool) -> None:
        """Start to teach.

        Args:
            force: Make the version also if nothing gets better.
        """
        with self.lock:
            if self.state == RUNNING:
                raise RequestError(
                    "E468",
                    "Expected one teaching at a time, but one is running. GET "
                    "/reviews/teach returns how far it is.",
                    409,
                )
            self.state, self.report, self.error = RUNNING, None, None
        thread = threading.Thread(
            target=self.run, args=(force,), name="teacher", daemon=True
        )
        thread.start()

    def find_base(self) -> KnowledgeBase:
        """Return the newest version of the base; it may be newer than one in use."""
        self.base = self.service.kb if self.number is None else self.base.newest()
        return self.base

    def run(self, force: bool) -> None:
        """Teach, again if a document was deleted meanwhile, and keep the report."""
        try:
            self.parent.mkdir(exist_ok=True)
            self.parent.chmod(0o700)  # the names in it are texts of the documents
            while not self.teach(force):
                pass
        except Exception as error:
            told = error if isinstance(error, SapbertError) else failed()
            self.error = describe_problem(told)["error"]
            self.remove_unfinished()
            self.state = FAILED
            if isinstance(error, SapbertError):
                self.log.write("not_taught", code=error.code)
            else:
                self.log.write("not_taught", **describe_exception(error))

    def teach(self, force: bool) -> bool:
        """Teach what holds now.

        Returns:
            Whether all that was learned is still there; if not, nothing of it is kept.
        """
        folder = self.parent / str(max(self.numbers(), default=0) + 1)
        decided = dict(annotate_reviews(self.store))
        base = self.find_base()
        _, report = teach_documents(
            base,
            decided.values(),
            output=folder,
            add=True,  # to what was taught elsewhere
            instead_of=SOURCE,  # a withdrawn decision counts no more
            force=force,
        )
        # A deletion, of another process too, is before this or finds the version.
        with self.lock, self.store.transaction():
            if any(map(self.is_gone, decided)):
                shutil.rmtree(folder, ignore_errors=True)
                return False
            self.report, self.learned = report.to_json(), sorted(decided)
            if report.changed:
                about = {
                    "time": current_time(),
                    "base": base.manifest.digest,
                    "documents": self.learned,
                    "report": self.report,
                }
                write_json(folder / ABOUT, about)
                for path in (folder, *folder.rglob("*")):
                    if path.is_dir():
                        path.chmod(0o700)
                    elif path.stat().st_nlink == 1:  # others are of the base too
                        path.chmod(0o600)
                self.last = int(folder.name)
            self.state = DONE
        self.log.write("taught", changed=report.changed)
        return True

    def open(self, number: int | None) -> None:
        """Use a version in the service; None = the base."""
        if number is None:
            kb = self.find_base()
        elif number in self.numbers() and self.read_about(number):
            folder = self.parent / str(number)
            kb = load_kb(folder, encoder=self.base.encoder_config)
        else:
            raise nothing_taught()
        self.service.switch(kb)
        self.number = number

    def use(self, number: int | None) -> None:
        """Use a version from now on, also after a restart; None = the base."""
        with self.lock:
            self.open(number)
            used = self.parent / USED
            if number is None:
                used.unlink(missing_ok=True)
            else:
                with write_atomically(used) as file:
                    file.write(str(number).encode())
                used.chmod(0o600)
        self.log.write("kb_switched", digest=self.service.kb.manifest.digest)

    def remove(self, number: int) -> None:
        """Remove a version for good; one in use is left before."""
        with self.lock:
            if number not in self.numbers():
                raise nothing_taught()
            if number in (self.number, self.read_used()):
                self.use(None)
            if number == self.last:
                self.last = None
            shutil.rmtree(self.parent / str(number))
        self.log.write("taught_removed")

    def remove_unfinished(self) -> None:
        """Remove folders that a teaching has not finished."""
        for number in self.numbers():
            if not self.read_about(number):
                shutil.rmtree(self.parent / str(number), ignore_errors=True)

    def remove_learned(self, is_gone: Callable[[str], bool]) -> int:
        """Remove the versions that learned from some documents, and return how many."""
        numbers = [
            number
            for number in self.numbers()
            if self.parent / str(number) != self.base.folder
            and any(map(is_gone, self.read_about(number).get("documents", ())))
        ]
        for number in numbers:
            self.remove(number)
        return len(numbers)

    def is_gone(self, document: str) -> bool:
        """Return whether a document was removed."""
        return self.store.document(document) is None

    def forget(self, document: str) -> int:
        """Remove a document for good, and the versions that have learned from it.

        A teaching that runs keeps nothing of it; see `teach`. Other processes leave the
        versions as soon as they `follow`.

        Returns:
            How many versions.
        """
        with self.lock:
            removed = self.remove_learned(lambda id: id == document)
            self.store.delete_document(document, kb=self.service.kb.manifest.digest)
            if document in self.learned:
                self.report = None
            return removed + self.remove_learned(self.is_gone)  # made meanwhile


def nothing_taught() -> RequestError:
    return RequestError(
        "E469",
        "Expected a taught knowledge base, but there is none. Send a request to "
        "/reviews/teach first.",
        409,
    )
