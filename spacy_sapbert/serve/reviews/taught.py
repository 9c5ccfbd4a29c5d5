"""Teaches the knowledge base of a service what its reviewers have decided.

Each teaching starts from the newest version of the knowledge base that the service was
started with, the base, and makes a version of its own in `FILE.taught/N`.
`version.json` in it says what it learned from, and is written last;
`FILE.taught/USED` names the version in use, also after a restart and for other
processes.
"""

import json
import shutil
import threading
from contextlib import suppress
from typing import Any, Literal

from typing_extensions import TypedDict

from ...errors import SapbertError
from ...io.writing import write_atomically, write_json
from ...kb.folder.versions import read_version
from ...kb.knowledge_base import KnowledgeBase, load_kb
from ...kb.teaching.teach import FEWEST, teach_documents
from ..logs import EventLog, describe_exception
from ..problems import Problem, RequestError, describe_problem, failed
from ..service import Service
from .export import SOURCE, annotate_reviews
from .store import ReviewStore, current_time

ABOUT, USED = "version.json", "USED"


class TaughtVersion(TypedDict):
    """A version that has learned from decisions.

    Attributes:
        number: The name of its folder.
        report: Of `TeachingReport`.
        used: The service uses it.
        older_base: It was taught from an older version of the base.
    """

    number: int
    time: str
    report: dict[str, Any]
    used: bool
    older_base: bool


