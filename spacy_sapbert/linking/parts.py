"""Long work in parts, between which its thread may do other work."""

from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import TypeVar

ITEMS = 256  # of a part
# Called between two parts. It may raise an error, which ends the work.
GIVE_WAY: ContextVar[Callable[[], None] | None] = ContextVar("GIVE_WAY", default=None)
T = TypeVar("T")


def give_way() -> None:
    """Run other work of the thread, if it has any."""
    if function := GIVE_WAY.get():
        function()


def in_parts(items: Iterable[T], *, size: int = ITEMS) -> Iterator[T]:
    """Yield items, and give way after each `size` of them."""
    for number, item in enumerate(items, 1):
        yield item
        if number % size == 0:
            give_way()
