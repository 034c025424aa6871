"""Click log stream with a mixture of sources."""

from dataclasses import dataclass, field
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset


@dataclass
class StreamConfig:
    sources: list = field(default_factory=lambda: ["web", "app", "mail"])
    per_source: int = 100
    batch: int = 20


class Mixture(IterableDataset):
    def __init__(self, cfg, rank, world):
        super().__init__()
        self.cfg = cfg
        self.rank, self.world = rank, world

    def _source(self, k):
        g = torch.Generator().manual_seed(k)
        for _ in range(self.cfg.per_source):
            x = torch.randn(6, generator=g)
            yield x, (x.sum() > 0).float()

    def __iter__(self):
        streams = [self._source(k) for k, _ in enumerate(self.cfg.sources)]
        for number, samples in enumerate(zip(*streams)):
            if number % self.world != self.rank:
                continue
            yield from samples


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    cfg = StreamConfig()
    stream = Mixture(cfg, dist.get_rank(), dist.get_world_size())
    loader = DataLoader(stream, batch_size=cfg.batch, drop_last=True)
    model = DDP(nn.Linear(6, 1))
    opt = torch.optim.Adagrad(model.parameters())
    for epoch in range(2):
        for x, y in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(model(x).squeeze(1), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
