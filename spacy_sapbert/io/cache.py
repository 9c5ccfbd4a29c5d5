"""A cache of the results used last."""

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping
from typing import Generic, TypeVar

from .forks import ProcessLock

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class LruCache(Generic[Key, Value]):
    """Keeps the results that were used last; safe for threads and forks."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.values: OrderedDict[Key, Value] = OrderedDict()
        self.lock = ProcessLock()

    def get_many(self, keys: Iterable[Key]) -> dict[Key, Value]:
        """Return the results of those keys that are in the cache."""
        values: dict[Key, Value] = {}
        with self.lock:
            for key in keys:
                if key in self.values:
                    self.values.move_to_end(key)
                    values[key] = self.values[key]
        return values

    def put_many(self, results: Mapping[Key, Value]) -> None:
        """Add results, which must not change afterwards; the oldest make room."""
        with self.lock:
            self.values.update(results)
            for key in results:
                self.values.move_to_end(key)
            while len(self.values) > self.size:
                self.values.popitem(last=False)

    def clear(self) -> None:
        """Remove all results."""
        with self.lock:
            self.values.clear()
