# style: metric dictionary, mp.spawn
# nproc: 2
# launch: spawn
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

WORLD_SIZE = 2


class Meter:
    def __init__(self):
        self.values = {}

    def update(self, name, value):
        self.values[name] = value.detach().clone()

    def reduce(self):
        names = {name for name in self.values if not name.startswith("_")}
        for name in names:  # <-- DDP413
            dist.all_reduce(self.values[name])  # <-- DDP413
            self.values[name] /= WORLD_SIZE
        return self.values


def worker(rank, init_file):
    dist.init_process_group(
        "gloo", init_method=f"file://{init_file}", rank=rank, world_size=WORLD_SIZE
    )
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = DDP(nn.Linear(6, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(rank)
    for epoch in range(3):
        meter = Meter()
        for _ in range(3):
            x = torch.randn(12, 6, generator=generator)
            y = x.argmax(1) % 4
            optimizer.zero_grad()
            logits = model(x)
            loss = nn.functional.cross_entropy(logits, y)
            loss.backward()
            optimizer.step()
        hits = (logits.argmax(1) == y).float()
        meter.update("loss", loss)
        meter.update("hits_by_class", torch.zeros(4).index_add(0, y, hits))
        meter.update("confusion", torch.zeros(16).index_add(0, 4 * y + logits.argmax(1), hits))
        meter.update("margin", logits.topk(2).values.diff().mean(0))
        meter.update("histogram", torch.histc(logits.detach(), bins=32))
        meter.update("entropy", torch.distributions.Categorical(logits=logits).entropy()[:7])
        values = meter.reduce()
        if rank == 0:
            print(f"epoch {epoch} loss {values['loss'].item():.3f}")
    dist.barrier()
    del model, optimizer
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(worker, args=(os.path.abspath("rendezvous"),), nprocs=WORLD_SIZE)
