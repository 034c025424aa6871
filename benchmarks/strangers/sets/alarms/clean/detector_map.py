"""Detector toy: mean average precision whose state is kept per image and merged at the end."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset


def gather_all_tensors(t):
    """Gathers tensors whose first dimension may differ."""
    world = dist.get_world_size()
    n = torch.tensor([t.shape[0]])
    sizes = [torch.zeros_like(n) for _ in range(world)]
    dist.all_gather(sizes, n)
    longest = int(max(sizes))
    padded = torch.zeros(longest)
    padded[:t.shape[0]] = t
    out = [torch.zeros(longest) for _ in range(world)]
    dist.all_gather(out, padded)
    return [o[:int(s)] for o, s in zip(out, sizes)]


class MeanAP:
    def __init__(self):
        self.scores, self.hits = [], []

    def update(self, scores, hits):
        self.scores.append(scores)
        self.hits.append(hits)

    def _sync(self):
        for name in ("scores", "hits"):
            local = torch.cat(getattr(self, name))
            setattr(self, name, gather_all_tensors(local))

    def compute(self):
        self._sync()
        s, h = torch.cat(self.scores), torch.cat(self.hits)
        h = h[s.argsort(descending=True)]
        precision = h.cumsum(0) / torch.arange(1, len(h) + 1)
        return (precision * h).sum() / h.sum().clamp(min=1)


class Boxes(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.x = torch.randn(n, 6, 10, generator=g)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], (self.x[i].sum(-1) > 0).float()


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 1)))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    train = DataLoader(Boxes(32, 1 + rank), batch_size=4)
    val_set = Boxes(21, 100)
    val = torch.utils.data.Subset(val_set, range(rank, len(val_set), world))
    for epoch in range(2):
        for x, y in train:
            loss = nn.functional.binary_cross_entropy_with_logits(model(x).squeeze(-1), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        metric = MeanAP()
        with torch.no_grad():
            for x, y in val:
                p = model.module(x).squeeze(-1).sigmoid()
                keep = p > 0.05
                metric.update(p[keep], y[keep])
        value = metric.compute()
        if rank == 0:
            print(f"epoch {epoch} mAP {value:.4f}", flush=True)
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
