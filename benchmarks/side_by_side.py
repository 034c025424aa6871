"""Work that several processes do at a time, and what they found as it comes."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterable, Iterator
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import TypeVar

Found = TypeVar("Found")


def side_by_side(work: Callable[[int], Iterable[Found]], jobs: int) -> Iterator[Found]:
    """What each part of the work, by its number, gives; raises RuntimeError where one fails.

    By processes, not threads: what is forked from a process with threads may hang.
    """
    readers: list[Connection] = []
    for part in range(jobs):
        reader, writer = Pipe(duplex=False)
        if os.fork() == 0:
            _do(work, part, writer)
        writer.close()
        readers.append(reader)
    while readers:
        for ready in wait(readers):
            assert isinstance(ready, Connection)
            try:
                yield ready.recv()
            except EOFError:
                readers.remove(ready)
    if any(os.wait()[1] for _ in range(jobs)):
        raise RuntimeError("a process of this benchmark failed")


def _do(work: Callable[[int], Iterable[Found]], part: int, writer: Connection) -> None:
    status = 1
    try:
        for each in work(part):
            writer.send(each)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)
