"""Begins to watch a process that was not started under the doctor, by a line in its own script."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path

from ddpdoctor.watch import arrival
from ddpdoctor.watch.harmless import harmless

_STORE_KEY = "ddpdoctor/run"
_begun = False


def start(run_dir: str | os.PathLike[str] | None = None) -> None:
    """Begin to watch this process, in which torch may be imported already, or joined.

    Ranks agree on a new folder in reports/, by the store that they meet by, and nobody waits. One
    that is named is used as it is, also by ranks that this process forks. Does nothing in a process
    that is watched, nor under DDPDOCTOR_DISABLE=1. Raises nothing.
    """
    global _begun
    if _begun or "DDPDOCTOR_RUN" in os.environ or os.environ.get("DDPDOCTOR_DISABLE") == "1":
        return
    _begun = True
    _start(Path(run_dir).absolute() if run_dir is not None else None)


@harmless
def _start(run_dir: Path | None) -> None:
    if run_dir is not None:
        run_dir.mkdir(parents=True, exist_ok=True)
        if "torch" in sys.modules:
            arrival.listen(run_dir)
        else:
            arrival.await_torch(run_dir)
        return
    import torch.distributed as dist

    if not dist.is_available():
        return
    from ddpdoctor.watch import joining
    from ddpdoctor.watch.watching import Watch

    here = Watch()

    def begin(rank: int, world_size: int) -> None:
        if not dist.is_initialized():  # there is no store to agree by yet
            joining.when_known(begin)
        elif not here.log.is_open:
            here.begin(arrival.world_folder(_agreed()), rank, world_size)

    joining.when_known(begin)
    if dist.is_initialized():
        joining.has_joined(here.log)


def _agreed() -> Path:
    """The folder that the first of the ranks has proposed. Raises what the store raises."""
    from torch.distributed import distributed_c10d

    store = distributed_c10d._get_default_store()
    mine = Path(f"reports/run-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}").absolute()
    folder = Path(store.compare_set(_STORE_KEY, "", str(mine)).decode())
    for each in (folder.parent, folder):
        with contextlib.suppress(FileExistsError):
            arrival.make_folder(each)
    return folder
