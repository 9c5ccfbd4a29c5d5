"""A SQLite file that is gone after use, so that sorting never needs memory."""

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import Errors, SapbertError


def make_folder() -> "tempfile.TemporaryDirectory[str]":
    """RETURNS (tempfile.TemporaryDirectory[str]): A folder that goes after use."""
    try:
        return tempfile.TemporaryDirectory(prefix="sapbert-")
    except OSError as error:
        raise SapbertError(
            Errors.E116.format(folder=os.environ.get("TMPDIR"), reason=error.strerror)
        ) from error


@contextmanager
def open_scratch() -> Iterator[sqlite3.Connection]:
    """Open an empty database that nobody needs to survive a crash.

    YIELDS (sqlite3.Connection): The database, in the folder for temporary files.
    RAISES (SapbertError): If the folder is full or may not be written to.
    """
    try:
        with make_folder() as folder:
            scratch = sqlite3.connect(Path(folder) / "scratch.db", isolation_level=None)
            try:
                # nothing here outlives the reading, so nothing has to be safe
                scratch.execute("PRAGMA journal_mode = OFF")
                scratch.execute("PRAGMA synchronous = OFF")
                scratch.execute("PRAGMA temp_store = FILE")
                scratch.execute("PRAGMA cache_size = -65536")
                scratch.execute("BEGIN")
                yield scratch
            finally:
                scratch.close()
    except sqlite3.Error as error:
        raise SapbertError(
            Errors.E116.format(folder=tempfile.gettempdir(), reason=error)
        ) from error
