"""DDP205 same-noise-everywhere: one seed on all ranks, so all draw the same dropout masks.

torchrun --nproc-per-node=4 reproducers/same_noise_everywhere.py broken
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import nn

from ddpdoctor.reproducer import (
    backend,
    broken,
    documented,
    fix,
    main,
    measured,
    own_device,
    same_on_all_ranks,
)
from ddpdoctor.stack.process_group import World, session, wrap
from ddpdoctor.stack.rng import seed_generators

SEED, STEPS = 42, 5


class Noisy(nn.Module):
    """A model with dropout, which keeps the masks that it drew."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.dropout = nn.Linear(16, 16), nn.Dropout(0.5)
        self.masks: list[list[bool]] = []

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return the outputs, half of them zero."""
        outputs: torch.Tensor = self.dropout(self.layer(inputs))
        self.masks.append((outputs[0] == 0).tolist())
        return outputs


def train(net: Noisy, world: World) -> None:
    """Take some steps; each rank has inputs of its own, whatever the global generators do."""
    inputs = torch.full((4, 16), float(1 + world.rank), device=own_device())
    model = wrap(net, world)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(STEPS):
        optimizer.zero_grad()
        (model(inputs) ** 2).mean().backward()
        optimizer.step()
    assert same_on_all_ranks(net.parameters()), "parameters differ between the ranks"


def different_masks(net: Noisy, world: World) -> int:
    """Count the different masks that the ranks drew in a step, which should be one each."""
    by_rank: list[list[list[bool]]] = [[]] * world.world_size
    dist.all_gather_object(by_rank, net.masks)
    steps = zip(*by_rank, strict=True)
    different = max(len({tuple(mask) for mask in step}) for step in steps)
    measured(f"dropout masks in a step: {different} different on {world.world_size} ranks")
    return different


@broken()
def one_seed_for_everything() -> None:
    """Seed all ranks alike, and train with dropout."""
    with session(backend=backend()) as world:
        torch.manual_seed(SEED)  # <-- DDP205
        net = Noisy()
        train(net, world)
        assert different_masks(net, world) == 1, "the masks differ: it does not reproduce"


@documented(source="001 best practices 1")
def always_set_the_random_seed() -> None:
    """random_seed=42 on all ranks, so that a training can be repeated."""
    with session(backend=backend()) as world:
        runs = []
        for _ in range(2):
            torch.manual_seed(SEED)
            net = Noisy()
            train(net, world)
            runs.append(net)
        for one, other in zip(runs[0].parameters(), runs[1].parameters(), strict=True):
            assert torch.equal(one, other), "the same training gave other parameters"
        different_masks(runs[0], world)


@documented(source="002 fix 3")
def seed_plus_process_index() -> None:
    """set_seed(config.seed + process_index), before the model is built and wrapped."""
    with session(backend=backend()) as world:
        torch.manual_seed(SEED + world.rank)
        net = Noisy()
        train(net, world)
        assert different_masks(net, world) == world.world_size, "ranks share their masks"


@documented(source="002 fix 3")
def seed_plus_process_index_and_a_copy() -> None:
    """The same, with a copy of the model for its EMA taken before the wrap."""
    with session(backend=backend()) as world:
        torch.manual_seed(SEED + world.rank)
        net = Noisy()
        average = [parameter.detach().clone() for parameter in net.parameters()]
        train(net, world)
        assert different_masks(net, world) == world.world_size, "ranks share their masks"
        assert same_on_all_ranks(average), "the EMA of each rank began with other weights"


@fix()
def shared_model_then_own_noise() -> None:
    """Build the model from the shared seed, then seed the generators by rank."""
    with session(backend=backend()) as world:
        torch.manual_seed(SEED)
        net = Noisy()
        assert same_on_all_ranks(net.parameters()), "the ranks built different models"
        seed_generators(SEED, world.rank)
        train(net, world)
        assert different_masks(net, world) == world.world_size, "ranks share their masks"


if __name__ == "__main__":
    main()
