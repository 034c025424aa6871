"""DDP504 ema-deadlock: a torn read at the EMA refresh leaves all ranks waiting for each other.

torchrun --nproc-per-node=4 reproducers/ema_deadlock.py broken
"""

from __future__ import annotations

import atexit
import copy
import os
import zipfile
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from ddpdoctor.reproducer import (
    backend,
    broken,
    documented,
    fix,
    main,
    own_device,
    same_on_all_ranks,
    shared_folder,
)
from ddpdoctor.stack import checkpoint
from ddpdoctor.stack.errors import CheckpointError
from ddpdoctor.stack.process_group import World, session

EPOCHS, STOP_EPOCH = 3, 2  # stage 2 begins with epoch 2: the EMA is refreshed there
DECAY, RESTART_DECAY, DECAY_STEP = 0.99, 0.9999, 0.0001
SCORES = (0.1, 0.2, 0.15)  # stage 2 is not better, so the EMA is refreshed once more


def setup_distributed(**options: str) -> None:
    """Join the process group; at exit, wait for the others."""
    dist.init_process_group(**{"backend": backend(), **options})
    atexit.register(cleanup)


def cleanup() -> None:
    if dist.is_initialized():
        dist.barrier()  # <-- DDP504
        dist.destroy_process_group()


def de_parallel(model: nn.Module) -> nn.Module:
    return model.module if isinstance(model, DistributedDataParallel) else model


def evaluate(epoch: int) -> float:
    """Return the score of an epoch: scripted, but summed over the ranks as in earnest."""
    score = torch.tensor(SCORES[epoch], device=own_device())
    dist.all_reduce(score)
    return score.item() / dist.get_world_size()


class ModelEMA:
    """A moving average of the weights, whose decay is read at each update."""

    def __init__(self, model: nn.Module) -> None:
        self.decay = DECAY
        self.module = copy.deepcopy(de_parallel(model)).requires_grad_(False)

    def update(self, model: nn.Module) -> None:
        """Move towards the weights of the model."""
        for average, weight in zip(self.module.parameters(), model.parameters(), strict=True):
            average.lerp_(weight.detach(), 1 - self.decay)


