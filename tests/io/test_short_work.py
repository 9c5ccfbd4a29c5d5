"""Threads of BLAS and the search for cycles, within short work and after it."""

import gc
import threading
from collections.abc import Iterator

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from spacy_sapbert.io.short_work import find_libraries, short_work
from tests.io.test_forks import in_child, needs_fork


def state() -> tuple[bool, set[int]]:
    """Return whether Python looks for cycles, and the threads of BLAS."""
    libraries = [each for each in threadpool_info() if each["user_api"] == "blas"]
    return gc.isenabled(), {each["num_threads"] for each in libraries}


@pytest.fixture
def before() -> Iterator[tuple[bool, set[int]]]:
    find_libraries.cache_clear()  # other tests have loaded more since
    with threadpool_limits(2, user_api="blas"):
        _, threads = state()
        if threads != {2}:
            pytest.skip("the BLAS of numpy cannot be told how many threads it has")
        yield True, {2}


def test_short_work_has_one_thread_of_blas_and_no_search_for_cycles(before):
    with short_work():
        assert state() == (False, {1})
    assert state() == before
    with pytest.raises(ValueError, match="wrong"), short_work():
        raise ValueError("wrong")
    assert state() == before


def test_short_work_keeps_what_the_user_has_turned_off(before):
    gc.disable()
    try:
        with short_work():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_short_work_ends_with_the_last_thread_within(before):
    began, done = threading.Event(), threading.Event()

    def stay():
        with short_work():
            began.set()
            done.wait(60)

    thread = threading.Thread(target=stay)
    with short_work():
        thread.start()
        assert began.wait(60)
        assert state() == (False, {1})
    done.set()
    thread.join()
    assert state() == before


@needs_fork
def test_short_work_of_another_thread_is_over_in_a_forked_child(before, new_process):
    began, done = threading.Event(), threading.Event()

    def stay():
        with short_work():
            began.set()
            done.wait(60)

    def check():
        assert gc.isenabled()
        with short_work():
            assert not gc.isenabled()
        assert gc.isenabled()

    thread = threading.Thread(target=stay)
    thread.start()
    assert began.wait(60)
    assert in_child(new_process, check) == 0
    done.set()
    thread.join()
    assert state() == before
