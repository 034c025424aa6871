"""DDP513 resume-on-one-rank: some ranks resume from the checkpoint, and the others begin anew.

torchrun --nproc-per-node=4 reproducers/resume_on_one_rank.py broken
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

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
from ddpdoctor.stack.outcome import on_main
from ddpdoctor.stack.process_group import World, session

SAMPLES, EPOCHS, STOPPED_AFTER = 24, 4, 2


class Trainer:
    """A model, its optimizer, and the epochs it has behind it."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        features = torch.randn(SAMPLES, 6)
        self.dataset = TensorDataset(features, features.sum(dim=1, keepdim=True))
        self.net = nn.Linear(6, 1).to(own_device())
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.05, momentum=0.9)
        self.first_epoch = 0

    def fit(self, epochs: int) -> None:
        """Wrap the model and train from the first epoch on."""
        model = DistributedDataParallel(self.net)
        sampler: DistributedSampler[Any] = DistributedSampler(self.dataset)
        loader = DataLoader(self.dataset, batch_size=3, sampler=sampler)
        for epoch in range(self.first_epoch, epochs):
            sampler.set_epoch(epoch)
            for features, target in loader:
                self.optimizer.zero_grad()
                wrong = model(features.to(own_device())) - target.to(own_device())
                wrong.square().mean().backward()
                self.optimizer.step()

    def state(self, epoch: int) -> dict[str, Any]:
        """Return what a checkpoint after this epoch holds."""
        return {
            "model": self.net.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "epoch": epoch,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        self.net.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.first_epoch = state["epoch"] + 1

    def load(self, path: Path) -> None:
        """Read a checkpoint and go on from it."""
        self.restore(torch.load(path, map_location="cpu"))  # <-- DDP513


def stop_and_go_on(resume: Callable[[Trainer, Path], None], folder: Path | None = None) -> None:
    """Train half of the epochs and save; resume by a fresh trainer, and train the rest."""
    path = (folder or shared_folder()) / "last.pt"
    stopped = Trainer()
    stopped.fit(STOPPED_AFTER)
    if dist.get_rank() == 0:
        path.parent.mkdir(exist_ok=True)
        torch.save(stopped.state(STOPPED_AFTER - 1), path)
    dist.barrier()
    trainer = Trainer()
    resume(trainer, path)
    trainer.fit(EPOCHS)
    check(trainer)


def check(trainer: Trainer) -> None:
    """Assert that the ranks agree to the bit, and with a training that never stopped."""
    assert same_on_all_ranks(trainer.net.parameters()), "parameters differ between the ranks"
    momenta = [each["momentum_buffer"] for each in trainer.optimizer.state.values()]
    assert same_on_all_ranks(momenta), "the optimizer's state differs between the ranks"
    through = Trainer()
    through.fit(EPOCHS)
    for resumed, expected in zip(trainer.net.parameters(), through.net.parameters(), strict=True):
        off = (resumed - expected).abs().max().item()
        assert off < 1e-6, f"off by {off:.1e} from a training that never stopped"


def resume_on_rank_0(trainer: Trainer, path: Path) -> None:
    if dist.get_rank() == 0 and path.exists():
        trainer.load(path)


@broken(ranks=(0,))
def only_rank_0_resumes() -> None:
    """Load under `if rank == 0`; the others begin at epoch 0."""
    dist.init_process_group(backend())
    stop_and_go_on(resume_on_rank_0)
    dist.destroy_process_group()


def resume_the_model_on_rank_0(trainer: Trainer, path: Path) -> None:
    if dist.get_rank() == 0:
        trainer.load(path)
    trainer.first_epoch = STOPPED_AFTER


@documented(source="facebookresearch/detectron2#4667: load if rank == 0, DDP copies the weights")
def rank_0_loads_and_ddp_copies() -> None:
    """Rank 0 loads and DDP copies its weights; all are told the epoch."""
    dist.init_process_group(backend())
    stop_and_go_on(resume_the_model_on_rank_0)
    dist.destroy_process_group()


def resume_where_the_file_is(trainer: Trainer, path: Path) -> None:
    if path.exists():
        trainer.load(path)


@documented(source="pytorch/examples, imagenet/main.py; allenai/molmo#33")
def every_rank_looks_and_loads() -> None:
    """Every rank loads if it sees the file."""
    dist.init_process_group(backend())
    stop_and_go_on(resume_where_the_file_is)
    dist.destroy_process_group()


@documented(source="pytorch/examples, imagenet/main.py; allenai/molmo#33")
def every_rank_looks_on_its_own_disk() -> None:
    """The same, but a folder for each host, as on node-local disks: the file is on rank 0's."""
    dist.init_process_group(backend())
    stop_and_go_on(resume_where_the_file_is, shared_folder() / f"host{dist.get_rank()}")
    dist.destroy_process_group()


def resume_together(world: World) -> Callable[[Trainer, Path], None]:
    """Make a resume in which rank 0 decides for all, and all load."""

    def resume(trainer: Trainer, path: Path) -> None:
        if on_main(world, path.exists):
            trainer.restore(checkpoint.load(path, world))

    return resume


@fix()
def rank_0_decides_and_all_load() -> None:
    """Rank 0 looks whether there is a file, all learn it, and all load."""
    with session(backend=backend()) as world:
        stop_and_go_on(resume_together(world))


@fix()
def all_refuse_what_one_cannot_see() -> None:
    """The same on node-local disks: all ranks raise one error, which names those without a file."""
    with session(backend=backend()) as world:
        try:
            stop_and_go_on(resume_together(world), shared_folder() / f"host{world.rank}")
        except CheckpointError as error:
            assert "rank" in str(error), f"the error names no rank: {error}"  # noqa: PT017
        else:
            raise AssertionError("resumed, although most ranks see no checkpoint")


if __name__ == "__main__":
    main()
