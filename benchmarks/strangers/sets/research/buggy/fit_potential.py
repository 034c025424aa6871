"""Fit a small pair potential on several workers.

    torchrun --nproc_per_node 2 fit_potential.py --max_num_epochs 60 --patience 4
"""
import argparse
import logging
import os
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def build_parser():
    p = argparse.ArgumentParser()
    p.add_argument("--max_num_epochs", type=int, default=60)
    p.add_argument("--patience", type=int, default=4)
    p.add_argument("--lr", type=float, default=0.05)
    p.add_argument("--batch_size", type=int, default=16)
    p.add_argument("--r_max", type=float, default=4.0)
    p.add_argument("--seed", type=int, default=123)
    return p


class RadialBasis(nn.Module):
    def __init__(self, r_max, num=8):
        super().__init__()
        self.register_buffer("centers", torch.linspace(0.5, r_max, num))
        self.r_max = r_max

    def forward(self, r):
        cut = 0.5 * (torch.cos(torch.pi * r / self.r_max) + 1.0) * (r < self.r_max)
        return torch.exp(-4.0 * (r[..., None] - self.centers) ** 2) * cut[..., None]


class PairPotential(nn.Module):
    def __init__(self, r_max):
        super().__init__()
        self.basis = RadialBasis(r_max)
        self.readout = nn.Sequential(nn.Linear(8, 16), nn.SiLU(), nn.Linear(16, 1))

    def forward(self, positions):
        n = positions.shape[1]
        i, j = torch.triu_indices(n, n, offset=1)
        r = (positions[:, i] - positions[:, j]).norm(dim=-1)
        return self.readout(self.basis(r)).sum(dim=(1, 2))


def make_set(n, seed):
    g = torch.Generator().manual_seed(seed)
    pos = torch.randn(n, 5, 3, generator=g) * 1.5
    i, j = torch.triu_indices(5, 5, offset=1)
    r = (pos[:, i] - pos[:, j]).norm(dim=-1).clamp(min=0.8)
    return TensorDataset(pos, (1.0 / r ** 3 - 1.0 / r).sum(1) + 0.2 * torch.randn(n, generator=g))


def take_step(model, loss_fn, optimizer, batch):
    optimizer.zero_grad(set_to_none=True)
    loss = loss_fn(model(batch[0]), batch[1])
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
    optimizer.step()
    return loss.detach()


@torch.no_grad()
def evaluate(model, valid_set, rank, world):
    sums = torch.zeros(2)
    for k in range(rank, len(valid_set), world):
        pos, energy = valid_set[k]
        sums += torch.tensor([(model.module(pos[None]) - energy).abs().item(), 1.0])
    dist.all_reduce(sums)
    return (sums[0] / sums[1]).item()


def train(model, train_loader, valid_set, optimizer, args, ckpt):
    rank, world = dist.get_rank(), dist.get_world_size()
    loss_fn = nn.SmoothL1Loss()
    lowest_loss, patience_counter = float("inf"), 0
    for epoch in range(args.max_num_epochs):
        train_loader.sampler.set_epoch(epoch)
        for batch in train_loader:
            take_step(model, loss_fn, optimizer, batch)
        valid_loss = evaluate(model, valid_set, rank, world)
        if rank == 0:
            logging.info("Epoch %d: MAE_E=%.4f", epoch, valid_loss)
            if valid_loss >= lowest_loss:
                patience_counter += 1
                if patience_counter >= args.patience:
                    logging.info("Stopping optimization after %d epochs without improvement", patience_counter)
                    break
            else:
                lowest_loss, patience_counter = valid_loss, 0
                torch.save(model.module.state_dict(), ckpt)
    logging.info("Training complete")


def run(args):
    torch.manual_seed(args.seed)
    rank = dist.get_rank()
    logging.basicConfig(level=logging.INFO if rank == 0 else logging.WARNING, format="%(message)s")
    ckpt = os.path.join(tempfile.gettempdir(), f"pairpot_{os.getppid()}.pt")
    train_set, valid_set = make_set(256, 1), make_set(48, 2)
    sampler = DistributedSampler(train_set, shuffle=True, drop_last=True, seed=args.seed)
    loader = DataLoader(train_set, batch_size=args.batch_size, sampler=sampler, drop_last=True)
    model = DistributedDataParallel(PairPotential(args.r_max))
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, amsgrad=True)
    train(model, loader, valid_set, optimizer, args, ckpt)
    dist.barrier()
    model.module.load_state_dict(torch.load(ckpt, map_location="cpu"))
    logging.info("best model: MAE_E=%.4f", evaluate(model, valid_set, rank, dist.get_world_size()))
    if rank == 0:
        os.remove(ckpt)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    run(build_parser().parse_args())
    dist.destroy_process_group()
