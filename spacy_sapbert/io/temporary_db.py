"""A temporary SQLite database, for sorting more data than memory holds."""

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import SapbertError


@contextmanager
def open_temporary_db() -> Iterator[sqlite3.Connection]:
    """Open an empty database among the temporary files; remove it afterwards."""
    try:
        folder = tempfile.TemporaryDirectory(prefix="sapbert-")
    except OSError as error:
        raise no_temporary_space(
            folder=os.environ.get("TMPDIR"), reason=error.strerror
        ) from error
    try:
        with folder as name:
            database = sqlite3.connect(
                Path(name) / "temporary.db", isolation_level=None
            )
            try:
                # the database need not survive a crash
                database.execute("PRAGMA journal_mode = OFF")
                database.execute("PRAGMA synchronous = OFF")
                database.execute("PRAGMA temp_store = FILE")
                database.execute("PRAGMA cache_size = -8192")
                database.execute("BEGIN")
                yield database
            finally:
                database.close()
    except sqlite3.Error as error:
        raise no_temporary_space(folder=tempfile.gettempdir(), reason=error) from error


def no_temporary_space(*, folder: object, reason: object) -> SapbertError:
    return SapbertError(
        "E004",
        f"Expected space for temporary files in {folder}, but got: {reason}. Set "
        "`TMPDIR` to a folder with more space.",
    )
