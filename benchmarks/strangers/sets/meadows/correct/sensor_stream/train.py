"""Wear regression from a stream; an epoch ends for all when the first process runs dry."""
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from stream import RigStream


def together(loader):
    """Yields batches as long as every process still has one."""
    it = iter(loader)
    while True:
        batch = next(it, None)
        have = torch.tensor(int(batch is not None))
        dist.all_reduce(have, op=dist.ReduceOp.MIN)
        if not have.item():
            return
        yield batch


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1)))
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(3):
        loader = DataLoader(RigStream(rigs=13, epoch=epoch), batch_size=16, num_workers=1)
        steps = 0
        for x, y in together(loader):
            loss = nn.functional.mse_loss(model(x).squeeze(-1), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            steps += 1
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: {steps} steps, loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
