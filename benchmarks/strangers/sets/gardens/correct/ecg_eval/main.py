import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from beats import load
from ragged import auc, gather_rows


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    train = TensorDataset(*load(range(30)))
    mine = list(range(30, 41))[rank::world]
    vx, vy = load(mine)
    torch.manual_seed(10)
    net = DistributedDataParallel(nn.Sequential(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 1)))
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    sampler = DistributedSampler(train, seed=1, drop_last=True)
    loader = DataLoader(train, 16, sampler=sampler)
    for epoch in range(4):
        sampler.set_epoch(epoch)
        for x, y in loader:
            opt.zero_grad()
            nn.functional.binary_cross_entropy_with_logits(net(x).squeeze(1), y).backward()
            opt.step()
        scores = []
        with torch.no_grad():
            for chunk in vx.split(16):
                scores.append(net.module(chunk).squeeze(1))
        s, y = gather_rows(torch.cat(scores).double()), gather_rows(vy)
        if rank == 0:
            print(f"epoch {epoch} auc {auc(s, y):.4f} over {len(s)} beats", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
