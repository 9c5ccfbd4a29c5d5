"""The last of many results, so that what comes again costs nothing."""

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping
from typing import Generic, TypeVar

from ..system.forks import ProcessLock

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Remembered(Generic[Key, Value]):
    """Keeps what was used last, for several threads.

    most (int): Results kept; 0 = none.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.kept: OrderedDict[Key, Value] = OrderedDict()
        self.lock = ProcessLock()

    def recall(self, keys: Iterable[Key]) -> dict[Key, Value]:
        """Return what is kept of some keys.

        keys (Iterable[Key]): The keys.
        RETURNS (dict[Key, Value]): By key; without those that are not kept.
        """
        found: dict[Key, Value] = {}
        with self.lock:
            for key in keys:
                if key in self.kept:
                    self.kept.move_to_end(key)
                    found[key] = self.kept[key]
        return found

    def forget(self) -> None:
        """Keep nothing of what there was."""
        with self.lock:
            self.kept.clear()

    def keep(self, results: Mapping[Key, Value]) -> None:
        """Keep results; those that were not used for longest make room.

        results (Mapping[Key, Value]): By key; not to be changed from here on.
        """
        with self.lock:
            self.kept.update(results)
            for key in results:
                self.kept.move_to_end(key)
            while len(self.kept) > self.most:
                self.kept.popitem(last=False)
