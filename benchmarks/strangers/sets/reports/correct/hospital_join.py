"""Clinics with different numbers of patients train one model; nobody's data is cut off.

    torchrun --nproc_per_node=2 hospital_join.py
"""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset

PATIENTS = [150, 90]          # per clinic, one clinic per process


def clinic(index):
    g = torch.Generator().manual_seed(31 + index)
    x = torch.randn(PATIENTS[index], 9, generator=g) + 0.3 * index
    risk = x[:, 0] + 0.5 * x[:, 1] * x[:, 2]
    return TensorDataset(x, (risk > 0.2).float())


class RiskModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(9, 24), nn.ReLU(), nn.Linear(24, 1))

    def forward(self, x):
        return self.net(x).squeeze(1)


def train_epoch(model, loader, opt):
    total, batches = 0.0, 0
    with model.join():
        for x, y in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total, batches = total + loss.item(), batches + 1
    return total, batches


@torch.no_grad()
def auc(model, data):
    """Area under the curve over the patients of all clinics."""
    x, y = data.tensors
    own = (model.module(x), y)
    if dist.get_rank() == 0:
        everyone = [None] * dist.get_world_size()
        dist.gather_object(own, everyone, dst=0)
    else:
        dist.gather_object(own, dst=0)
        return None
    score, label = (torch.cat(t) for t in zip(*everyone))
    pos, neg = score[label == 1], score[label == 0]
    return (pos[:, None] > neg[None, :]).float().mean().item()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    data = clinic(rank)
    torch.manual_seed(0)
    model = DDP(RiskModel())
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(data, batch_size=16, shuffle=True, generator=torch.Generator().manual_seed(rank))
    for epoch in range(5):
        total, batches = train_epoch(model, loader, opt)
        stats = torch.tensor([total, float(batches)])
        dist.all_reduce(stats)
        area = auc(model, data)
        if area is not None:
            print(f"epoch {epoch}: {int(stats[1])} batches, loss {stats[0] / stats[1]:.3f}, AUC {area:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