class DetSolver:
    """Trains in two stages. Stage 2 begins with the best weights and EMA of stage 1."""

    def __init__(self) -> None:
        # Frozen, so it is in the checkpoint (8 MB) but not in the wrapper.
        self.backbone = nn.Embedding.from_pretrained(torch.ones(32 * 1024, 64))
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 1)).to(own_device())
        self.model = DistributedDataParallel(net)
        self.ema = ModelEMA(self.model)
        self.optimizer = torch.optim.AdamW(self.model.parameters())
        self.best_stg1 = shared_folder() / "best_stg1.pth"
        self.last_epoch = -1
        self.refreshed_from: list[int] = []
        torch.manual_seed(dist.get_rank())

    def fit(self, stop_epoch: int = STOP_EPOCH) -> None:
        """Train all epochs."""
        best = 0.0
        for epoch in range(EPOCHS):
            if epoch == stop_epoch:
                self.enter_stage_2()
            self.train_one_epoch()
            self.last_epoch = epoch
            if (score := evaluate(epoch)) > best:
                best = score
                self.save_on_master(self.best_stg1)
            elif epoch >= stop_epoch:
                self.refresh_again()

    def train_one_epoch(self) -> None:
        """Take one step."""
        self.optimizer.zero_grad()
        features = self.backbone(torch.randint(1024, (8,))) * torch.randn(8, 64)
        self.model(features.to(own_device())).square().mean().backward()
        self.optimizer.step()
        self.ema.update(self.model)

    def enter_stage_2(self) -> None:
        """Go back to the best of stage 1, and let the EMA move more slowly."""
        self.load_resume_state(self.best_stg1)
        self.refreshed_from.append(self.last_epoch)
        self.ema.decay = RESTART_DECAY

    def refresh_again(self) -> None:
        """Go back to it once more, after an epoch of stage 2 that was not better."""
        self.ema.decay -= DECAY_STEP
        self.load_resume_state(self.best_stg1)
        self.refreshed_from.append(self.last_epoch)

    def save_on_master(self, path: Path) -> None:
        """Save on rank 0: it alone asks the wrapper for its state_dict."""
        if dist.get_rank() == 0:
            torch.save(self.state_dict(), path)

    def load_resume_state(self, path: Path) -> None:
        """Restore everything from a checkpoint, on every rank."""
        self.load_state_dict(torch.load(path, map_location="cpu"))  # <-- DDP504

    def state_dict(self) -> dict[str, Any]:
        """Return all that a checkpoint holds."""
        return {
            "backbone": self.backbone.state_dict(),
            "model": self.model_state(),
            "ema": self.ema.module.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "last_epoch": self.last_epoch,
        }

    def model_state(self) -> dict[str, Tensor]:
        """Return the model's weights, asked of the DDP wrapper."""
        return {
            key.removeprefix("module."): value for key, value in self.model.state_dict().items()
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore everything; a checkpoint without EMA begins with that of the model."""
        self.backbone.load_state_dict(state["backbone"], assign=True)
        de_parallel(self.model).load_state_dict(state["model"])
        self.ema.module.load_state_dict(state["ema"] if "ema" in state else self.model_state())
        self.optimizer.load_state_dict(state["optimizer"])
        self.last_epoch = state["last_epoch"]


def check(solver: DetSolver) -> None:
    """Assert that the EMA was refreshed from the last checkpoint, and is equal on all ranks."""
    refreshed_from: list[list[int]] = [[]] * dist.get_world_size()
    dist.all_gather_object(refreshed_from, solver.refreshed_from)
    last = [STOP_EPOCH - 1] * 2
    assert all(epochs == last for epochs in refreshed_from), (
        f"epochs that the EMA was refreshed from, by rank: {refreshed_from}; not {last}"
    )
    assert bool((solver.backbone.weight == 1).all()), "the backbone is damaged"
    assert same_on_all_ranks(solver.model.parameters()), "parameters differ between the ranks"
    assert same_on_all_ranks(solver.ema.module.parameters()), "the EMA differs between the ranks"

    assert abs(solver.ema.decay - (RESTART_DECAY - DECAY_STEP)) < 1e-9, f"decay {solver.ema.decay}"
    before = [average.clone() for average in solver.ema.module.parameters()]
    solver.train_one_epoch()
    weights, averages = solver.model.parameters(), solver.ema.module.parameters()
    for old, weight, average in zip(before, weights, averages, strict=True):
        expected = old.lerp(weight.detach(), 1 - solver.ema.decay)
        assert torch.equal(average, expected), "the EMA does not move with its decay"


def solve(kind: type[DetSolver] = DetSolver, stop_epoch: int = STOP_EPOCH, **group: str) -> None:
    """Join the group, then train and check twice, as a race can be won once."""
    setup_distributed(**group)
    for _ in range(2):
        solver = kind()
        solver.fit(stop_epoch)
        check(solver)


@broken(ranks="nonzero", launches=5)
def refresh_while_rank_0_saves() -> None:
    """Torn read at the stage switch, then a barrier at exit."""
    solve()


class Unwrapped(DetSolver):
    """Takes the DDP wrapper off, under no_grad, before it asks for the weights."""

    def model_state(self) -> dict[str, Tensor]:
        """Return the model's weights, asked of the bare module: the same ones."""
        with torch.no_grad():
            bare = de_parallel(self.model).state_dict()
        wrapped = super().model_state()
        assert bare.keys() == wrapped.keys(), "unwrapping changed the keys"
        assert all(torch.equal(bare[key], wrapped[key]) for key in bare), "it changed the weights"
        return bare


@documented(source="004 fix 1, load_state_dict", launches=2)
def unwrap_before_state_dict() -> None:
    """Take the wrapper off before state_dict()."""
    solve(Unwrapped)


class BarrierAtTheSwitch(DetSolver):
    """Waits for all ranks before it loads at the stage switch."""

    def enter_stage_2(self) -> None:
        """Wait, then go back to the best of stage 1."""
        dist.barrier()
        super().enter_stage_2()


@documented(source="004 fix 2, first barrier", launches=2)
def barrier_at_the_stage_switch() -> None:
    """Barrier before the load at stop_epoch."""
    solve(BarrierAtTheSwitch)


class BarrierAtLaterRefreshes(DetSolver):
    """Waits for all ranks before the later refreshes alone."""

    def refresh_again(self) -> None:
        """Wait, then go back to the best of stage 1."""
        dist.barrier()
        super().refresh_again()


@documented(source="004 fix 2, second barrier", launches=2)
def barrier_at_the_later_refresh() -> None:
    """Barrier before the later refreshes alone."""
    solve(BarrierAtLaterRefreshes)


class CheckedLoad(DetSolver):
    """Has rank 0 look at the file first, and barriers around the load."""

    def load_resume_state(self, path: Path) -> None:
        """Restore everything from a checkpoint, on every rank."""
        if dist.get_rank() == 0:
            if not path.exists():
                raise FileNotFoundError(f"there is no checkpoint {path}")
            if path.stat().st_size == 0:
                raise RuntimeError(f"the checkpoint {path} is empty")
        dist.barrier()
        try:
            state = torch.load(path, map_location="cpu")
        except Exception as error:
            print(f"rank {dist.get_rank()} cannot load {path}: {error}")
            raise
        self.load_state_dict(state)
        dist.barrier()


@documented(source="004 fix 1, load_resume_state", launches=2)
def barriers_around_the_load() -> None:
    """Rank 0 checks existence and size, then barrier, load, barrier."""
    solve(CheckedLoad)


@documented(source="004 further measure 1", launches=2)
def longer_nccl_timeout() -> None:
    """NCCL_TIMEOUT=3600."""
    os.environ["NCCL_TIMEOUT"] = "3600"
    solve()


@documented(source="004 further measure 2", launches=2, promises="an aid")
def nccl_debug() -> None:
    """NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=ALL."""
    os.environ.update(NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="ALL")
    solve()


@documented(source="004 further measure 3", launches=2)
def gloo_backend() -> None:
    """Backend gloo with env://, which the doctor uses by default."""
    solve(backend="gloo", init_method="env://")


@documented(source="004 further measure 4", launches=2)
def never_stop() -> None:
    """stop_epoch = 999999: the refresh is switched off."""
    solve(stop_epoch=999999)


class VerifiedLoad(DetSolver):
    """Tests the file before it loads it."""

    def load_resume_state(self, path: Path) -> None:
        """Restore everything from a checkpoint, on every rank."""
        with zipfile.ZipFile(path) as archive:
            if (member := archive.testzip()) is not None:
                raise RuntimeError(f"{path.name}: {member} is corrupt")
        super().load_resume_state(path)


@documented(source="004 further measure 5", launches=2)
def verify_before_the_load() -> None:
    """Each rank tests the zip archive before it loads."""
    solve(VerifiedLoad)


class RenamingSave(DetSolver):
    """Saves by safe_torch_save: temporary file, rename, fsync."""

    def save_on_master(self, path: Path) -> None:
        """Save on rank 0."""
        if dist.get_rank() == 0:
            temporary = Path(f"{path}.tmp")
            torch.save(self.state_dict(), temporary)
            temporary.replace(path)
            with path.open("rb") as file:
                os.fsync(file.fileno())


@documented(source="004 further measure 6", launches=2)
def rename_without_a_barrier() -> None:
    """Rank 0 saves by safe_torch_save; no barrier."""
    solve(RenamingSave)


class StackSolver(DetSolver):
    """Saves and loads with the reference stack: atomic file, outcome shared by all ranks."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world

    def save_on_master(self, path: Path) -> None:
        """Save on rank 0; it returns on every rank when the file is whole."""
        checkpoint.save(self.state_dict(), path, self.world)

    def load_resume_state(self, path: Path) -> None:
        """Restore everything on every rank, or raise on every rank."""
        self.load_state_dict(checkpoint.load(path, self.world))


@fix()
def stack_checkpoint_and_session() -> None:
    """Atomic save, shared outcome, and no barrier at exit."""
    with session(backend=backend()) as world:
        solver = StackSolver(world)
        solver.fit()
        check(solver)
        del solver  # the wrapper must not outlive the group


def refusal(solver: DetSolver) -> str:
    """Return why the checkpoint cannot be loaded; empty if it can."""
    try:
        solver.load_resume_state(solver.best_stg1)
    except CheckpointError as error:
        return str(error)
    return ""


@fix()
def damaged_file_fails_everywhere() -> None:
    """The same, with a damaged file: all ranks raise, none waits."""
    with session(backend=backend()) as world:
        solver = StackSolver(world)
        solver.save_on_master(solver.best_stg1)
        if world.is_main:
            os.truncate(solver.best_stg1, 1_000_000)
        dist.barrier()
        refusals: list[str] = [""] * world.world_size
        dist.all_gather_object(refusals, refusal(solver))
        assert refusals[0], "a damaged checkpoint was loaded"
        assert set(refusals) == {refusals[0]}, f"the ranks raised {refusals}"
        del solver  # the wrapper must not outlive the group


if __name__ == "__main__":
    main()
