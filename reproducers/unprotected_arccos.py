"""DDP606 unprotected-arccos: a cosine of 1.0000001 on one rank makes NaN of every rank's weights.

torchrun --nproc-per-node=4 reproducers/unprotected_arccos.py broken
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
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
)
from ddpdoctor.stack.process_group import session, wrap

BONDS, STEPS = 64, 4

Angles = Callable[[Tensor, Tensor], Tensor]


class Potential(nn.Module):
    """Learns from the angles between bonds, in a lattice that it learns, too."""

    def __init__(self, angles: Angles) -> None:
        super().__init__()
        self.angles = angles
        self.lattice, self.head = nn.Parameter(torch.eye(3)), nn.Linear(1, 1)

    def forward(self, bonds: Tensor) -> Tensor:
        """Return an energy for each pair of bonds; `bonds` is (2, n, 3)."""
        u, v = nn.functional.normalize(bonds @ self.lattice, dim=-1)
        return self.head(self.angles(u, v)[:, None])


def crystal(rank: int) -> Tensor:
    """Make pairs of bonds; those of rank 1 lie on straight lines, as in many a real crystal."""
    generator = torch.Generator().manual_seed(rank)
    one, other = torch.randn(2, BONDS, 3, generator=generator)
    return torch.stack([one, 2 * one if rank == 1 else other]).to(own_device())


def train(model: nn.Module) -> None:
    """Take a few steps on this rank's crystal."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(STEPS):
        optimizer.zero_grad()
        model(crystal(dist.get_rank())).square().mean().backward()
        optimizer.step()


def check(trained: nn.Module) -> None:
    """Assert that the ranks agree, and that the parameters are numbers."""
    lost = [name for name, p in trained.named_parameters() if not p.isfinite().all()]
    assert not lost, f"{', '.join(lost)}: no number any more"
    assert same_on_all_ranks(trained.parameters()), "parameters differ between the ranks"


def build(angles: Angles, *, fixed: bool = False) -> nn.Module:
    """Build the same model on every rank; with a fixed lattice, angles need no gradient."""
    torch.manual_seed(0)
    net = Potential(angles)
    net.lattice.requires_grad_(not fixed)
    return net.to(own_device())


def train_wrapped(angles: Angles, *, fixed: bool = False) -> None:
    """Train in DDP, and check what came of it."""
    dist.init_process_group(backend())
    net = build(angles, fixed=fixed)
    train(DistributedDataParallel(net))
    check(net)
    dist.destroy_process_group()


@broken()
def arccos_of_a_dot_product() -> None:
    """Take torch.acos of a dot product of unit vectors."""

    def angles(u: Tensor, v: Tensor) -> Tensor:
        return torch.acos((u * v).sum(dim=-1))  # <-- DDP606

    train_wrapped(angles)


@documented(source="000 troubleshooting, arccos")
def ignore_the_warning() -> None:
    """Compute angles with NumPy, and ignore its "invalid value encountered in arccos"."""

    def angles(u: Tensor, v: Tensor) -> Tensor:
        cosines = (u * v).sum(dim=-1).cpu().numpy()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "invalid value encountered in arccos")
            return torch.from_numpy(np.arccos(cosines)).to(u)

    train_wrapped(angles, fixed=True)


@documented(source="pytorch/pytorch#8069, first attempt")
def clamp_to_one() -> None:
    """Clamp to [-1, 1]: the value is a number, its gradient at 1 is infinite."""
    train_wrapped(lambda u, v: torch.acos((u * v).sum(dim=-1).clamp(-1, 1)))


@documented(source="pytorch/pytorch#8069")
def clamp_inside_of_one() -> None:
    """Clamp to [-1 + 1e-7, 1 - 1e-7]."""
    eps = 1e-7
    train_wrapped(lambda u, v: torch.acos((u * v).sum(dim=-1).clamp(-1 + eps, 1 - eps)))


@fix()
def clamp_before_a_feature() -> None:
    """Clamp to [-1, 1] where the angle is a feature of the data, and needs no gradient."""

    def angles(u: Tensor, v: Tensor) -> Tensor:
        return torch.acos((u * v).sum(dim=-1).clamp(-1, 1))

    with session(backend=backend()) as world:
        net = build(angles, fixed=True)
        train(wrap(net, world))
        check(net)


@fix()
def atan2_of_both() -> None:
    """Take the angle from atan2(|u x v|, u.v), which no rounding leaves."""

    def angles(u: Tensor, v: Tensor) -> Tensor:
        sine = (torch.linalg.cross(u, v).square().sum(dim=-1) + 1e-12).sqrt()
        return torch.atan2(sine, (u * v).sum(dim=-1))

    with session(backend=backend()) as world:
        net = build(angles)
        train(wrap(net, world))
        check(net)


if __name__ == "__main__":
    main()
