"""Tables whose writing is stopped: the old or the new one, and the next run goes on."""

import os
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path

import pytest
import torch

from spacy_sapbert.io.tables.files import write_table
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.linking.options import LinkOptions
from spacy_sapbert.mapping.run import TermColumns, map_table
from spacy_sapbert.verification import verified_tables
from spacy_sapbert.verification.kept import ENDING
from spacy_sapbert.verification.updated_files import update_file
from spacy_sapbert.verification.verified_tables import PairColumns, verify_table
from tests.faults import DONE, ENDS, KILLED, run_in_fork, stop_at

PAIRS = [["Fever", "C0000004"], ["MI", "C0000001"], ["head pain", "C0000004"]]


def map_pairs(kb: Path, path: Path, output: Path) -> None:
    options = LinkOptions(k=2, threshold=0.9)
    map_table(load_kb(kb), path, output, TermColumns("term"), options)


def verify_pairs(kb: Path, path: Path, output: Path) -> None:
    verified_tables.ROWS_AT_ONCE = 1
    verify_table(load_kb(kb), path, output, PairColumns("term", "id"))


def update_pairs(kb: Path, path: Path, output: Path) -> None:
    opened, report = load_kb(kb), output.with_name("report.csv")
    update_file(opened, opened, path, output, PairColumns("term", "id"), report=report)


WRITERS: dict[str, Callable[[Path, Path, Path], None]] = {
    "mapped.csv": map_pairs,
    "verified.html": verify_pairs,
    "updated.csv": update_pairs,
}


def stop_writer(kb: Path, work: Path, name: str) -> None:
    """Stop a writer at every write; the old table or the new one is there."""
    path, folder = work / "in.csv", work / "out"
    write_table(path, ["term", "id"], PAIRS)
    write = partial(WRITERS[name], kb, path)
    torch.set_num_threads(1)  # no thread may be there when a process forks
    load_kb(kb).link(["words"])  # imports what takes seconds in each fork
    (work / "whole").mkdir()
    assert run_in_fork(lambda: write(work / "whole" / name) or DONE) == DONE
    whole = {file.name: file.read_bytes() for file in (work / "whole").iterdir()}
    for how in ENDS:
        ends = []
        for moment in [1, 60, 100_000] if how == "limit" else count(1):
            folder.mkdir()
            old = dict.fromkeys(whole, b"old")
            for file, content in old.items():
                (folder / file).write_bytes(content)
            ends.append(stop_at(how, moment, lambda: write(folder / name)))
            assert ends[-1] in ENDS[how], (how, ends)
            left = {file.name: file.read_bytes() for file in folder.iterdir()}
            hidden = {file for file in left if file.startswith(".")}
            assert not hidden or ends[-1] == KILLED, hidden
            assert left.keys() - hidden - {name + ENDING} == whole.keys()
            assert all(left[file] in (old[file], whole[file]) for file in whole)
            assert run_in_fork(lambda: write(folder / name) or DONE) == DONE
            for file in folder.iterdir():
                assert file.read_bytes() == whole[file.name], (how, moment, file)
                file.unlink()
            folder.rmdir()
            if ends[-1] == DONE:
                break
        assert ends[-1] == DONE
        assert {*ends} - {DONE}, (how, ends)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.parametrize("name", WRITERS)
def test_a_table_stopped_at_any_write_is_the_old_or_the_new_one(
    sample_kb, tmp_path, new_process, name
):
    new_process.call(stop_writer, sample_kb, tmp_path, name)
