"""The file of a graph of faiss: its layout, and a check of all of it before it is used.

faiss checks most numbers itself when it reads a file, but not that a link leads to a
node of its own level, and it reads any other index that a file may have. So the layout
is checked first: header; for each node its number of levels, the place of its links,
and the links (−1 = none); then the ranges and the codes of the vectors.
"""

from pathlib import Path

import numpy as np

from .row_file import name_damage

HEADER = np.dtype(
    [
        ("kind", "S4"),
        ("width", "<i4"),
        ("rows", "<i8"),
        ("unused", "<i8", (2,)),
        ("trained", "u1"),
        ("metric", "<i4"),
    ]
)
SEARCH = np.dtype(
    [
        ("entry", "<i4"),
        ("top", "<i4"),  # the highest level
        ("ef_construction", "<i4"),
        ("ef", "<i4"),
        ("unused", "<i4"),
    ]
)
CODES = np.dtype(
    [
        ("type", "<i4"),  # 0 = 8 bits, a range for each value
        ("range", "<i4"),
        ("argument", "<f4"),
        ("width", "<u8"),
        ("bytes", "<u8"),
    ]
)
BLOCK_NODES = 1 << 18
MAX_VALUE = 4.0  # of a range; the values of unit vectors are from −1 to 1


class Parts:
    """The parts of a mapped file, read one after the other."""

    def __init__(self, path: Path) -> None:
        if not path.stat().st_size:
            raise ValueError("it is empty")
        self.data = np.memmap(path, dtype=np.uint8, mode="r")
        self.position = 0

    def record(self, layout: np.dtype) -> np.void:
        """Read a record."""
        return self.numbers(layout, 1)[0]

    def numbers(self, layout: np.dtype, many: int) -> np.ndarray:
        """Map numbers of a known count."""
        start = self.position
        self.position += many * layout.itemsize
        if self.position > len(self.data):
            raise ValueError(f"it is truncated, at {len(self.data)} bytes")
        return self.data[start : self.position].view(layout)

    def array(self, layout: str, many: int) -> np.ndarray:
        """Map an array, which begins with its length."""
        length = int(self.numbers(np.dtype("<u8"), 1)[0])
        if length != many:
            raise ValueError(f"an array has {length} values and not {many}")
        return self.numbers(np.dtype(layout), many)


def check_graph(path: Path, *, rows: int, width: int, links: np.ndarray) -> None:
    """Check the file of a graph: then faiss reads only inside of what it maps.

    `links` are the places for links of a node up to each level, from 0. Shape: (levels
    + 1,). SOURCE: faiss 1.15, `read_index_up` and `HNSW::search`.
    """
    with name_damage(path):
        parts = Parts(path)
        check_header(parts.record(HEADER), b"IHNs", rows, width)
        parts.array("<f8", len(links) - 1)
        if (parts.array("<i4", len(links)) != links).any():
            raise ValueError("its numbers of links are of other settings")
        levels = parts.array("<i4", rows)
        if not 1 <= levels.min() <= levels.max() < len(links):
            raise ValueError("the level of a node is out of range")
        starts = parts.array("<u8", rows + 1)
        check_links(parts, levels, starts, links)
        search = parts.record(SEARCH)
        if not 0 <= search["entry"] < rows:
            raise ValueError("its first node is out of range")
        if search["top"] != levels.max() - 1 or levels[search["entry"]] != levels.max():
            raise ValueError("its first node is not on the highest level")
        check_codes(parts, rows, width)
        if parts.position != len(parts.data):
            raise ValueError("its length is not that of its parts")


def count_rows(path: Path) -> int:
    """Return the number of rows in the header of a file, which is not checked."""
    header = np.fromfile(path, HEADER, count=1)
    return int(header["rows"][0]) if len(header) else 0


def check_header(header: np.void, kind: bytes, rows: int, width: int) -> None:
    """Raise a ValueError if the header of the graph, or of the codes, is different."""
    expected = {"kind": kind, "width": width, "rows": rows, "trained": 1, "metric": 0}
    for name, value in expected.items():
        if header[name] != value:
            raise ValueError(f"`{name}` of its header is not {value!r}")


def check_links(
    parts: Parts, levels: np.ndarray, starts: np.ndarray, capacities: np.ndarray
) -> None:
    """Check the links of all nodes.

    `levels` has the number of levels of each node, `starts` where its links begin, and
    `capacities` are the `links` of `check_graph`.
    """
    rows = len(levels)
    links = parts.array("<i4", int(capacities[levels].sum(dtype=np.int64)))
    begin = 0
    for first in range(0, rows, BLOCK_NODES):
        block_levels = levels[first : first + BLOCK_NODES]
        ends = begin + np.cumsum(capacities[block_levels], dtype=np.int64)
        expected = np.concatenate([[begin], ends])
        if (starts[first : first + len(expected)] != expected).any():
            raise ValueError("the place of the links of a node is wrong")
        block = links[begin : ends[-1]]
        begin = int(ends[-1])
        # As numbers without a sign, −1 is the largest; one more makes it 0.
        if ((block.view("<u4") + np.uint32(1)) > rows).any():
            raise ValueError("a link is out of range")
        # Links of level 0 may lead to any node.
        for level in range(1, int(block_levels.max())):
            high = expected[:-1][block_levels > level]
            slots = np.arange(capacities[level], capacities[level + 1])
            targets = links[high[:, None] + slots]
            if (levels[targets[targets >= 0]] <= level).any():
                raise ValueError("a link leads to a node that is not on its level")


def check_codes(parts: Parts, rows: int, width: int) -> None:
    """Raise a ValueError if a range or the number of the codes is not valid."""
    check_header(parts.record(HEADER), b"IxSQ", rows, width)
    codes = parts.record(CODES)
    if (codes["type"], codes["width"], codes["bytes"]) != (0, width, width):
        raise ValueError("its codes are of another type")
    ranges = parts.array("<f4", 2 * width)
    if not (np.abs(ranges) <= MAX_VALUE).all():  # false for NaN
        raise ValueError("a range of its codes is not valid")
    parts.array("u1", rows * width)
