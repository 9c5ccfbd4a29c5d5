import gzip
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.io import reading as files
from spacy_sapbert.io.reading import decode_line, read_line_blocks, read_lines


def lines_of(path: Path, **options: Any) -> list[tuple[int, bytes]]:
    return [
        (number, line)
        for first, lines in read_line_blocks(path, **options)
        for number, line in enumerate(lines, first)
    ]


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", []),
        (b"a\n\nb", [b"a", b"", b"b"]),
        (b"a\r\nb\r\n", [b"a", b"b"]),
        (b"a\rb\n", [b"a\rb"]),
        (b"a\r", [b"a"]),
        (b"\xef\xbb\xbfa\n", [b"a"]),
        ("a\u2028b\u0085c\n".encode(), ["a\u2028b\u0085c".encode()]),
    ],
)
def test_read_line_blocks_only_line_feeds_end_lines(tmp_path, data, expected):
    lines = lines_of(write(tmp_path / "x.txt", data))
    assert [line for _, line in lines] == expected
    assert [number for number, _ in lines] == list(range(1, len(expected) + 1))


@given(
    lines=st.lists(
        st.binary(max_size=12).map(lambda b: b.replace(b"\n", b"")), min_size=1
    ),
    end=st.sampled_from([b"\n", b"\r\n"]),
    block_bytes=st.integers(4, 40),
    packed=st.booleans(),
)
def test_read_line_blocks_any_block_size_gives_the_same_lines(
    tmp_path_factory, lines, end, block_bytes, packed
):
    # a mark at the start is no mark, and a lone carriage return at an end is no end
    lines = [b"x" + line.rstrip(b"\r") for line in lines]
    data = end.join(lines) + end
    folder = tmp_path_factory.mktemp("blocks")
    name = "x.gz" if packed else "x"
    path = write(folder / name, gzip.compress(data) if packed else data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "BLOCK_BYTES", block_bytes)
        assert lines_of(path) == list(enumerate(lines, 1))


@given(cuts=st.lists(st.integers(0, 200), max_size=5), packed=st.booleans())
def test_read_line_blocks_parts_may_be_split_at_any_byte(
    tmp_path_factory, cuts, packed
):
    folder = tmp_path_factory.mktemp("parts")
    data = "".join(f"line {number} é\n" for number in range(30)).encode()
    whole = gzip.compress(data) if packed else data
    borders = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    parts = [
        write(folder / f"x.{n:02}{'.gz' if packed else ''}", whole[start:end])
        for n, (start, end) in enumerate(zip(borders, borders[1:], strict=False))
    ]
    lines = lines_of(folder / "x", parts=parts)
    assert b"".join(line + b"\n" for _, line in lines) == data


def test_read_blocks_gzip_may_be_padded_with_zeros_only(tmp_path):
    packed = gzip.compress(b"a\n")
    assert lines_of(write(tmp_path / "x.gz", packed + bytes(9))) == [(1, b"a")]
    with pytest.raises(SapbertError, match="E150"):
        lines_of(write(tmp_path / "y.gz", packed + b"more"))


@pytest.mark.parametrize("kept", [0, 20, -1, None])
def test_read_lines_damaged_gzip_is_an_error(tmp_path, kept):
    data = bytearray(gzip.compress(os.urandom(3000).hex().encode() + b"\n"))
    if kept is None:
        data[len(data) // 2] ^= 16
    path = write(tmp_path / "x.gz", bytes(data[:kept]))
    with pytest.raises(SapbertError, match=r"E150.*x\.gz:\d+: Expected a whole gzip"):
        lines_of(path)


def test_read_lines_gzip_bomb_is_an_error_in_bounded_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "UNPACKED_BYTES", 1 << 24)
    path = write(tmp_path / "bomb.gz", gzip.compress(b"\n" * (1 << 16), 9) * 5000)
    tracemalloc.start()
    with pytest.raises(SapbertError, match="E007.*100 times.*`gunzip`"):
        for _ in read_line_blocks(path):
            pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 * (1 << 24)


def test_read_lines_large_line_is_an_error_with_its_number(tmp_path, monkeypatch):
    line = b"x|" * (1 << 20)
    path = write(tmp_path / "x", b"a\nb\n" + line + b"\nc\n")
    end = write(tmp_path / "y", b"a\nb\n" + line)
    assert lines_of(path)[2:] == [(3, line), (4, b"c")]
    assert lines_of(end)[2:] == [(3, line)]
    for name, limit in (("RECORD_BYTES", 2 << 20), ("RECORD_VALUES", 1 << 20)):
        with monkeypatch.context() as patch:
            patch.setattr(files, name, limit - 1)
            for file in (path, end):
                with pytest.raises(SapbertError, match=rf"E007.*{file.name}:3: "):
                    lines_of(file)


def test_read_lines_invalid_utf8_is_an_error_with_line_and_offset(tmp_path):
    path = write(tmp_path / "x", b"a\nb\xc3\xa9c\xff\n")
    with pytest.raises(SapbertError, match=r"x:2: Expected UTF-8.* offset 4 "):
        list(read_lines(path))
    with pytest.raises(SapbertError, match=r"x:7: .* offset 0 "):
        decode_line(b"\x80", tmp_path / "x", 7)


def test_read_lines_missing_file_or_folder_is_an_error(tmp_path):
    with pytest.raises(SapbertError, match="E001"):
        lines_of(tmp_path / "nothing")
    with pytest.raises(SapbertError, match="E002"):
        lines_of(tmp_path)
