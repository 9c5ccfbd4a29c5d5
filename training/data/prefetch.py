"""Items prepared in another thread."""

from collections.abc import Generator, Iterable
from queue import SimpleQueue
from threading import Event, Semaphore, Thread
from typing import TypeVar

Item = TypeVar("Item")


def prefetch(items: Iterable[Item], ahead: int = 4) -> Generator[Item, None, None]:
    """Yield items that another thread prepares.

    The thread starts with the first item and ends with the last one, with an error,
    or when this generator is closed.

    YIELDS (Item): The same items in the same order; an error of theirs is raised here.
    """
    source = iter(items)
    ready: SimpleQueue[tuple[Item | None, BaseException | None]] = SimpleQueue()
    room = Semaphore(max(ahead, 1))
    stop = Event()

    def work() -> None:
        try:
            while room.acquire() and not stop.is_set():
                ready.put((next(source), None))
        except BaseException as error:  # StopIteration included
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
