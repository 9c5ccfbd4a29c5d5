"""Numbers of pairs, shuffled without memory → names laid side by side, made ahead."""

from collections.abc import Generator, Iterable, Iterator
from math import isqrt
from queue import SimpleQueue
from threading import Event, Semaphore, Thread
from typing import TypeVar

import numpy as np

from training.data.tokenized_pairs import Corpus

ROUNDS = 6

Item = TypeVar("Item")


def pad_names(
    corpus: Corpus, names: np.ndarray, *, multiple_of: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Lay the wordpieces of some names side by side.

    corpus (Corpus): The wordpieces of all names.
    names (np.ndarray): Which names. Shape: (n,).
    multiple_of (int): Round the length up to a multiple of this, e.g. 8: GPUs compute
        in tiles, and meet fewer different shapes.
    RETURNS (tuple[np.ndarray, np.ndarray]): Ids and attention mask, int64, as long as
        the longest of these names. Shape: (n, length) each.
    """
    lengths = corpus.lengths(names)
    longest = -(-int(lengths.max()) // multiple_of) * multiple_of
    columns = np.arange(longest)
    mask = columns < lengths[:, None]  # (n, length)
    ids = np.full(mask.shape, corpus.pad, dtype=np.int64)
    places = corpus.starts[names][:, None] + columns
    ids[mask] = corpus.ids[places[mask]]
    return ids, mask.astype(np.int64)


def split_by_length(lengths: np.ndarray, chunks: int) -> list[np.ndarray]:
    """Part a batch into chunks of names of like length, so that little is padding.

    lengths (np.ndarray): TokenIds of each row. Shape: (n,).
    chunks (int): How many; fewer if there are fewer rows.
    RETURNS (list[np.ndarray]): Rows of each chunk; together every row once.
    """
    order = np.argsort(lengths, kind="stable")
    return np.array_split(order, min(chunks, len(order)))


def mix_bits(values: np.ndarray) -> np.ndarray:
    """Turn numbers into others that look like chance.

    values (np.ndarray): uint64. Shape: (n,).
    RETURNS (np.ndarray): uint64. Shape: (n,).
    SOURCE: Steele et al. (2014), Fast splittable pseudorandom number generators;
        the constants of Stafford's Mix13, as in SplitMix64.
    """
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def permute(numbers: np.ndarray, total: int, *, seed: int, epoch: int) -> np.ndarray:
    """Find what stands at some places of a shuffled order, without making the order.

    A number below `side`² is taken as two digits below `side`. Each round adds to one
    digit a hash of the other and swaps them, which can be undone, so that no two
    numbers meet. A result that is not below `total` goes through all rounds again.

    numbers (np.ndarray): Places, each below `total`. Shape: (n,).
    total (int): How many numbers are shuffled, at least 1.
    seed (int): Of the run, not negative.
    epoch (int): From 0.
    RETURNS (np.ndarray): Different numbers below `total`, int64. Shape: (n,).
    SOURCE: Black and Rogaway (2002), Ciphers with arbitrary finite domains.
    """
    side = np.uint64(isqrt(total - 1) + 1)
    keys = np.random.SeedSequence([seed, epoch]).generate_state(ROUNDS, np.uint64)
    found = np.array(numbers, dtype=np.uint64)
    left = np.arange(len(found))
    while len(left):
        high, low = np.divmod(found[left], side)
        for key in keys:
            high, low = low, (high + mix_bits(low + key) % side) % side
        found[left] = high * side + low
        left = left[found[left] >= np.uint64(total)]
    return found.astype(np.int64)


def shuffled_batches(
    total: int, *, size: int, seed: int, epoch: int, start: int = 0
) -> Iterator[np.ndarray]:
    """Return each pair once, in an order that the seed and the epoch decide.

    total (int): How many pairs there are.
    size (int): Pairs in a batch; the last one may have fewer.
    seed (int): Of the run.
    epoch (int): From 0.
    start (int): Batches to leave out, at no cost.
    YIELDS (np.ndarray): Numbers of pairs, int64. Shape: (size,).
    """
    for first in range(start * size, total, size):
        places = np.arange(first, min(first + size, total))
        yield permute(places, total, seed=seed, epoch=epoch)


def prefetch(items: Iterable[Item], ahead: int = 4) -> Generator[Item, None, None]:
    """Let another thread work ahead, so that nobody waits for what comes next.

    The thread begins with the first item that is asked for, and ends with the items,
    with their error, or when this generator is closed.

    items (Iterable[Item]): Run in the thread.
    ahead (int): How many are made ready at the most.
    YIELDS (Item): The same items in the same order, and their error.
    """
    source = iter(items)
    ready: SimpleQueue[tuple[Item | None, BaseException | None]] = SimpleQueue()
    room = Semaphore(max(ahead, 1))
    stop = Event()

    def work() -> None:
        try:
            while room.acquire() and not stop.is_set():
                ready.put((next(source), None))
        except BaseException as error:  # StopIteration too: whoever waits must know
            ready.put((None, error))

    thread = Thread(target=work, name="prefetch", daemon=True)
    thread.start()
    try:
        while True:
            item, error = ready.get()
            if isinstance(error, StopIteration):
                return
            if error is not None:
                raise error
            room.release()
            yield item  # type: ignore[misc]
    finally:
        stop.set()
        room.release()
        thread.join()
