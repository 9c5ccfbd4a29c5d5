"""Batches of jobs, most of them without a pipeline."""

import asyncio
import threading
from concurrent.futures import Future
from typing import Any

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.linking.options import change_options
from spacy_sapbert.linking.parts import in_parts
from spacy_sapbert.serve import service
from spacy_sapbert.serve.linking_thread import Job, LinkingThread
from spacy_sapbert.serve.problems import RequestError
from spacy_sapbert.serve.service import split_texts

from .conftest import start_linking


class Recorder:
    """Returns items in upper case, and holds the first batch until it may go on."""

    def __init__(self, *, waiting: int = 100) -> None:
        self.batches: list[list[str]] = []
        self.started, self.go_on = threading.Event(), threading.Event()
        self.thread = LinkingThread(self.link, waiting=waiting)

    def link(self, kind: str, settings: str, items: list[str]) -> list[str]:
        self.started.set()
        assert self.go_on.wait(10)
        self.batches.append([*items])
        if "bad" in items:
            raise KeyError(settings)
        return [item.upper() for item in items]


def submit_all(recorder: Recorder, *jobs: Any) -> "list[Future[Any]]":
    """Let the first job run, add the others meanwhile, and then go on."""
    recorder.thread.start()
    first = recorder.thread.submit(Job("texts", "", ["first"]))
    assert recorder.started.wait(10)
    others = [recorder.thread.submit(Job(*job)) for job in jobs]
    recorder.go_on.set()
    return [first, *others]


def test_jobs_that_wait_are_linked_together_by_their_settings():
    recorder = Recorder()
    jobs: list[Any] = [("texts", "a", ["x", "y"]), ("texts", "b", ["z"])]
    jobs += [("texts", "a", ["w"]), ("texts", "a", ["long"], True)]  # the last alone
    jobs += [("texts", "c", ["bad"]), ("texts", "c", ["good"])]
    *futures, bad, good = submit_all(recorder, *jobs)
    found = [future.result(10) for future in (*futures, good)]
    with pytest.raises(KeyError):  # it does not fail the others of its batch
        bad.result(10)
    recorder.thread.close()
    assert found == [["FIRST"], ["X", "Y"], ["Z"], ["W"], ["LONG"], ["GOOD"]]
    assert recorder.batches[:3] == [["first"], ["x", "y", "w"], ["z"]]


def test_a_full_queue_refuses_jobs():
    recorder = Recorder(waiting=2)
    recorder.thread.start()
    recorder.thread.submit(Job("texts", "", ["first"]))
    assert recorder.started.wait(10)
    futures = [recorder.thread.submit(Job("texts", "", ["x"])) for _ in range(2)]
    with pytest.raises(RequestError) as error:
        recorder.thread.submit(Job("texts", "", ["y"]))
    assert (error.value.status, str(error.value)[:6]) == (503, "[E460]")
    assert futures[0].cancel()  # it is not linked
    recorder.go_on.set()
    assert futures[1].result(10) == ["X"]
    recorder.thread.close()
    assert recorder.batches == [["first"], ["x"]]


def test_close_finishes_accepted_jobs_and_refuses_later_ones():
    recorder = Recorder()
    recorder.thread.start()
    futures = [recorder.thread.submit(Job("texts", str(n), ["x"])) for n in range(10)]
    recorder.go_on.set()
    recorder.thread.close()
    assert [future.result(0) for future in futures] == [["X"]] * 10
    with pytest.raises(RequestError):
        recorder.thread.submit(Job("texts", "", ["x"]))


def test_a_long_job_gives_way_to_short_ones_and_ends_if_it_is_given_up():
    started, go_on = threading.Event(), threading.Event()
    done: list[str] = []

    def link(kind: str, settings: str, items: list[str]) -> list[str]:
        for item in in_parts(items, size=1):
            done.append(item)
            if item == "long 1":
                started.set()
                assert go_on.wait(10)
            if item == "long 2":  # and it gives way again
                thread.submit(Job("texts", "", ["late"]))
        return items

    thread = LinkingThread(link, waiting=100)
    thread.start()
    long = Job("texts", "", ["long 1", "long 2", "long 3"], alone=True)
    first = thread.submit(long)
    assert started.wait(10)
    second = thread.submit(Job("texts", "", ["other long"], alone=True))
    switch = thread.call(lambda: done.append("switch"), alone=True)
    short = thread.submit(Job("texts", "", ["short"]))
    call = thread.call(lambda: done.append("call"))
    go_on.set()
    for future in (first, second, switch, short, call):
        future.result(10)
    assert done == [
        *("long 1", "short", "call", "long 2", "late", "long 3"),
        *("other long", "switch"),
    ]
    started.clear()
    go_on.clear()
    left = Job("texts", "", ["long 1", "long 2"], alone=True)
    future = thread.submit(left)
    assert started.wait(10)
    left.given_up = True
    go_on.set()
    with pytest.raises(SapbertError):
        future.result(10)
    thread.close()
    assert done[-1] == "long 1"


def test_texts_in_memory_at_once_are_few(monkeypatch):
    monkeypatch.setattr(service, "CHARACTERS_TOGETHER", 10)
    items = list(enumerate("x" * length for length in (4, 6, 1, 11, 10, 3)))
    parts = [[len(text) for _, text in part] for part in split_texts(items)]
    assert parts == [[4, 6], [1], [11], [10], [3]]


def test_only_many_characters_of_texts_give_way(sample_kb, monkeypatch):
    linking = start_linking(sample_kb)
    jobs: list[Job] = []
    submit = linking.thread.submit
    monkeypatch.setattr(
        linking.thread, "submit", lambda job: jobs.append(job) or submit(job)
    )
    half = service.LONG // 2
    for texts in (["x" * half] * 2, ["x" * half, "x" * (half + 1)]):
        assert len(asyncio.run(linking.link_texts(texts, {}))) == 2
    asyncio.run(linking.link_mentions(["x" * (2 * half + 1)], {}))
    assert [job.alone for job in jobs] == [False, True, False]
    linking.close()


def test_only_a_knowledge_base_that_fits_is_used_instead_of_the_one_in_use(
    sample_kb, cold_kb
):
    linking = start_linking(sample_kb)
    before, other = linking.kb, load_kb(cold_kb)
    usual = linking.options
    linking.options = change_options(usual, {"filter": {"types": ["T061"]}})
    with pytest.raises(SapbertError, match="E332"):
        linking.switch(other)
    linking.options = usual
    assert not linking.switch(other, instead_of=other)
    assert linking.kb is before
    assert linking.switch(other, instead_of=before)
    assert linking.kb is other
    linking.close()
