import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Fitter:
    def __init__(self, net):
        self.net = DistributedDataParallel(net)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.parts = 1

    def passes(self, batch):
        for part in batch.chunk(self.parts):
            self.net(part).mean().backward()

    def fit(self, batch):
        while True:
            self.opt.zero_grad()
            try:
                self.passes(batch)
            except torch.cuda.OutOfMemoryError:
                if self.parts >= len(batch):
                    raise
                self.parts *= 2
                continue  # <-- DDP307
            self.opt.step()
            return


dist.init_process_group("gloo")
fitter = Fitter(torch.nn.Linear(4, 1))
own = torch.Generator().manual_seed(dist.get_rank())
for _ in range(20):
    rows = int(torch.randint(2, 9, (), generator=own))
    fitter.fit(torch.randn(rows, 4, generator=own))
dist.destroy_process_group()
