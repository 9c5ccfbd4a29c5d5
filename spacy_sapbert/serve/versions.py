"""Opens new versions of the knowledge base while a service runs."""

import threading
from collections.abc import Callable

from ..errors import SapbertError
from ..kb.folder.versions import read_version
from .logs import EventLog, describe_exception
from .service import Service

SECONDS = 2.0  # between two looks at meta.json


class Watcher:
    """Looks for a new version of the folder of the knowledge base in use.

    It is opened and loaded beside the one in use, and comes into use between two
    batches. One that cannot be opened is logged once, and the old one stays in use.

    Args:
        follow: Called before each look.
    """

    def __init__(
        self, service: Service, log: EventLog, follow: Callable[[], object] = tuple
    ) -> None:
        self.service = service
        self.follow = follow
        self.log = log
        self.refused: tuple[str, str] | None = None  # digest and error of a version
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.run, name="watcher", daemon=True)

    def start(self) -> None:
        """Start to look."""
        self.thread.start()

    def stop(self) -> None:
        """Look no more."""
        self.stopped.set()

    def run(self) -> None:
        """Look until the watcher is stopped."""
        while not self.stopped.wait(SECONDS):
            try:
                self.follow()
                self.look()
            except Exception as error:
                self.log.write("kb_not_switched", **describe_exception(error))

    def look(self) -> bool:
        """Switch to a new version, and return whether there was one."""
        old = self.service.kb
        digest = ""
        try:
            digest = read_version(old.folder).manifest.digest
            if digest == old.manifest.digest:
                self.refused = None
                return False
            if self.refused is not None and digest == self.refused[0]:
                return False
            new = old.newest(digest=self.service.linker.kb_digest)
            if new is old:
                return False
            if not self.service.switch(new, instead_of=old):
                return False  # somebody else has switched meanwhile
        except SapbertError as error:
            code = str(error)[1:5]
            if self.refused != (digest, code):
                self.refused = digest, code
                self.log.write("kb_not_switched", code=code, digest=digest)
            return False
        self.log.write("kb_switched", digest=new.manifest.digest)
        return True