class TeachingState(TypedDict):
    """How far the teaching is, and the versions, the newest first.

    Attributes:
        report: Of `TeachingReport`, of the last teaching.
        fewest: Mentions from which an order of candidates can be learned.
    """

    state: Literal["none", "running", "done", "failed"]
    report: dict[str, Any] | None
    error: Problem | None
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
        self.refused: int | None = None  # of a version that cannot be opened
        self.state: Literal["none", "running", "done", "failed"] = "none"
        self.report: dict[str, Any] | None = None
        self.learned: list[str] = []  # documents of the report
        self.error: Problem | None = None

    def restore(self) -> None:
        """Use the version that was in use when the service ended.

        What a killed teaching or deletion has left is removed: it has texts of the
        documents.
        """
        self.remove_unfinished()
        self.remove_gone()
        self.follow()
        self.forget_links()

    def follow(self) -> None:
        """Use the version that USED names, which another process may have written."""
        with self.lock:
            number = self.read_used()
            if number == self.number or (number and number == self.refused):
                return
            try:
                self.open(number)
            except SapbertError as error:
                self.refused = number
                self.log.write("taught_not_used", **describe_exception(error))

    def read_used(self) -> int | None:
        """Return the number of the version that is to be used; None = the base."""
        try:
            return int((self.parent / USED).read_text())
        except (OSError, ValueError):
            return None

    def read_versions(self) -> dict[int, dict[str, Any]]:
        """Return what is known of the versions, by number, the newest first."""
        found = {
            int(path.parent.name): json.loads(path.read_text("utf8"))
            for path in self.parent.glob(f"[0-9]*/{ABOUT}")
        }
        return dict(sorted(found.items(), reverse=True))

    def describe(self) -> TeachingState:
        """Return how far it is, and the versions.

        How far is read first: a teaching that ends meanwhile has written its version.
        """
        state, report, error = self.state, self.report, self.error
        digest = self.base.manifest.digest
        with suppress(SapbertError):  # it is told when it is to be used
            digest = read_version(self.base.folder).manifest.digest
        versions: list[TaughtVersion] = [
            {
                "number": number,
                "time": about["time"],
                "report": about["report"],
                "used": number == self.number,
                "older_base": about["base"] != digest,
            }
            for number, about in self.read_versions().items()
        ]
        return {
            "state": state,
            "report": report,
            "error": error,
            "fewest": FEWEST,
            "versions": versions,
        }

    def start(self) -> None:
        """Start to teach."""
        with self.lock:
            if self.state == "running":
                raise RequestError(
                    "E468",
                    "Expected one teaching at a time, but one is running. GET "
                    "/reviews/teach returns how far it is.",
                    409,
                )
            self.state, self.report, self.error = "running", None, None
        threading.Thread(target=self.run, name="teacher", daemon=True).start()

    def run(self) -> None:
        """Teach, again if a document was deleted meanwhile, and keep the report."""
        try:
            self.parent.mkdir(exist_ok=True)
            self.parent.chmod(0o700)  # the names in it are texts of the documents
            while not self.teach():
                pass
        except Exception as error:
            told = error if isinstance(error, SapbertError) else failed()
            self.error = describe_problem(told)
            self.remove_unfinished()
            self.state = "failed"
            where = describe_exception(error)
            self.log.write("not_taught", code=told.code, **where)

    def teach(self) -> bool:
        """Teach what holds now.

        Returns:
            Whether all that was learned is still there; if not, nothing of it is kept.
        """
        folder = self.parent / str(max(self.read_versions(), default=0) + 1)
        decided = {str(gold.id): gold for gold in annotate_reviews(self.store)}
        base = self.find_base()
        _, report = teach_documents(
            base,
            decided.values(),
            output=folder,
            instead_of=SOURCE,  # a withdrawn decision counts no more
        )
        # A deletion, of another process too, is before this or finds the version.
        with self.lock, self.store.transaction():
            if any(map(self.is_gone, decided)):
                shutil.rmtree(folder, ignore_errors=True)
                return False
            self.report, self.learned = report.to_json(), sorted(decided)
            about = {
                "time": current_time(),
                "base": base.manifest.digest,
                "documents": self.learned,
                "report": self.report,
            }
            write_json(folder / ABOUT, about)
            self.state = "done"  # last, see `describe`
        self.log.write("taught", changed=report.changed)
        return True

    def find_base(self) -> KnowledgeBase:
        """Return the newest version of the base; it may be newer than one in use."""
        self.base = self.service.kb if self.number is None else self.base.newest()
        return self.base

    def open(self, number: int | None) -> None:
        """Use a version in the service; None = the base."""
        if number is None:
            kb = self.find_base()
        elif number in self.read_versions():
            folder = self.parent / str(number)
            kb = load_kb(folder, encoder=self.base.encoder_config)
        else:
            raise no_version()
        self.service.switch(kb)
        self.number, self.refused = number, None
        self.forget_links()
        self.log.write("kb_switched", digest=kb.manifest.digest)

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

    def remove(self, number: int) -> None:
        """Remove a version for good; one in use is left before."""
        with self.lock:
            if number not in self.read_versions():
                raise no_version()
            if number in (self.number, self.read_used()):
                self.use(None)
            shutil.rmtree(self.parent / str(number))
        self.log.write("taught_removed")

    def remove_unfinished(self) -> None:
        """Remove folders that a teaching has not finished, or not even named."""
        for path in self.parent.glob("*"):
            if path.is_dir() and not (path / ABOUT).is_file():
                shutil.rmtree(path, ignore_errors=True)

    def remove_gone(self) -> int:
        """Remove versions that learned from removed documents; return how many."""
        numbers = [
            number
            for number, about in self.read_versions().items()
            if self.parent / str(number) != self.base.folder
            and any(map(self.is_gone, about["documents"]))
        ]
        for number in numbers:
            self.remove(number)
        return len(numbers)

    def is_gone(self, document: str) -> bool:
        """Return whether a document was removed."""
        return self.store.document(document) is None

    def forget_links(self) -> None:
        """Remove links to other knowledge bases, which may have names that were taught.

        Those names are texts of documents that may be removed.
        """
        self.store.forget_links(kb=self.service.kb.manifest.digest)

    def forget(self, document: str) -> int:
        """Remove a document for good, and return how many versions it had taught.

        They are removed too. A teaching that runs keeps nothing of it; see `teach`.
        Other processes leave the versions as soon as they `follow`.
        """
        with self.lock:
            self.store.delete_document(document)
            removed = self.remove_gone()
            self.forget_links()
            if document in self.learned:
                self.report = None
            return removed


def no_version() -> RequestError:
    return RequestError(
        "E469",
        "Expected the number of a taught version, but got another. GET /reviews/teach "
        "lists them.",
        409,
    )
