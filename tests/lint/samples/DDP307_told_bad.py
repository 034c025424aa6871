import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


def checked(energy):
    if not torch.isfinite(energy):
        raise ArithmeticError(f"energy {energy.item()}")  # <- DDP405
    return energy


def anywhere(mine):
    flag = torch.tensor([1.0 if mine else 0.0])
    dist.all_reduce(flag, op=dist.ReduceOp.MAX)
    return bool(flag.item())


def fit(potential, frames, optimizer):
    for positions, target in frames:
        lost = False
        try:
            energy = checked((potential(positions) - target).square().mean())
        except ArithmeticError as error:  # <-- DDP307
            print("left out:", error)
            lost = True
        if lost:
            continue  # <-- DDP307
        optimizer.zero_grad()
        energy.backward()
        optimizer.step()


def main(structures):
    dist.init_process_group("gloo")
    potential = DistributedDataParallel(nn.Linear(30, 1))
    frames = DataLoader(structures, 8, sampler=DistributedSampler(structures, shuffle=False))
    fit(potential, frames, torch.optim.SGD(potential.parameters(), lr=0.01))
    dist.destroy_process_group()


if __name__ == "__main__":
    main([(torch.randn(30), torch.randn(1)) for _ in range(64)])
