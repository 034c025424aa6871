"""Denoising autoencoder stopped and resumed: rank 0 keeps the model, each rank its own random state."""
import argparse
import os
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def images(n=256):
    g = torch.Generator().manual_seed(0)
    basis = torch.randn(6, 64, generator=g)
    return TensorDataset(torch.tanh(torch.randn(n, 6, generator=g) @ basis))


class Keeper:
    """latest.pt of rank 0 for all, rng_<rank>.pt of each; complete only when all have written."""

    def __init__(self, folder):
        self.folder, self.rank = folder, dist.get_rank()

    def path(self, name):
        return os.path.join(self.folder, name)

    def save(self, model, opt, epoch):
        torch.save(torch.get_rng_state(), self.path(f"rng_{self.rank}.pt"))
        if self.rank == 0:
            state = {"model": model.module.state_dict(), "opt": opt.state_dict(), "epoch": epoch}
            torch.save(state, self.path("latest.pt.part"))
            os.replace(self.path("latest.pt.part"), self.path("latest.pt"))
        dist.barrier()

    def resume(self, net, opt):
        """The epoch to go on with; rank 0 looks whether there is anything."""
        there = [os.path.exists(self.path("latest.pt")) if self.rank == 0 else None]
        dist.broadcast_object_list(there)
        if not there[0]:
            return 0
        state = torch.load(self.path("latest.pt"), map_location="cpu")
        net.load_state_dict(state["model"])
        opt.load_state_dict(state["opt"])
        torch.set_rng_state(torch.load(self.path(f"rng_{self.rank}.pt")))
        return state["epoch"] + 1


def sitting(args, keeper, until):
    torch.manual_seed(7)
    net = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 64))
    model = DDP(net)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    torch.manual_seed(1000 + dist.get_rank())
    start = keeper.resume(net, opt) if keeper else 0
    data = images()
    sampler = DistributedSampler(data, seed=7)
    loader, mean = DataLoader(data, 16, sampler=sampler), torch.zeros(())
    for epoch in range(start, until):
        sampler.set_epoch(epoch)
        losses = []
        for (x,) in loader:
            loss = F.mse_loss(model(x + 0.3 * torch.randn_like(x)), x)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.detach())
        mean = torch.stack(losses).mean()
        dist.all_reduce(mean)
        mean /= dist.get_world_size()
        if keeper:
            keeper.save(model, opt, epoch)
    return mean.item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=6)
    p.add_argument("--cut", type=int, default=3)
    args = p.parse_args()
    dist.init_process_group("gloo")
    folder = [tempfile.mkdtemp(prefix="own_rng_") if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(folder)
    whole = sitting(args, None, args.epochs)
    sitting(args, Keeper(folder[0]), args.cut)
    resumed = sitting(args, Keeper(folder[0]), args.epochs)
    if dist.get_rank() == 0:
        print(f"uninterrupted {whole:.6f} resumed {resumed:.6f}", flush=True)
    assert abs(whole - resumed) < 1e-6
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
