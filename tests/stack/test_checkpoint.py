"""A checkpoint is whole or absent, whatever dies when, and its failure reaches every rank."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from ddpdoctor.stack import checkpoint
from ddpdoctor.stack.errors import CheckpointError
from ddpdoctor.stack.process_group import World, session

LONE = World(0, 0, 1, torch.device("cpu"), None)
OLD, NEW = {"step": 1, "weights": torch.ones(1000)}, {"step": 2, "weights": torch.zeros(1000)}
NOBODY = 65534


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_was_saved_is_read_back(tmp_path: Path) -> None:
    checkpoint.save(NEW, tmp_path / "a.pt", LONE)
    read = checkpoint.load(tmp_path / "a.pt", LONE)
    assert read["step"] == 2
    assert torch.equal(read["weights"], NEW["weights"])
    assert files(tmp_path) == ["a.pt"]


@pytest.mark.distributed(nproc=3)
def test_rank_0_alone_writes_and_every_rank_reads(
    shared_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Any] = []
    real_save = torch.save
    monkeypatch.setattr(torch, "save", lambda *args: (written.append(args), real_save(*args)))
    with session() as world:
        checkpoint.save({**OLD, "rank": world.rank}, shared_path / "a.pt", world)
        assert len(written) == (world.rank == 0)
        assert checkpoint.load(shared_path / "a.pt", world)["rank"] == 0


# The steps of a save, in their order, by the function that performs each.
STEPS = {
    "after opening": (torch, "save", 1),
    "before the sync": (os, "fsync", 1),
    "before the rename": (os, "replace", 1),
    "before the folder's sync": (os, "fsync", 2),
}


@pytest.mark.distributed(nproc=1, backend=None)
def test_a_save_that_is_killed_at_any_step_leaves_a_whole_file(shared_path: Path) -> None:
    for moment, (module, name, call) in STEPS.items():
        folder = shared_path / moment
        folder.mkdir()
        path = folder / "a.pt"
        checkpoint.save(OLD, path, LONE)
        status = in_a_child(lambda: save_and_die(path, module, name, call))  # noqa: B023
        assert os.WTERMSIG(status) == signal.SIGKILL, moment
        expected = NEW if moment == "before the folder's sync" else OLD
        assert checkpoint.load(path, LONE)["step"] == expected["step"], moment
        checkpoint.prune(folder, keep_last=1, best=None)
        assert files(folder) == ["a.pt"], moment


def save_and_die(path: Path, module: Any, name: str, call: int) -> None:
    real, calls = getattr(module, name), []

    def die(*args: Any) -> Any:
        calls.append(args)
        if len(calls) == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args)

    setattr(module, name, die)
    checkpoint.save(NEW, path, LONE)


def in_a_child(function: Callable[[], object]) -> int:
    """Fork; for a rank that has neither threads nor a group."""
    child = os.fork()
    if child == 0:
        function()
        os._exit(0)
    return os.waitpid(child, 0)[1]


@pytest.mark.distributed(nproc=2)
def test_a_full_disk_is_the_same_error_on_every_rank(shared_path: Path) -> None:
    big = {"weights": torch.zeros(1_000_000)}
    with session() as world:
        checkpoint.save(OLD, shared_path / "a.pt", world)
        # A write beyond this limit fails as one on a full disk does, in the middle of the file.
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
        with pytest.raises(CheckpointError, match=r"rank 0: cannot write .*a.pt: File too large"):
            checkpoint.save(big, shared_path / "a.pt", world)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        assert files(shared_path) == ["a.pt"]
        assert checkpoint.load(shared_path / "a.pt", world)["step"] == 1


@pytest.mark.distributed(nproc=2)
def test_a_really_full_file_system_is_the_same_error_on_every_rank(shared_path: Path) -> None:
    with session() as world:
        if world.is_main:
            mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(shared_path)]
            mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
            (shared_path.parent / f"mounted-{mounted}").touch()
        with session():
            torch.distributed.barrier()
        if not (shared_path.parent / "mounted-True").exists():
            pytest.skip("only root may mount a small file system")
        try:
            with pytest.raises(CheckpointError, match=r"rank 0: .*No space left on device"):
                checkpoint.save({"weights": torch.zeros(1_000_000)}, shared_path / "a.pt", world)
            assert files(shared_path) == []
        finally:
            torch.distributed.barrier()
            if world.is_main:
                subprocess.run(["umount", str(shared_path)], check=True)


@pytest.mark.distributed(nproc=2)
def test_a_read_only_folder_is_the_same_error_on_every_rank(shared_path: Path) -> None:
    folder = shared_path / "locked"
    with session() as world:
        if world.is_main:
            folder.mkdir()
            folder.chmod(0o555)
        torch.distributed.barrier()
        if os.geteuid() == 0:  # who may write everywhere
            os.seteuid(NOBODY)
        with pytest.raises(CheckpointError, match=r"^rank 0: cannot write .*Permission denied$"):
            checkpoint.save(OLD, folder / "a.pt", world)
        if os.getuid() == 0:
            os.seteuid(0)
        assert files(folder) == []


def torn(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def overwritten(path: Path) -> None:
    path.write_bytes(b"\x80\x02" + b"nonsense" * 500)


@pytest.mark.distributed(nproc=2)
def test_a_file_that_cannot_be_read_is_the_same_error_on_every_rank(shared_path: Path) -> None:
    with session() as world:
        for damage in (torn, emptied, overwritten, Path.unlink):
            path = shared_path / f"{damage.__name__}.pt"
            checkpoint.save(OLD, path, world)
            if world.is_main:
                damage(path)
            torch.distributed.barrier()
            with pytest.raises(CheckpointError, match=rf"^all 2 ranks: .*{path.name}"):
                checkpoint.load(path, world)


class Trap:
    def __reduce__(self) -> Any:
        return (os.system, ("exit 1",))


def test_code_in_a_checkpoint_is_not_run(tmp_path: Path) -> None:
    torch.save({"trap": Trap()}, tmp_path / "a.pt")
    with pytest.raises(CheckpointError):
        checkpoint.load(tmp_path / "a.pt", LONE)


def test_pruning_keeps_the_last_and_the_best_and_nothing_else(tmp_path: Path) -> None:
    for step in range(1, 8):
        (tmp_path / f"step_{step:03d}.pt").touch()
    (tmp_path / "results.json").touch()
    (tmp_path / ".step_003.pt.0abc.tmp").touch()
    checkpoint.prune(tmp_path, keep_last=2, best=tmp_path / "step_003.pt")
    assert files(tmp_path) == ["results.json", "step_003.pt", "step_006.pt", "step_007.pt"]


def test_an_error_of_the_state_itself_is_not_blamed_on_the_disk(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="pickle") as caught:
        checkpoint.save({"function": lambda: None}, tmp_path / "a.pt", LONE)
    assert not isinstance(caught.value, CheckpointError)
    assert files(tmp_path) == []
