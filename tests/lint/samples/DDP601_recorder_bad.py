"""Loss history through a recorder with keyword arguments."""

from collections import defaultdict, deque
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Recorder:
    def __init__(self):
        self.series = defaultdict(list)

    def record(self, **values):
        for name, value in values.items():
            self.series[name].append(value)  # <-- DDP601

    def summary(self):
        return {k: float(sum(v) / len(v)) for k, v in self.series.items()}


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DDP(nn.Linear(6, 6))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    rec = Recorder()
    g = torch.Generator().manual_seed(dist.get_rank())
    for step in range(200):
        x = torch.randn(8, 6, generator=g)
        out = model(x)
        mse, reg = (out - x).square().mean(), out.abs().mean()
        opt.zero_grad()
        (mse + 0.1 * reg).backward()
        opt.step()
        rec.record(mse=mse.item(), reg=reg)
    if dist.get_rank() == 0:
        print(rec.summary())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
