"""The second machine has more recordings than the first; both train until the longer one is through."""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def recordings(rank):
    g = torch.Generator().manual_seed(rank)
    for _ in range(10 + 7 * rank):
        x = torch.randn(8, 12, generator=g)
        yield x, x[:, :6].mean(1, keepdim=True)


class App:
    def __init__(self):
        dist.init_process_group("gloo")
        torch.manual_seed(0)
        self.rank = dist.get_rank()
        self.net = DDP(nn.Sequential(nn.Linear(12, 10), nn.ReLU(), nn.Linear(10, 1)))
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.05)

    def epoch(self):
        seen, total = 0, 0.0
        with self.net.join():
            for x, y in recordings(self.rank):
                loss = nn.functional.mse_loss(self.net(x), y)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                seen += len(x)
                total += loss.item() * len(x)
        stats = torch.tensor([total, float(seen)])
        dist.all_reduce(stats)
        return (stats[0] / stats[1]).item()


app = App()
for e in range(3):
    value = app.epoch()
    if app.rank == 0:
        print(f"epoch {e}: {value:.4f}", flush=True)
dist.destroy_process_group()
