"""Predicts loop torsions from residue windows."""
import sys

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, Subset

SEED = 1234


class LoopWindows(Dataset):
    def __init__(self, n):
        g = torch.Generator().manual_seed(SEED)
        self.seq = torch.randint(0, 20, (n, 9), generator=g)
        prop = torch.randn(20, 2, generator=g)
        self.angle = torch.tanh(prop[self.seq].mean(1)) + 0.05 * torch.randn(n, 2, generator=g)

    def __len__(self):
        return len(self.seq)

    def __getitem__(self, i):
        return self.seq[i], self.angle[i]


class TorsionNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.aa = nn.Embedding(20, 8)
        self.ff = nn.Sequential(nn.Linear(72, 64), nn.GELU(), nn.Linear(64, 2))

    def forward(self, seq):
        return self.ff(self.aa(seq).flatten(1))


def epoch_loader(dataset, rank, world, batch_size, epoch):
    """One permutation of the whole set per epoch, each rank takes its share of it."""
    order = torch.randperm(len(dataset), generator=torch.Generator().manual_seed(SEED + epoch))
    share = order[rank::world].tolist()
    return DataLoader(Subset(dataset, share), batch_size=batch_size)


@torch.no_grad()
def evaluate(net, loader):
    net.eval()
    err, n = 0.0, 0
    for seq, angle in loader:
        err += (net(seq) - angle).abs().sum().item()
        n += angle.numel()
    net.train()
    return err / n


def main(epochs=4):
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(SEED)
    full = LoopWindows(700)
    train, valid = Subset(full, range(600)), Subset(full, range(600, 700))
    valid_loader = DataLoader(valid, batch_size=50)
    net = DDP(TorsionNet())
    opt = torch.optim.AdamW(net.parameters(), lr=3e-3)
    for epoch in range(epochs):
        for seq, angle in epoch_loader(train, rank, world, 20, epoch):
            loss = nn.functional.smooth_l1_loss(net(seq), angle)
            opt.zero_grad()
            loss.backward()
            opt.step()
        if rank == 0:
            mae = evaluate(net.module, valid_loader)
            print(f"epoch {epoch} train {loss.item():.4f} valid MAE {mae:.4f}", flush=True)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    sys.exit(main())
