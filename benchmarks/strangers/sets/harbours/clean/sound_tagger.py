"""Sound event tagging with bf16 autocast; accuracy over the whole evaluation set of all workers."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

PRECISIONS = {"32": torch.float32, "bf16": torch.bfloat16}


class MeanMetric:
    def __init__(self, dtype):
        self.value = torch.zeros((), dtype=torch.float64)
        self.weight = torch.zeros((), dtype=torch.float64)

    def update(self, value, n):
        self.value += value.to(self.value.dtype)
        self.weight += n

    def compute(self):
        both = torch.stack([self.value.double(), self.weight])
        dist.all_reduce(both)
        return (both[0] / both[1]).item()


class Engine:
    def __init__(self, model, optimizer, precision="bf16"):
        self.model, self.optimizer = model, optimizer
        self.dtype = PRECISIONS[precision]

    def autocast(self):
        return torch.autocast("cpu", dtype=self.dtype, enabled=self.dtype != torch.float32)

    def train_epoch(self, loader):
        self.model.train()
        for x, y in loader:
            with self.autocast():
                loss = nn.functional.cross_entropy(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    @torch.no_grad()
    def evaluate(self, loader):
        self.model.eval()
        acc, nll = MeanMetric(self.dtype), MeanMetric(self.dtype)
        for x, y in loader:
            with self.autocast():
                logits = self.model(x)
            acc.update((logits.argmax(-1) == y).sum(), len(y))
            nll.update(nn.functional.cross_entropy(logits.float(), y, reduction="sum"), len(y))
        return acc.compute(), nll.compute()


def clips(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 5, (n,), generator=g)
    proto = torch.randn(5, 30, generator=torch.Generator().manual_seed(8))
    return TensorDataset(proto[y] + 1.2 * torch.randn(n, 30, generator=g), y)


def run():
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(30, 32), nn.ReLU(), nn.Linear(32, 5)))
    engine = Engine(model, torch.optim.Adam(model.parameters(), lr=3e-3))
    train, test = clips(400, 1), clips(1600, 2)
    sampler = DistributedSampler(train)
    train_loader = DataLoader(train, 20, sampler=sampler)
    test_loader = DataLoader(test, 2, sampler=DistributedSampler(test, shuffle=False))
    for epoch in range(2):
        sampler.set_epoch(epoch)
        engine.train_epoch(train_loader)
        acc, nll = engine.evaluate(test_loader)
        if dist.get_rank() == 0:
            print(f"epoch {epoch} test acc {acc:.4f} nll {nll:.4f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    run()
    dist.destroy_process_group()
