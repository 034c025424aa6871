"""DDP505 rank-divergent-refresh: each rank decides by its own metric whether to refresh the EMA.

torchrun --nproc-per-node=4 reproducers/rank_divergent_refresh.py broken
"""

from __future__ import annotations

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
from ddpdoctor.stack.ema import ExponentialMovingAverage
from ddpdoctor.stack.evaluation import predict
from ddpdoctor.stack.process_group import World, session

EPOCHS, VALIDATION = 10, 24


class Solver:
    """Trains; after an epoch that was no better, goes back to the best weights and EMA."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = DistributedDataParallel(nn.Linear(4, 1).to(own_device()))
        self.ema = ExponentialMovingAverage(self.model, decay=0.5)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.3)
        self.path = shared_folder() / "best_stg1.pth"
        self.best = -float("inf")
        self.refreshes = 0
        # Each rank validates on a shard of its own, and shards are not equally hard.
        inputs = torch.randn(VALIDATION, 4)
        noise = torch.linspace(0, 3, VALIDATION)[:, None] * torch.randn(VALIDATION, 1)
        self.inputs, self.target = inputs.to(own_device()), inputs.sum(1, keepdim=True) + noise

    def train_one_epoch(self, epoch: int) -> None:
        """Take a step on noisy data of this rank."""
        generator = torch.Generator().manual_seed(100 * epoch + dist.get_rank())
        inputs = torch.randn(8, 4, generator=generator)
        target = inputs.sum(1, keepdim=True) + 2 * torch.randn(8, 1, generator=generator)
        self.optimizer.zero_grad()
        (self.model(inputs.to(own_device())).cpu() - target).square().mean().backward()
        self.optimizer.step()
        self.ema.update(self.model)

    def score_of_shard(self) -> float:
        """Return the score on this rank's shard of the validation set; higher is better."""
        mine = slice(dist.get_rank(), None, dist.get_world_size())
        with torch.no_grad():
            predicted = self.ema.module(self.inputs[mine]).cpu()
        return -float((predicted - self.target[mine]).square().mean())

    def fit(self) -> None:
        """Train, and refresh after each epoch that did not raise the score."""
        for epoch in range(EPOCHS):
            self.train_one_epoch(epoch)
            score = self.score_of_shard()
            if score > self.best:  # <-- DDP505
                self.best = score
                self.save()
            else:
                self.refresh()

    def save(self) -> None:
        """Save on rank 0; rename, so that the readers get a whole file in any case."""
        if dist.get_rank() == 0:
            with checkpoint.replacing(self.path) as file:
                torch.save(self.state(), file)

    def refresh(self) -> None:
        """Wait for all ranks, and go back to the best weights and EMA."""
        dist.barrier()  # <-- DDP505
        self.restore(torch.load(self.path, map_location="cpu"))

    def state(self) -> dict[str, dict[str, Tensor]]:
        """Return the bare model's weights, and the EMA's."""
        return {
            "model": self.model.module.state_dict(),
            "ema": self.ema.module.state_dict(),
        }

    def restore(self, state: dict[str, dict[str, Tensor]]) -> None:
        """Go back to these weights."""
        self.refreshes += 1
        self.model.module.load_state_dict(state["model"])
        self.ema.module.load_state_dict(state["ema"])


def check(solver: Solver) -> None:
    """Assert that all ranks refreshed equally often, and have the same weights and average."""
    refreshes = [0] * dist.get_world_size()
    dist.all_gather_object(refreshes, solver.refreshes)
    assert len(set(refreshes)) == 1, f"refreshes by rank: {refreshes}"
    assert 0 < refreshes[0] < EPOCHS, f"{refreshes[0]} refreshes of {EPOCHS} epochs show nothing"
    assert same_on_all_ranks(solver.model.parameters()), "parameters differ between the ranks"
    assert same_on_all_ranks(solver.ema.module.parameters()), "the EMA differs between the ranks"


def solve(kind: type[Solver]) -> None:
    dist.init_process_group(backend())
    solver = kind()
    solver.fit()
    check(solver)
    del solver  # the wrapper must not outlive the group
    dist.destroy_process_group()


@broken(ranks="any")
def refresh_by_the_local_metric() -> None:
    """Barrier and reload in a branch that each rank takes by its own shard's score."""
    solve(Solver)


@documented(source="004 fix 2, second barrier")
def barrier_at_the_later_refresh() -> None:
    """Barrier before each later refresh, where every rank scores its own shard."""
    solve(Solver)


class CheckedLoad(Solver):
    """Has rank 0 look at the file first, and barriers around the load."""

    def look(self) -> None:
        """Raise on rank 0 if there is no file."""
        if dist.get_rank() == 0 and not self.path.exists():
            raise FileNotFoundError(f"there is no checkpoint {self.path}")

    def refresh(self) -> None:
        """Look, wait, go back to the best weights and EMA, and wait again."""
        self.look()
        dist.barrier()
        self.restore(torch.load(self.path, map_location="cpu"))
        dist.barrier()


@documented(source="004 fix 1, load_resume_state")
def barriers_around_the_load() -> None:
    """Rank 0 checks the file, then barrier, load, barrier; in the same branch."""
    solve(CheckedLoad)


class SharedScore(Solver):
    """Scores the shards, and averages over the ranks, as the evaluator of the solver does."""

    def score_of_shard(self) -> float:
        """Return the mean of the ranks' scores, the same on all."""
        score = torch.tensor(super().score_of_shard(), device=own_device())
        dist.all_reduce(score)
        return score.item() / dist.get_world_size()


@documented(source="004 fix 2, second barrier")
def barrier_with_a_score_that_all_share() -> None:
    """The same barrier, but the score is reduced over the ranks first."""
    solve(SharedScore)


class StackSolver(Solver):
    """Decides on predictions for the whole set, which the stack gives to every rank."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world

    def score_of_shard(self) -> float:
        """Return the score on the whole validation set, from the same numbers on every rank."""
        model = nn.Sequential(self.ema.module, nn.Flatten(0))
        predicted = predict(
            model, list(self.inputs), lambda rows: torch.stack(list(rows)), VALIDATION, self.world
        )
        return -float((predicted - self.target.flatten()).square().mean())

    def save(self) -> None:
        """Save on rank 0; it returns on every rank when the file is whole."""
        checkpoint.save(self.state(), self.path, self.world)

    def refresh(self) -> None:
        """Go back to the best weights and EMA, on every rank or on none."""
        self.restore(checkpoint.load(self.path, self.world))


@fix()
def one_score_from_all_predictions() -> None:
    """Gather the predictions, and decide on every rank by the same number."""
    with session(backend=backend()) as world:
        solver = StackSolver(world)
        solver.fit()
        check(solver)
        alone = -(solver.ema.module(solver.inputs).cpu() - solver.target).square().mean()
        assert abs(solver.score_of_shard() - float(alone)) < 1e-5, "not one process's score"
        del solver  # the wrapper must not outlive the group


if __name__ == "__main__":
    main()
