"""Multi-task loss where a batch may lack a task; the graph stays whole, the counts are global."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

TASKS = ("solubility", "toxicity")


class SparseLabels(Dataset):
    def __init__(self, n=120):
        g = torch.Generator().manual_seed(0)
        self.x = torch.randn(n, 8, generator=g)
        self.y = torch.stack([self.x[:, :3].sum(1), self.x[:, 3:].prod(1)], 1)
        self.mask = torch.rand(n, 2, generator=g) < torch.tensor([0.8, 0.15])

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i], self.mask[i]


class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(8, 24), nn.ReLU())
        self.heads = nn.ModuleDict({t: nn.Linear(24, 1) for t in TASKS})

    def forward(self, x):
        h = self.trunk(x)
        return torch.cat([self.heads[t](h) for t in TASKS], 1)


def masked_loss(pred, y, mask):
    count = mask.sum(0).float()
    dist.all_reduce(count)
    err = torch.where(mask, (pred - torch.where(mask, y, torch.zeros_like(y))).pow(2), pred * 0)
    return (err.sum(0) * dist.get_world_size() / count.clamp(min=1)).sum()


def run():
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(MultiTask())
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    data = SparseLabels()
    sampler = DistributedSampler(data, drop_last=True)
    loader = DataLoader(data, batch_size=6, sampler=sampler)
    accumulate = 2
    for epoch in range(2):
        sampler.set_epoch(epoch)
        usable = len(loader) - len(loader) % accumulate
        for i, (x, y, mask) in enumerate(loader):
            if i == usable:
                break
            last = (i + 1) % accumulate == 0
            if last:
                (masked_loss(model(x), y, mask) / accumulate).backward()
                nn.utils.clip_grad_norm_(model.parameters(), 5.0)
                opt.step()
                opt.zero_grad()
            else:
                with model.no_sync():
                    (masked_loss(model(x), y, mask) / accumulate).backward()
        norm = sum(p.detach().pow(2).sum() for p in model.parameters()).sqrt()
        if rank == 0:
            print(f"epoch {epoch}: weight norm {norm:.4f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    run()
    dist.destroy_process_group()
