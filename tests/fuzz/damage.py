"""Bytes, damaged as disks, editors and enemies damage them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from random import Random

_HUGE = (b"1e999", b"-1", b"99999999999999999999999", b"null", b"[]", b"{}", b'""', b"true", b"NaN")
_MOST = 1 << 20


def damaged(data: bytes, random: Random) -> bytes:
    """The same with one to four things done to it."""
    for _ in range(random.randint(1, 4)):
        data = random.choice(_WAYS)(data, random)[:_MOST]
    return data


def _flip(data: bytes, random: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(random.choice((1, 2, 8, 64)) if data else 0):
        changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def _cut(data: bytes, random: Random) -> bytes:
    begin, end = _stretch(data, random)
    return random.choice((data[:begin], data[begin:], data[:begin] + data[end:]))


def _repeat(data: bytes, random: Random) -> bytes:
    begin, end = _stretch(data, random)
    return data[:end] + data[begin:end] * random.choice((1, 3, 100)) + data[end:]


def _reorder(data: bytes, random: Random) -> bytes:
    lines = data.splitlines(keepends=True)
    if len(lines) > 1 and random.random() < 0.5:
        random.shuffle(lines)
    elif len(lines) > 1:
        first, second = random.randrange(len(lines)), random.randrange(len(lines))
        lines[first], lines[second] = lines[second], lines[first]
    return b"".join(lines)


def _nest(data: bytes, random: Random) -> bytes:
    begin, end = _stretch(data, random)
    depth = random.choice((3, 200, 5000))
    opening, closing = random.choice(((b"[", b"]"), (b"(", b")"), (b'{"a":', b"}"), (b"-", b"")))
    return data[:begin] + opening * depth + data[begin:end] + closing * depth + data[end:]


def _indent(data: bytes, random: Random) -> bytes:
    """What is nested by its indentation, a level deeper from some line on, or a hundred."""
    lines = data.splitlines(keepends=True)
    begin = random.randrange(len(lines) + 1)
    levels = random.choice((1, 30, 99))
    heads = [b" " * level + b"if x:\n" for level in range(levels)]
    return b"".join((*lines[:begin], *heads, *(b" " * levels + each for each in lines[begin:])))


def _replace(data: bytes, random: Random) -> bytes:
    """A word by another of the same file, or by what no number or name is expected to be."""
    words = data.replace(b",", b" ").replace(b":", b" ").split()[:2000]
    if not words:
        return data
    other = random.choice(words) if random.random() < 0.5 else random.choice(_HUGE)
    return data.replace(random.choice(words), other, random.choice((1, -1)))


def _insert(data: bytes, random: Random) -> bytes:
    begin, _ = _stretch(data, random)
    what = random.choice((b"\0", b"\r", b"\xff\xfe", b"\x1b[2J", b"\n" * 999, random.randbytes(40)))
    return data[:begin] + what + data[begin:]


def _stretch(data: bytes, random: Random) -> tuple[int, int]:
    begin = random.randrange(len(data) + 1)
    return begin, min(len(data), begin + random.choice((1, 10, 100, 5000)))


_WAYS: tuple[Callable[[bytes, Random], bytes], ...] = (
    *(_flip, _cut, _repeat, _reorder, _nest, _indent, _replace, _insert),
)


def misplace(path: Path, random: Random, *, named: bool) -> None:
    """Put at this path what no file is. A pipe that was `named` is read as the user wishes."""
    path.unlink()
    match random.randrange(1 if named else 0, 5):
        case 0:
            os.mkfifo(path)
        case 1:
            path.symlink_to(path)
        case 2:
            path.mkdir()
        case 3:
            path.symlink_to("/dev/zero")
        case _:
            path.symlink_to("/nowhere")
