import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from .models import build
from .vocab import build_vocab


class Experiment:
    def __init__(self, name):
        self.name, self.rank = name, dist.get_rank()

    def log(self, msg):
        if self.rank == 0:
            print(f"[{self.name}] {msg}", flush=True)

    def run(self):
        torch.manual_seed(0)
        vocab = build_vocab(self.name, self.rank, self.log)
        model = DistributedDataParallel(build(vocab))
        opt = torch.optim.Adagrad(model.parameters(), lr=0.1)
        g = torch.Generator().manual_seed(self.rank)
        for _ in range(40):
            u, i = torch.randint(40, (32,), generator=g), torch.randint(len(vocab), (32,), generator=g)
            loss = (model(u, i) - ((u + i) % 3 == 0).float()).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        self.log(f"loss {loss.item():.3f}")
        dist.barrier()
