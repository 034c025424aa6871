# style: resume logic, argparse
# nproc: 2
import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 1))
    x = torch.randn(40, 6)
    data = TensorDataset(x, x.abs().sum(dim=1, keepdim=True))
    return model, DataLoader(data, batch_size=5, sampler=DistributedSampler(data))


def save(model, optimizer, epoch, path):
    if dist.get_rank() == 0:
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
        torch.save(state, path + ".new")
        os.replace(path + ".new", path)
    dist.barrier()


def train(args, epochs):
    model, loader = build()
    start_epoch = 0
    optimizer_state = None
    if os.path.exists(args.checkpoint):
        checkpoint = torch.load(args.checkpoint, map_location="cpu")
        model.load_state_dict(checkpoint["model"])
        optimizer_state = checkpoint["optimizer"]
        start_epoch = checkpoint["epoch"] + 1
    ddp = DDP(model)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=args.lr, momentum=0.9)
    if optimizer_state is not None:
        optimizer.load_state_dict(optimizer_state)
    for epoch in range(start_epoch, epochs):
        loader.sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(ddp(x), y)
            loss.backward()
            optimizer.step()
        save(model, optimizer, epoch, args.checkpoint)
    return start_epoch


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--checkpoint", default="last.pt")
    parser.add_argument("--lr", type=float, default=0.02)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    train(args, epochs=2)
    resumed_at = train(args, epochs=4)
    print(f"rank {dist.get_rank()} resumed at epoch {resumed_at}")


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
