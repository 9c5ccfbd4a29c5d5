"""Batches of jobs, most of them without a pipeline."""

import asyncio
import gc
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any
from weakref import ref

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.linking.options import change_options
from spacy_sapbert.serve.linking_thread import (
    MOST_ITEMS,
    SHORT,
    Job,
    LinkingThread,
    split_items,
)
from spacy_sapbert.serve.problems import RequestError

from .conftest import start_linking

LONG = [(str(number),) for number in range(3 * MOST_ITEMS)]  # items of three jobs


class Recorder:
    """Returns items in upper case, and holds the first batch until it may go on."""

    def __init__(self, *, waiting: int = 100) -> None:
        self.batches: list[list[str]] = []
        self.started, self.go_on = threading.Event(), threading.Event()
        self.thread = LinkingThread(waiting=waiting)

    def link(self, items: Sequence[tuple[str]]) -> list[str]:
        self.started.set()
        assert self.go_on.wait(10)
        texts = [text for (text,) in items]
        self.batches.append(texts)
        if "bad" in texts:
            raise KeyError
        return [text.upper() for text in texts]

    def submit(
        self, key: str | None, *texts: str, begun: bool = False
    ) -> "Future[Any]":
        job = Job(self.link, [(text,) for text in texts], key)
        return self.thread.submit(job, begun=begun)

    def submit_first(self) -> "Future[Any]":
        """Let the first job run, which others wait for."""
        self.thread.start()
        first = self.submit("", "first")
        assert self.started.wait(10)
        return first


def test_jobs_that_wait_are_done_together_by_their_keys():
    recorder = Recorder()
    futures = [recorder.submit_first()]
    futures += [recorder.submit("a", "x", "y"), recorder.submit("b", "z")]
    futures += [recorder.submit("a", "w"), recorder.submit(None, "u")]
    futures += [recorder.submit(None, "v")]
    bad, good = recorder.submit("c", "bad"), recorder.submit("c", "good")
    recorder.go_on.set()
    found = [future.result(10) for future in (*futures, good)]
    with pytest.raises(KeyError):  # it does not fail the others of its batch
        bad.result(10)
    recorder.thread.close()
    assert found == [["FIRST"], ["X", "Y"], ["Z"], ["W"], ["U"], ["V"], ["GOOD"]]
    assert recorder.batches[:5] == [["first"], ["x", "y", "w"], ["z"], ["u"], ["v"]]


def test_a_batch_is_not_larger_than_a_long_job_and_what_fills_it():
    recorder = Recorder()
    recorder.submit_first()
    texts = [["x"] * (MOST_ITEMS - 1), ["y" * SHORT * MOST_ITEMS], ["z"]]
    futures = [recorder.submit("", *some) for some in texts]
    recorder.go_on.set()
    for future in futures:
        future.result(10)
    recorder.thread.close()
    assert recorder.batches == [["first"], [*texts[0], *texts[1]], ["z"]]


def test_a_full_queue_refuses_requests_that_have_not_begun():
    recorder = Recorder(waiting=2)
    recorder.submit_first()
    futures = [recorder.submit("", "x") for _ in range(2)]
    with pytest.raises(RequestError) as error:
        recorder.submit("", "y")
    assert (error.value.status, str(error.value)[:6]) == (503, "[E460]")
    futures.append(recorder.submit("", "z", begun=True))
    assert futures[0].cancel()  # it is not linked
    recorder.go_on.set()
    assert [future.result(10) for future in futures[1:]] == [["X"], ["Z"]]
    recorder.thread.close()
    assert recorder.batches == [["first"], ["x", "z"]]


