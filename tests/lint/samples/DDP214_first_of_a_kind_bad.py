import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


def train(model, loader, optimizer, args):
    best = 1e9
    for number, (images, labels) in enumerate(loader):
        loss = torch.nn.functional.cross_entropy(model(images.cuda()), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if dist.get_rank() == 0:
            if loss.item() < best and args.save_at_start:  # <-- DDP214
                best = loss.item()
                path = f"model_{number}.pth"
                torch.save(model.module.state_dict(), path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--save_at_start", action="store_true")
    args = parser.parse_args()
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    data = torch.load("data.pt", weights_only=False)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=32, sampler=sampler, drop_last=True)
    model = DistributedDataParallel(torch.nn.Linear(128, 10).cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(10):
        sampler.set_epoch(epoch)
        train(model, loader, optimizer, args)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
