"""Threads of BLAS and the search for cycles, within short work and after it."""

import gc
import threading
from contextlib import suppress

import numpy as np  # noqa: F401, whose library is meant
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from spacy_sapbert.io.short_work import (
    find_libraries,
    pause_collection,
    use_one_thread,
)
from tests.io.test_forks import in_child, needs_fork


def test_collection_is_paused_within_alone():
    assert gc.isenabled()
    with suppress(ValueError), pause_collection():
        assert not gc.isenabled()
        raise ValueError
    assert gc.isenabled()


def test_collection_that_the_user_turned_off_stays_off():
    gc.disable()
    try:
        with pause_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_collection_goes_on_when_all_threads_have_left():
    began, done = threading.Event(), threading.Event()

    def stay():
        with pause_collection():
            began.set()
            done.wait(60)

    thread = threading.Thread(target=stay)
    with pause_collection():
        thread.start()
        assert began.wait(60)
    done.set()
    thread.join()
    assert gc.isenabled()


@needs_fork
def test_collection_goes_on_in_a_child_of_a_process_that_paused_it(new_process):
    def check():
        assert gc.isenabled()
        with pause_collection():
            assert not gc.isenabled()
        assert gc.isenabled()

    with pause_collection():
        assert in_child(new_process, check) == 0
        assert not gc.isenabled()


def test_products_have_one_thread_within_alone():
    def list_threads() -> set[int]:
        found = [each for each in threadpool_info() if each["user_api"] == "blas"]
        return {each["num_threads"] for each in found}

    find_libraries.cache_clear()  # other tests have loaded more since
    with threadpool_limits(2, user_api="blas"):
        if list_threads() != {2}:
            pytest.skip("the BLAS of numpy cannot be told how many threads it has")
        with suppress(ValueError), use_one_thread():
            assert list_threads() == {1}
            raise ValueError
        assert list_threads() == {2}
