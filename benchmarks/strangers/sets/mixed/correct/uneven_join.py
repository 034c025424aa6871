"""Each process owns a different number of time-series windows; Join covers the difference."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel as DDP


class Forecaster(nn.Module):
    def __init__(self, hidden=12):
        super().__init__()
        self.rnn = nn.GRU(1, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.out(self.rnn(x)[0][:, -1])


def windows(rank):
    """Site `rank` has recorded 40 + 16 * rank windows."""
    count = 40 + 16 * rank
    g = torch.Generator().manual_seed(50 + rank)
    phase = 6.28 * torch.rand(count, 1, generator=g)
    series = torch.sin(phase + 0.3 * torch.arange(13))
    return series[:, :12, None], series[:, 12:]


def local_epoch(model, opt, x, y, order):
    total, n = 0.0, 0
    with Join([model]):
        for part in order.split(8):
            loss = nn.functional.mse_loss(model(x[part]), y[part])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(part)
            n += len(part)
    return torch.tensor([total, float(n)])


def train(epochs=3):
    rank = dist.get_rank()
    x, y = windows(rank)
    torch.manual_seed(0)
    model = DDP(Forecaster())
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    shuffle = torch.Generator().manual_seed(900 + rank)
    for epoch in range(epochs):
        stats = local_epoch(model, opt, x, y, torch.randperm(len(x), generator=shuffle))
        dist.all_reduce(stats)
        if rank == 0:
            print(f"epoch {epoch}: mse {(stats[0] / stats[1]).item():.4f} over {int(stats[1])} windows", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train()
    dist.destroy_process_group()
