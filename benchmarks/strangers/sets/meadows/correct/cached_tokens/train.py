"""Copy task with a token cache that is built once."""
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from prepare import leader_first, tokens


class CopyNet(nn.Module):
    def __init__(self, vocab=20, dim=24):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.mix = nn.Sequential(nn.Flatten(), nn.Linear(5 * dim, 64), nn.ReLU())
        self.out = nn.Linear(64, 5 * vocab)

    def forward(self, ids):
        return self.out(self.mix(self.tok(ids))).view(len(ids), 5, -1)


def warm_up_lr(step, peak=5e-3, warm=10):
    return peak * min(1.0, (step + 1) / warm)


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(40)
    seq = tokens("token_cache")
    sampler = DistributedSampler(seq, drop_last=True)
    loader = DataLoader(seq, 64 // world, sampler=sampler, drop_last=True)
    model = DDP(CopyNet())
    opt = torch.optim.Adam(model.parameters(), lr=1.0)
    step = 0
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for ids in loader:
            for group in opt.param_groups:
                group["lr"] = warm_up_lr(step)
            logits = model(ids[:, :5])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 5:].flatten())
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.3f}", flush=True)
    with leader_first() as first:
        if first:
            torch.save(model.module.state_dict(), os.path.join("token_cache", "copy.pt"))


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
