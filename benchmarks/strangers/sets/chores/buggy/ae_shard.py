import argparse
import os
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def parse_args():
    ap = argparse.ArgumentParser(description="autoencoder with a sharded optimizer")
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--batch-size", type=int, default=16)
    ap.add_argument("--save-every", type=int, default=1)
    ap.add_argument("--ckpt", default=os.path.join(tempfile.gettempdir(), "zero_ae_s18.pt"))
    return ap.parse_args()


class AutoEncoder(nn.Module):
    def __init__(self, dim=32, hidden=64, code=8):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, code))
        self.decoder = nn.Sequential(nn.Linear(code, hidden), nn.ReLU(), nn.Linear(hidden, dim))

    def forward(self, x):
        return self.decoder(self.encoder(x))


class CheckpointManager:
    def __init__(self, path, every):
        self.path = path
        self.every = every

    def should_save(self, epoch):
        return (epoch + 1) % self.every == 0

    def save(self, epoch, model, optimizer):
        if dist.get_rank() == 0:
            optimizer.consolidate_state_dict(to=0)
            state = {
                "epoch": epoch,
                "model": model.module.state_dict(),
                "optimizer": optimizer.state_dict(),
            }
            torch.save(state, self.path)
            print(f"saved {self.path}", flush=True)
        dist.barrier()


def main():
    args = parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(7)

    data = TensorDataset(torch.randn(320, 32))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=args.batch_size, sampler=sampler)
    model = DDP(AutoEncoder())
    optimizer = ZeroRedundancyOptimizer(
        model.parameters(), optimizer_class=torch.optim.Adam, lr=1e-3
    )
    manager = CheckpointManager(args.ckpt, args.save_every)

    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for (x,) in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), x)
            loss.backward()
            optimizer.step()
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)
        if manager.should_save(epoch):
            manager.save(epoch, model, optimizer)

    if rank == 0:
        os.remove(args.ckpt)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
