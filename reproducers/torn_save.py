"""DDP503 torn-save: a rank is killed while it writes, and the old checkpoint is lost with the new.

torchrun --nproc-per-node=4 reproducers/torn_save.py broken
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Literal

import torch
import torch.distributed as dist

from ddpdoctor.reproducer import (
    backend,
    broken,
    documented,
    fix,
    main,
    measured,
    own_device,
    shared_folder,
)
from ddpdoctor.stack import checkpoint
from ddpdoctor.stack.process_group import session

TENSORS, NUMBERS = 3, 4096
WIDE = 1 << 20  # numbers of a tensor where writers are to overlap: 12 MB in a file
# The calls by which a process changes files. PyTorch's own writer makes one of its file as a whole.
STEPS = "open", "write_record", "write_end_of_file", "flush", "fsync", "unlink", "replace", "close"

State = dict[str, Any]
Write = Callable[[State, Path], None]
Left = Literal["old", "new", "lost"]


def make_state(epoch: int, numbers: int = NUMBERS) -> State:
    """Make a checkpoint in which every number is the epoch."""
    weights = {f"layer{i}": torch.full((numbers,), float(epoch)) for i in range(TENSORS)}
    return {"model": weights, "epoch": epoch}


def die_before(step: int, names: list[str]) -> None:
    """From now on note the steps of this process, and kill it before a certain one."""

    def look(frame: FrameType, event: str, called: Any) -> None:
        if event == "c_call" and getattr(called, "__name__", "") in STEPS:
            if len(names) == step:
                os.kill(os.getpid(), signal.SIGKILL)
            names.append(called.__name__)

    sys.setprofile(look)


def steps_of(write: Write, path: Path) -> list[str]:
    """Write once and return the steps that it took."""
    write(make_state(0), path)  # the first time, modules are imported
    names: list[str] = []
    die_before(-1, names)
    try:
        write(make_state(0), path)
    finally:
        sys.setprofile(None)
    return names


def kill_before(step: int, write: Write, path: Path) -> bool:
    """Write in a child process that is killed before a step; say whether it came to that step."""
    child = os.fork()
    if child == 0:
        die_before(step, [])
        write(make_state(1), path)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def left_in(path: Path) -> Left:
    """Return which checkpoint can be loaded, if any."""
    try:
        state = torch.load(path, map_location="cpu")
    except (OSError, RuntimeError, EOFError, ValueError, pickle.UnpicklingError):
        return "lost"
    assert all(bool((each == state["epoch"]).all()) for each in state["model"].values()), (
        "a mixture"
    )
    return "new" if state["epoch"] == 1 else "old"


def kill_at_each_step(write: Write) -> Counter[Left]:
    """Kill a writer before each of its steps, the ranks in turn, and count what is left."""
    folder = shared_folder() / f"rank{dist.get_rank()}"
    folder.mkdir()
    path = folder / "last.pt"
    steps = steps_of(write, path)
    mine: Counter[Left] = Counter()
    for step in range(dist.get_rank(), len(steps), dist.get_world_size()):
        torch.save(make_state(0), path)
        assert kill_before(step, write, path), f"it never came to step {step}, {steps[step]}"
        mine[left_in(path)] += 1
    counts: list[Counter[Left]] = [mine] * dist.get_world_size()
    dist.all_gather_object(counts, mine)
    left = sum(counts, Counter[Left]())
    told = ", ".join(f"{left[each]} {each}" for each in ("old", "new", "lost"))
    measured(f"killed before each of {len(steps)} steps, what could be loaded: {told}")
    return left


def save_in_place(state: State, path: Path) -> None:
    torch.save(state, path)  # <-- DDP503


@broken(ranks=(0,))
def killed_while_saving_in_place() -> None:
    """Rank 0 saves over the old checkpoint, and is killed in the middle."""
    dist.init_process_group(backend())
    left = kill_at_each_step(save_in_place)
    assert left["lost"] > 0, "a save in place has become safe"
    path = shared_folder() / "last.pt"
    if dist.get_rank() == 0:
        save_in_place(make_state(0), path)
        die_before(TENSORS, [])  # out of memory, out of time, pre-empted
        save_in_place(make_state(1), path)
    dist.all_reduce(torch.ones(1, device=own_device()))


def check(left: Counter[Left]) -> None:
    """Assert that at each point the old checkpoint or the new one could be loaded."""
    assert left["lost"] == 0, f"at {left['lost']} points neither the old nor the new is there"
    assert left["old"] > 0, "the old one was never there"


def safe_torch_save(state: State, path: Path) -> None:
    """Save to a temporary file of fixed name, rename it, then sync it; as given, without a lock."""
    temporary = Path(f"{path}.tmp")
    torch.save(state, temporary)
    temporary.replace(path)
    with path.open("rb") as file:
        os.fsync(file.fileno())


@documented(source="004 further measure 6: safe_torch_save")
def safe_torch_save_killed() -> None:
    """Rename, then sync; a writer is killed before each step."""
    dist.init_process_group(backend())
    check(kill_at_each_step(safe_torch_save))
    dist.destroy_process_group()


def check_order(write: Write) -> None:
    """Assert that a power cut finds content behind the new name: synced before it is given."""
    steps = steps_of(write, shared_folder() / f"rank{dist.get_rank()}.pt")
    told = ", ".join(name for name in steps if name in ("fsync", "replace"))
    measured(f"order: {told}")
    assert "fsync" in steps[: steps.index("replace")], f"renamed before it was synced ({told})"
    assert "fsync" in steps[steps.index("replace") :], f"the folder is never synced ({told})"


@documented(source="004 further measure 6: safe_torch_save")
def safe_torch_save_and_power_cut() -> None:
    """The same, and a look at what a power cut would find: synced before it is renamed."""
    dist.init_process_group(backend())
    check_order(safe_torch_save)
    dist.destroy_process_group()


def write_together(write: Write) -> None:
    """Let all ranks save to one path at the same time, twice."""
    path, state = shared_folder() / "last.pt", make_state(1, WIDE)
    for _ in range(2):
        dist.barrier()
        write(state, path)
        dist.barrier()
        assert left_in(path) == "new", "several writers left a file that cannot be loaded"


@documented(source="004 further measure 6: safe_torch_save")
def safe_torch_save_by_two_writers() -> None:
    """The same, "with a file lock"; several writers at a time."""
    dist.init_process_group(backend())
    write_together(safe_torch_save)
    dist.destroy_process_group()


def unlink_then_replace(state: State, path: Path) -> None:
    temporary = path.with_name("tmp.pth.tar")
    torch.save(state, temporary)
    if path.exists():
        path.unlink()  # "required for Windows support"
    temporary.replace(path)


@documented(source="timm 1.0.31, CheckpointSaver._replace")
def unlink_first() -> None:
    """Delete the old file, then rename the new one."""
    dist.init_process_group(backend())
    check(kill_at_each_step(unlink_then_replace))
    dist.destroy_process_group()


def verify_checkpoint(path: Path) -> bool:
    """Say whether the file is a zip archive whose members all have the right checksum."""
    try:
        with zipfile.ZipFile(path) as archive:
            if (member := archive.testzip()) is not None:
                raise RuntimeError(f"{member} is corrupt")
    except Exception as error:
        print(f"{path.name}: {error}")
        return False
    return True


@documented(source="004 further measure 5: verify_checkpoint")
def verify_damaged_files() -> None:
    """Test the zip archive of files that are cut off or changed in one byte."""
    dist.init_process_group(backend())
    path = shared_folder() / f"rank{dist.get_rank()}.pt"
    torch.save(make_state(0), path)
    whole = path.read_bytes()
    assert verify_checkpoint(path), "a whole file is refused"
    for length in range(0, len(whole), len(whole) // 16):
        path.write_bytes(whole[:length])
        assert not verify_checkpoint(path), f"{length} of {len(whole)} bytes pass"
    middle = len(whole) // 2  # in the numbers of a tensor
    path.write_bytes(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :])
    assert not verify_checkpoint(path), "a changed byte passes"
    dist.destroy_process_group()


@documented(source="004 further measure 5: verify_checkpoint")
def verify_whole_files() -> None:
    """Test the archive of a whole file in the format before torch 1.6."""
    dist.init_process_group(backend())
    path = shared_folder() / f"rank{dist.get_rank()}.pt"
    torch.save(make_state(0), path, _use_new_zipfile_serialization=False)
    assert left_in(path) == "old", "the file cannot be loaded"
    assert verify_checkpoint(path), "a whole file in the format before torch 1.6 is refused"
    dist.destroy_process_group()


@documented(source="004 further measure 5: verify_checkpoint")
def verify_whole_files_without_checksums() -> None:
    """The same, for files saved with set_crc32_options(False), which is faster."""
    dist.init_process_group(backend())
    path = shared_folder() / f"rank{dist.get_rank()}.pt"
    torch.serialization.set_crc32_options(False)
    torch.save(make_state(0), path)
    assert left_in(path) == "old", "the file cannot be loaded"
    assert verify_checkpoint(path), "a whole file without checksums is refused"
    dist.destroy_process_group()


def replace_atomically(state: State, path: Path) -> None:
    with checkpoint.replacing(path) as file:
        torch.save(state, file)


@fix()
def stack_writer() -> None:
    """Unique name, fsync, rename, fsync of the folder: the stack's writer."""
    with session(backend=backend()) as world:
        check(kill_at_each_step(replace_atomically))
        check_order(replace_atomically)
        write_together(replace_atomically)
        folder = shared_folder() / f"rank{world.rank}"
        checkpoint.prune(folder, keep_last=1, best=None)
        kept = [file.name for file in folder.iterdir()]
        assert kept == ["last.pt"], f"killed writers have left {kept}"


if __name__ == "__main__":
    main()
