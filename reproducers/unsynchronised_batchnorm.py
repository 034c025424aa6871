"""DDP312 unsynchronised-batchnorm: each rank normalises by its own batch, and keeps its own mean.

torchrun --nproc-per-node=4 reproducers/unsynchronised_batchnorm.py broken
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.nn.functional import all_reduce
from torch.nn.parallel import DistributedDataParallel

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
from ddpdoctor.stack.process_group import session, wrap

WIDTH, STEPS = 6, 5
BATCH = 4  # samples of a rank


class SynchronisedNorm(nn.BatchNorm1d):
    """Normalises by the batch of all ranks, as SyncBatchNorm does, which takes no CPU tensors."""

    def forward(self, input: Tensor) -> Tensor:
        """Return the normalised batch."""
        ranks = dist.get_world_size()
        mean = all_reduce(input.mean(dim=0)) / ranks
        variance = all_reduce((input - mean).square().mean(dim=0)) / ranks
        count = ranks * len(input)
        with torch.no_grad():
            assert self.running_mean is not None
            assert self.running_var is not None
            assert self.num_batches_tracked is not None
            self.num_batches_tracked += 1
            self.running_mean.lerp_(mean, 0.1)
            self.running_var.lerp_(variance * count / (count - 1), 0.1)
        return (input - mean) / (variance + self.eps).sqrt() * self.weight + self.bias


def build(norm: type[nn.Module] = nn.BatchNorm1d) -> nn.Sequential:
    """Build the same model on every rank, with this kind of normalisation."""
    torch.manual_seed(0)
    layers = nn.Linear(WIDTH, 8), norm(8), nn.Tanh(), nn.Linear(8, 1)
    return nn.Sequential(*layers).double().to(own_device())


def batch(step: int, rank: int) -> Tensor:
    """Make the batch of one rank; what the ranks see is not quite alike."""
    generator = torch.Generator().manual_seed(1000 * step + rank)
    return rank + torch.randn(BATCH, WIDTH, dtype=torch.float64, generator=generator).to(
        own_device()
    )


def error(predicted: Tensor, x: Tensor) -> Tensor:
    return (predicted - x.sum(dim=1, keepdim=True)).square().mean()


def train(model: nn.Module) -> None:
    """Train on this rank's batches."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    for step in range(STEPS):
        x = batch(step, dist.get_rank())
        optimizer.zero_grad()
        torch.autograd.backward(error(model(x), x))
        optimizer.step()


def train_alone(net: nn.Module) -> None:
    """Train on the batches of all ranks at once, as one process would."""
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02)
    for step in range(STEPS):
        x = torch.cat([batch(step, rank) for rank in range(dist.get_world_size())])
        optimizer.zero_grad()
        torch.autograd.backward(error(net(x), x))
        optimizer.step()


def check(trained: nn.Module, alone: nn.Module) -> None:
    """Assert that the ranks agree to the bit, and with one process on whole batches."""
    train_alone(alone)
    held, expected = trained.state_dict(), alone.state_dict()
    off = {name: (held[name] - expected[name]).abs().max().item() for name in expected}
    worst = max(off, key=lambda name: off[name])
    measured(f"off by {off[worst]:.3g} from one process, most in {worst}")
    assert same_on_all_ranks(trained.state_dict().values()), "weights or statistics differ by rank"
    assert off[worst] < 1e-12, f"{worst} is off by {off[worst]:.3g} from one process"


@broken()
def statistics_of_each_rank() -> None:
    """Wrap a model with BatchNorm, and train."""
    dist.init_process_group(backend())
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(WIDTH, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 1))
    net.double().to(own_device())
    train(DistributedDataParallel(net))  # <-- DDP312
    check(net, build())
    dist.destroy_process_group()


@documented(source="pytorch/pytorch#22095: broadcast_buffers=False")
def no_broadcast_of_buffers() -> None:
    """Leave each rank its own running statistics."""
    dist.init_process_group(backend())
    net = build()
    train(DistributedDataParallel(net, broadcast_buffers=False))
    check(net, build())
    dist.destroy_process_group()


@documented(source="timm, utils/distributed.py: distribute_bn(reduce=True)")
def average_the_statistics() -> None:
    """Average the running statistics over the ranks after training."""
    dist.init_process_group(backend())
    net = build()
    train(DistributedDataParallel(net))
    for name in ("1.running_mean", "1.running_var"):
        statistic = net.state_dict()[name]
        dist.all_reduce(statistic)
        statistic /= dist.get_world_size()
    check(net, build())
    dist.destroy_process_group()


@documented(source="pytorch/pytorch#14267: statistics over all ranks, here on the CPU")
def synchronised_statistics() -> None:
    """Do what SyncBatchNorm does, by two all-reduces that have a gradient."""
    dist.init_process_group(backend())
    net = build(SynchronisedNorm)
    train(DistributedDataParallel(net))
    check(net, build())
    dist.destroy_process_group()


@fix()
def no_statistics_of_the_batch() -> None:
    """Normalise each sample by itself (LayerNorm): nothing depends on who shares its batch."""
    with session(backend=backend()) as world:
        net = build(nn.LayerNorm)
        train(wrap(net, world))
        check(net, build(nn.LayerNorm))


@fix()
def frozen_statistics() -> None:
    """Freeze the statistics, as one does when fine-tuning."""
    with session(backend=backend()) as world:
        net = build().eval()
        train(wrap(net, world))
        check(net, build().eval())


if __name__ == "__main__":
    main()
