import os
import signal
from functools import partial
from pathlib import Path

import pytest
import spacy

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.formats.documents import Document
from spacy_sapbert.pipeline.running import open_pipeline
from spacy_sapbert.pipeline.workers import Workers


@pytest.mark.usefixtures("new_process")
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal here")
def test_workers_replace_killed_processes_and_keep_the_order(sample_kb: Path) -> None:
    """The job is too large for the buffer of a pipe, so sending it must not wait."""
    opened = partial(open_pipeline, None, {"kb": str(sample_kb), "mentions": "names"})
    nlp = spacy.blank("en")

    def jobs(first: int):
        for number in range(first, first + 5):
            yield [Document(str(number) * 900_000, "fever")], list[str]()
        raise SapbertError("E001", "of the reader")

    with Workers(opened, vocab=nlp.vocab, n_process=2) as workers:
        results = workers.run(jobs(0))
        assert [next(results)[0][0].id[0] for _ in range(5)] == [*"01234"]
        with pytest.raises(SapbertError, match="of the reader"):
            next(results)
        for process in [*workers.executor._processes.values()]:
            os.kill(process.pid, signal.SIGKILL)
        results = workers.run(jobs(5))
        with pytest.warns(UserWarning, match="W748"):
            documents, docs = next(results)
        assert [documents[0].id[0], docs[0].ents[0].text] == ["5", "fever"]
        assert [next(results)[0][0].id[0] for _ in range(4)] == [*"6789"]
        with pytest.raises(SapbertError, match="of the reader"):
            next(results)
        # a run that is left early does not disturb the next
        assert next(workers.run(jobs(0)))[0][0].id[0] == "0"
        assert next(workers.run(jobs(4)))[0][0].id[0] == "4"
