"""Items prepared in another thread."""

from collections import deque
from collections.abc import Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

Item = TypeVar("Item")
END: Any = object()


def prefetch(items: Iterable[Item], ahead: int = 4) -> Generator[Item, None, None]:
    """Yield items that another thread prepares, at most `ahead` of them in advance.

    The thread ends with the last item, with an error, or when this generator is closed.
    An error is raised here, after the items before it.
    """
    source = iter(items)
    pool = ThreadPoolExecutor(1, thread_name_prefix="prefetch")
    try:
        ready = deque(pool.submit(next, source, END) for _ in range(max(ahead, 1)))
        while (item := ready.popleft().result()) is not END:
            ready.append(pool.submit(next, source, END))
            yield item
    finally:
        pool.shutdown(cancel_futures=True)
