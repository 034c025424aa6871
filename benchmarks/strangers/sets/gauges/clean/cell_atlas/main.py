"""Joint embedding of RNA and surface protein of single cells.

    torchrun --nproc_per_node=2 main.py
"""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from clip_loss import PairLoss


def cells(n=512, genes=60, markers=18, factors=8):
    g = torch.Generator().manual_seed(14)
    state = torch.randn(n, factors, generator=g)
    rna = torch.relu(state @ torch.randn(factors, genes, generator=g)).log1p() + 0.1 * torch.randn(n, genes, generator=g)
    protein = state @ torch.randn(factors, markers, generator=g) + 0.3 * torch.randn(n, markers, generator=g)
    return TensorDataset(rna, protein)


class TwoTower(nn.Module):
    def __init__(self, genes=60, markers=18, dim=12):
        super().__init__()
        self.rna = nn.Sequential(nn.Linear(genes, 48), nn.GELU(), nn.Linear(48, dim))
        self.protein = nn.Sequential(nn.Linear(markers, 48), nn.GELU(), nn.Linear(48, dim))

    def forward(self, rna, protein):
        return self.rna(rna), self.protein(protein)


def train(epochs=4, batch=32):
    torch.manual_seed(3)
    data = cells()
    sampler = DistributedSampler(data, seed=1)
    loader = DataLoader(data, batch, sampler=sampler, drop_last=True)
    model = DDP(TwoTower())
    loss_fn = PairLoss()
    opt = torch.optim.SGD(model.parameters(), lr=0.08, momentum=0.9)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for rna, protein in loader:
            loss = loss_fn(*model(rna, protein))
            opt.zero_grad()
            loss.backward()
            opt.step()
        if dist.get_rank() == 0:
            with torch.no_grad():
                a, b = model.module(*data.tensors)
                sim = nn.functional.normalize(a, dim=1) @ nn.functional.normalize(b, dim=1).T
                top1 = (sim.argmax(1) == torch.arange(len(sim))).float().mean()
            print(f"epoch {epoch} loss {loss.item():.3f} matching top-1 {top1:.3f}")
        dist.barrier()


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    train()
    dist.destroy_process_group()
