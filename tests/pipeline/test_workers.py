import os
import signal
from functools import partial
from pathlib import Path

import pytest
import spacy

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.formats.documents import Document
from spacy_sapbert.pipeline.running import open_pipeline
from spacy_sapbert.pipeline.workers import MAX_CRASHES, JobQueue, Workers


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no such signal here")
def test_workers_replace_a_stopped_process(sample_kb: Path) -> None:
    """The job is too large for the connection's buffer, so sending it must not wait."""
    opened = partial(open_pipeline, None, {"kb": str(sample_kb), "mentions": "names"})
    jobs = [[Document(1, "fever")], [Document("2" * 900_000, "fever")]]
    nlp = spacy.blank("en")
    with Workers(opened, vocab=nlp.vocab, n_process=1, max_silence=10) as workers:
        results = workers.run((job, list[str]()) for job in jobs[:1])
        assert [docs[0].text for _, docs in results] == ["fever"]
        stopped = workers.workers[0].process
        os.kill(stopped.pid or 0, signal.SIGSTOP)
        with pytest.warns(UserWarning, match=r"W571.*did not answer for \d+ seconds"):
            results = [*workers.run((job, list[str]()) for job in jobs[1:])]
        assert [docs[0].ents[0].text for _, docs in results] == ["fever"]
        assert stopped.exitcode == -signal.SIGKILL
    assert workers.workers == []


def test_job_queue_job_that_is_never_answered_is_an_error() -> None:
    queue = JobQueue(iter([([Document("7", "SENTINELTEXT")], [])]), size=1)
    number = queue.next_job()
    assert number is not None
    for _ in range(MAX_CRASHES - 1):
        with pytest.warns(UserWarning, match="W571"):
            queue.record_crash(number, None, silence=300.0)
        assert queue.next_job() == number
    queue.record_crash(number, None, silence=300.0)
    assert queue.next_job() is None
    with pytest.raises(SapbertError, match=r"E571.*'7' did not for 300 seconds") as got:
        queue.pop_result()
    assert "SENTINELTEXT" not in str(got.value)
