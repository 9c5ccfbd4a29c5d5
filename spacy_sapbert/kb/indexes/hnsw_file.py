"""The file of a graph: its layout, and a check of all of it before it is loaded.

hnswlib follows every number of the file without a check: a wrong one reads memory of
other objects or ends the process. In the file follow each other: the header; a record
for each node with its links, its vector and its row; and for each node the size of its
links on the upper levels, and these links.
"""

from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from .row_file import find_bad_vector, name_damage

BLOCK_BYTES = 1 << 23
HEADER = np.dtype(
    [
        ("level0", "<u8"),
        ("capacity", "<u8"),
        ("count", "<u8"),
        ("node", "<u8"),  # bytes of the record of a node
        ("row", "<u8"),  # offsets in it
        ("vector", "<u8"),
        ("levels", "<i4"),
        ("entry", "<u4"),
        ("upper_links", "<u8"),  # maximum of a node
        ("links", "<u8"),
        ("M", "<u8"),
        ("scale", "<f8"),  # of random levels, used to add nodes
        ("ef_construction", "<u8"),
    ]
)


def read_graph(
    path: Path, *, M: int, rows: int, width: int
) -> tuple[np.ndarray, np.ndarray]:
    """Check the file of a graph, and map its vectors.

    After the check, hnswlib reads only inside of what it allocates. The vectors are
    mapped because hnswlib returns them slowly: it makes a Python number of each value.
    They are in the order of the nodes, and come with the node of each row. SOURCE:
    hnswlib 0.8, `HierarchicalNSW::saveIndex` and `searchKnn`.
    """
    node = np.dtype(
        [
            ("links", "<u4", (1 + 2 * M,)),  # their number, and the nodes
            ("vector", "<f4", (width,)),
            ("row", "<u8"),
        ]
    )
    with name_damage(path), open(path, "rb") as file:
        size = path.stat().st_size
        if size < HEADER.itemsize + rows * (node.itemsize + 4):
            raise ValueError(f"it is truncated, at {size} bytes")
        header = np.fromfile(file, HEADER, 1)[0]
        check_header(header, M=M, rows=rows, node=node)
        nodes = read_nodes(file, node, rows)
        check_upper_links(np.fromfile(file, "<u4"), header, size)
    mapped = np.memmap(path, dtype=node, mode="r", offset=HEADER.itemsize, shape=rows)
    return mapped["vector"].view(np.ndarray), nodes


def check_header(header: Any, *, M: int, rows: int, node: np.dtype[Any]) -> None:
    """Raise a ValueError if a number of a header is not what the settings imply."""
    assert node.fields is not None
    expected = {
        "level0": 0,
        "capacity": rows,
        "count": rows,
        "node": node.itemsize,
        "row": node.fields["row"][1],
        "vector": node.fields["vector"][1],
        "upper_links": M,
        "links": 2 * M,
        "M": M,
    }
    for name, value in expected.items():
        if header[name] != value:
            raise ValueError(f"`{name}` of its header is {header[name]}, not {value}")
    if header["levels"] < 0 or header["entry"] >= rows:
        raise ValueError("the first node of its header is out of range")


def read_nodes(file: BinaryIO, node: np.dtype[Any], rows: int) -> np.ndarray:
    """Check the records of all nodes, block by block, after the header.

    Returns the node of each row. Shape: (rows,).
    """
    nodes = np.full(rows, -1, dtype=np.int64)
    at_once = max(1, BLOCK_BYTES // node.itemsize)
    for first in range(0, rows, at_once):
        block = np.fromfile(file, node, min(at_once, rows - first))
        links, row = block["links"], block["row"]
        # The upper bits of the number mark a deleted node; links that are not used
        # are 0 or were used before.
        if (links[:, 0] >= links.shape[1]).any() or (links[:, 1:] >= rows).any():
            raise ValueError("a link is out of range")
        if (bad := find_bad_vector(block["vector"])) is not None:
            raise ValueError(f"node {first + bad} has no unit vector")
        if (row >= rows).any():
            raise ValueError("the row of a node is out of range")
        nodes[row] = np.arange(first, first + len(block))
    if (nodes < 0).any():
        raise ValueError("two nodes have the same row")
    return nodes


def check_upper_links(words: np.ndarray, header: Any, size: int) -> None:
    """Check the links on the levels above the lowest.

    `words` are all 4-byte words after the nodes, `size` the bytes of the file.
    """
    rows, length = int(header["count"]), 1 + int(header["upper_links"])
    if HEADER.itemsize + rows * int(header["node"]) + 4 * len(words) != size:
        raise ValueError("its length is not that of its links")
    levels = np.zeros(rows, dtype=np.int32)
    starts: list[int] = []
    position = 0  # of the size of the links of a node, in bytes
    numbers = words.data  # much faster than an array to read one by one
    for node in range(rows):
        if position >= len(numbers):
            raise ValueError("its length is not that of its links")
        if numbers[position]:
            level, rest = divmod(numbers[position], 4 * length)
            if rest or level > header["levels"]:
                raise ValueError("the size of the links of a node is out of range")
            levels[node] = level
            starts.append(position + 1)
            position += level * length
        position += 1
    if position != len(numbers):
        raise ValueError("its length is not that of its links")
    if levels[header["entry"]] != header["levels"]:
        raise ValueError("its first node is not on the highest level")
    tops = levels[levels > 0]
    for level in range(1, 1 + int(header["levels"])):
        first = np.array(starts)[tops >= level] + (level - 1) * length
        links = words[first[:, None] + np.arange(length)]  # (nodes, length)
        used = np.arange(1, length) <= links[:, :1]
        if (links[:, 0] >= length).any() or (links[:, 1:] >= rows).any():
            raise ValueError("a link is out of range")
        if (levels[links[:, 1:][used]] < level).any():
            raise ValueError("a link leads to a node that is not on its level")
