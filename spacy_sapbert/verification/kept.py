"""What was verified for an output, so that a stopped run continues."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from hashlib import blake2b
from pathlib import Path

from pydantic import TypeAdapter

from ..errors import SapbertError, refused_by_system
from ..io.version import __version__
from ..io.writing import open_resumed
from .verdicts import Verdict

ENDING = ".verified"  # of the file, beside the output
TABLE = (
    "CREATE TABLE IF NOT EXISTS verified (key BLOB PRIMARY KEY, verdict TEXT NOT NULL) "
    "STRICT, WITHOUT ROWID"
)
VERDICT = TypeAdapter(Verdict)
Pair = tuple[str, str, str, str]  # text, id, label and context; "" = none


class KeptVerdicts:
    """The verdicts of one knowledge base and version of the software, in a file.

    The file has no texts and ids: its keys are hashes.
    """

    def __init__(self, path: Path, database: sqlite3.Connection, digest: str) -> None:
        self.path, self.database, self.digest = path, database, digest

    def make_key(self, pair: Pair) -> bytes:
        values = [__version__, self.digest, *pair]
        return blake2b(json.dumps(values).encode(), digest_size=16).digest()

    def find(self, pairs: Iterable[Pair]) -> dict[Pair, Verdict]:
        """Return those verdicts that were kept."""
        found: dict[Pair, Verdict] = {}
        sql = "SELECT verdict FROM verified WHERE key = ?"
        with name_errors(self.path):
            if not self.database.execute("SELECT * FROM sqlite_master").fetchall():
                return {}  # nothing was added yet
            for pair in pairs:
                for (line,) in self.database.execute(sql, (self.make_key(pair),)):
                    found[pair] = VERDICT.validate_json(line)
        return found

    def add(self, verdicts: Mapping[Pair, Verdict]) -> None:
        rows = [
            (self.make_key(pair), VERDICT.dump_json(verdict).decode())
            for pair, verdict in verdicts.items()
        ]
        with name_errors(self.path), self.database:
            self.database.execute(TABLE)
            self.database.executemany("INSERT INTO verified VALUES (?, ?)", rows)


@contextmanager
def open_kept(output: Path, digest: str) -> Iterator[KeptVerdicts]:
    """Open what was verified for an output; it is removed when that is written."""
    path = output.with_name(output.name + ENDING)
    with open_resumed(path):
        with name_errors(path):
            database = sqlite3.connect(path)
        with closing(database):
            yield KeptVerdicts(path, database, digest)


@contextmanager
def name_errors(path: Path) -> Iterator[None]:
    """Raise the errors of SQLite as ours."""
    try:
        yield
    except (sqlite3.OperationalError, OSError) as error:  # such as a full disk
        raise refused_by_system(path=path, reason=error) from None
    except sqlite3.Error:
        raise unreadable(path) from None


def unreadable(path: Path) -> SapbertError:
    return SapbertError(
        "E560",
        f"{path}: Expected what a stopped run has verified, but it cannot be read. "
        "Remove the file, or pass another `--output`.",
    )