def test_close_finishes_accepted_jobs_and_refuses_later_ones():
    recorder = Recorder()
    recorder.thread.start()
    futures = [recorder.submit(str(number), "x") for number in range(10)]
    recorder.go_on.set()
    recorder.thread.close()
    assert [future.result(0) for future in futures] == [["X"]] * 10
    with pytest.raises(RequestError):
        recorder.submit("", "x")


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ([], [[]]),
        ([1] * (MOST_ITEMS + 1), [[1] * MOST_ITEMS, [1]]),
        ([MOST_ITEMS * SHORT] * 2, [[MOST_ITEMS * SHORT]] * 2),
        ([1, MOST_ITEMS * SHORT, 1], [[1], [MOST_ITEMS * SHORT], [1]]),
        ([31 * SHORT, 31 * SHORT, 1], [[31 * SHORT] * 2, [1]]),
    ],
)
def test_a_job_has_few_items_or_few_characters(lengths, expected):
    items = list(enumerate("x" * length for length in lengths))
    parts = [*split_items(items)]
    assert [[len(text) for _, text in part] for part in parts] == expected
    assert [item for part in parts for item in part] == items


def test_others_are_answered_between_the_jobs_of_a_long_request(sample_kb):
    linking = start_linking(sample_kb)
    started, go_on = threading.Event(), threading.Event()
    done: list[str] = []

    def work(items: Sequence[tuple[str]]) -> list[str]:
        done.append(items[0][0])
        if items[0] == LONG[0]:
            started.set()
            assert go_on.wait(10)
        return [text for (text,) in items]

    async def ask() -> tuple[list[str], list[str]]:
        long = asyncio.create_task(linking.work(work, LONG))
        await asyncio.to_thread(started.wait, 10)
        short = asyncio.create_task(linking.work(work, [("short",)]))
        await asyncio.sleep(0)  # it waits now
        go_on.set()
        return await long, await short

    long, short = asyncio.run(ask())
    linking.close()
    assert long == [text for (text,) in LONG]
    assert short == ["short"]
    assert done == ["0", "short", str(MOST_ITEMS), str(2 * MOST_ITEMS)]


def test_a_long_request_ends_when_nobody_waits_for_it(sample_kb):
    linking = start_linking(sample_kb)
    started, go_on = threading.Event(), threading.Event()
    done: list[str] = []

    def work(items: Sequence[tuple[str]]) -> list[str]:
        done.append(items[0][0])
        started.set()
        assert go_on.wait(10)
        return [text for (text,) in items]

    async def leave() -> None:
        long = asyncio.create_task(linking.work(work, LONG))
        await asyncio.to_thread(started.wait, 10)
        long.cancel()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await long

    asyncio.run(leave())
    linking.close()
    assert done == ["0"]


@pytest.mark.parametrize("kind", ["link_texts", "link_mentions"])
def test_all_of_a_request_is_linked_to_one_knowledge_base(
    sample_kb, cold_kb, monkeypatch, kind
):
    linking = start_linking(sample_kb)
    before, other = linking.kb, load_kb(cold_kb)
    switched: list[bool] = []
    submit = linking.thread.submit

    def switch_before(job: Job, *, begun: bool = False) -> "Future[Any]":
        if begun and not switched:  # after the first job of the request
            switched.append(True)
            assert linking.switch(other)
        return submit(job, begun=begun)

    monkeypatch.setattr(linking.thread, "submit", switch_before)
    texts = ["Asthma."] * (2 * MOST_ITEMS)
    link = getattr(linking, kind)
    first = {result.kb for result in asyncio.run(link(texts, {}))}
    second = {result.kb for result in asyncio.run(link(texts, {}))}
    linking.close()
    assert switched
    assert first == {before.manifest.digest}
    assert second == {other.manifest.digest}
    assert linking.linker.kb is other


def test_a_knowledge_base_that_was_replaced_does_not_stay_in_memory(sample_kb, cold_kb):
    linking = start_linking(sample_kb)
    before = ref(linking.kb)
    linking.use_verifier(linking.kb)
    assert linking.switch(load_kb(cold_kb))
    linking.close()
    gc.collect()
    assert before() is None


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
