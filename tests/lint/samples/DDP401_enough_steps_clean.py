"""After so many steps rank 0 saves the model, and all return."""

import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()
    dist.init_process_group("nccl")
    rank, device = dist.get_rank(), int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(device)
    model = DistributedDataParallel(torch.nn.Linear(2, 2).to(device), device_ids=[device])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = TensorDataset(torch.randn(640, 2))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    step = 0
    for epoch in range(10):
        sampler.set_epoch(epoch)
        for (x,) in loader:
            optimizer.zero_grad()
            model(x.to(device)).square().mean().backward()
            optimizer.step()
            step += 1
            if step == args.steps:
                if rank == 0:
                    torch.save(model.module.state_dict(), f"after-{step}.pt")
                return


if __name__ == "__main__":
    main()
