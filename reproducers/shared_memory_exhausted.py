"""DDP604 shared-memory-exhausted: the loader's workers hold more batches than /dev/shm has room.

torchrun --nproc-per-node=4 reproducers/shared_memory_exhausted.py broken
"""

from __future__ import annotations

import ctypes
import os
import time

import torch
import torch.distributed as dist
import torch.multiprocessing
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, default_collate, get_worker_info

from ddpdoctor.reproducer import backend, broken, documented, fix, main
from ddpdoctor.stack.process_group import session

SIZE, BATCH, BATCHES = 7, 1, 12  # MB of /dev/shm, MB of a batch, and how many there are
WORKERS, PREFETCH = 3, 3  # up to 9 MB of batches wait at a time

NEW_NAMESPACE, PRIVATE, REMOUNT = 0x20000, 0x44000, 0x20  # from <sched.h> and <sys/mount.h>


class Images(Dataset[Tensor]):
    """Samples of 1 MB; it counts how many batches each worker has tried to make of them."""

    def __init__(self, workers: int) -> None:
        self.tried = torch.zeros(workers, dtype=torch.int64).share_memory_()

    def __len__(self) -> int:
        return BATCHES

    def __getitem__(self, index: int) -> Tensor:
        """Return an image that is known by its colour."""
        return torch.full((BATCH * 2**20,), index, dtype=torch.uint8)

    def collate(self, samples: list[Tensor]) -> Tensor:
        """Make a batch: in a worker, default_collate puts it into shared memory."""
        try:
            batch: Tensor = default_collate(samples)
            return batch
        finally:
            if (worker := get_worker_info()) is not None:
                self.tried[worker.id] += 1


def call(name: str, *arguments: object) -> None:
    """Call a function of the C library, and raise what it reports."""
    library = ctypes.CDLL(None, use_errno=True)
    if getattr(library, name)(*arguments) != 0:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")


def small_shared_memory() -> None:
    """Give this process a /dev/shm of 7 MB, as Docker gives a container one of 64 MB.

    In a mount namespace of its own, so that no other process sees it. It goes with the process.
    """
    call("unshare", NEW_NAMESPACE)
    call("mount", b"none", b"/", None, PRIVATE, None)
    call("mount", b"tmpfs", b"/dev/shm", b"tmpfs", 0, b"size=%dm" % SIZE)


def resize(megabytes: int) -> None:
    """Give it another size: mount -o remount,size=... /dev/shm."""
    call("mount", b"tmpfs", b"/dev/shm", b"tmpfs", REMOUNT, b"size=%dm" % megabytes)


def read(workers: int, prefetch: int | None) -> None:
    """Read all batches, after a first step in which the workers have fetched what they may."""
    images = Images(workers)
    loader = DataLoader(
        images, num_workers=workers, prefetch_factor=prefetch, collate_fn=images.collate
    )
    batches = iter(loader)
    deadline = time.monotonic() + 20
    while images.tried.sum() < workers * (prefetch or 0):
        assert time.monotonic() < deadline, "the workers have not done their work"
        time.sleep(0.01)
    seen = [int(batch[0, 0]) for batch in batches]  # <-- DDP604
    assert seen == list(range(BATCHES)), f"batches came as {seen}"


@broken()
def more_batches_than_room() -> None:
    """Let 3 workers prepare 3 batches of 1 MB each, with 7 MB of shared memory."""
    dist.init_process_group(backend())
    small_shared_memory()
    read(WORKERS, PREFETCH)
    dist.destroy_process_group()


@documented(source="pytorch/pytorch#45728, comment")
def share_by_file_system() -> None:
    """Set the sharing strategy to file_system; as many batches, of one worker."""
    dist.init_process_group(backend())
    small_shared_memory()
    torch.multiprocessing.set_sharing_strategy("file_system")
    read(1, WORKERS * PREFETCH)
    dist.destroy_process_group()


@documented(source="pytorch/pytorch#1355, comment")
def remount_it_larger() -> None:
    """Remount /dev/shm with more room, while the job runs."""
    dist.init_process_group(backend())
    small_shared_memory()
    resize(4 * SIZE)
    read(WORKERS, PREFETCH)
    dist.destroy_process_group()


@documented(source="bytedance/Protenix#2, comment")
def fewer_workers() -> None:
    """Use one worker in place of three."""
    dist.init_process_group(backend())
    small_shared_memory()
    read(1, PREFETCH)
    dist.destroy_process_group()


@fix()
def as_many_as_there_is_room_for() -> None:
    """Start as many workers as fit: each holds its prefetch, the main process two batches more."""
    with session(backend=backend()):
        small_shared_memory()
        room = os.statvfs("/dev/shm")
        batches = room.f_blocks * room.f_frsize // (BATCH * 2**20)
        workers = max(0, (batches - 2) // PREFETCH)
        read(workers, PREFETCH if workers else None)


if __name__ == "__main__":
    main()
