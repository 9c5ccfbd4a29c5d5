import gc
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from spacy_sapbert.io.arrays import find_sorted, map_arrays


def test_threads_map_arrays_at_once(tmp_path):
    # numpy parses headers with `ast`, which before Python 3.11.8 fails if another
    # thread parses meanwhile (CPython gh-106905). Here garbage is often collected, and
    # each collection lets the other thread run.
    np.save(tmp_path / "rows.npy", np.arange(5, dtype="int32"))

    def pause(phase, info):
        time.sleep(1e-5)

    def read():
        for _ in range(300):
            rows = map_arrays({"rows": tmp_path / "rows.npy"})
            assert rows["rows"].tolist() == [0, 1, 2, 3, 4]

    before = gc.get_threshold()
    gc.callbacks.append(pause)
    gc.set_threshold(11)
    try:
        with ThreadPoolExecutor(2) as threads:
            for done in [threads.submit(read) for _ in range(2)]:
                done.result()
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(pause)


def test_find_sorted_by_hand():
    keys = np.array([[5, 1], [9, 4], [0, 5]])
    known, places = find_sorted(keys, np.array([1, 4, 5, 8]))
    assert known.tolist() == [[True, True], [False, True], [False, True]]
    assert places.tolist() == [2, 0, 1, 2]
    known, places = find_sorted(keys, np.zeros(0, dtype=int))
    assert known.tolist() == [[False, False]] * 3
    assert places.tolist() == []
