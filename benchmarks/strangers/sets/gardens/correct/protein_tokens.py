"""Secondary structure labels for chains of very different length; every residue of the global batch weighs the same."""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

PAD = -1


def chains(rank, step, n=6):
    g = torch.Generator().manual_seed(step * 29 + rank)
    longest = 8 + 24 * ((step + rank) % 2)
    lens = torch.randint(4, longest, (n,), generator=g)
    ids = torch.randint(0, 20, (n, int(lens.max())), generator=g)
    lab = (ids + torch.roll(ids, 1, 1)) % 3
    lab[torch.arange(ids.size(1))[None] >= lens[:, None]] = PAD
    return ids, lab


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(20, 24)
        self.c = nn.Conv1d(24, 48, 3, padding=1)
        self.o = nn.Linear(48, 3)

    def forward(self, ids):
        return self.o(torch.relu(self.c(self.e(ids).transpose(1, 2))).transpose(1, 2))


def run():
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(8)
    net = DistributedDataParallel(Net())
    opt = torch.optim.SGD(net.parameters(), lr=0.5, momentum=0.9)
    for step in range(90):
        ids, lab = chains(rank, step)
        n_all = (lab != PAD).sum().float()
        dist.all_reduce(n_all)
        summed = F.cross_entropy(net(ids).flatten(0, 1), lab.flatten(), ignore_index=PAD, reduction="sum")
        opt.zero_grad()
        (summed * world / n_all).backward()
        opt.step()
        if step % 30 == 29:
            shown = summed.detach().clone()
            dist.all_reduce(shown)
            if rank == 0:
                print(f"step {step + 1} loss per residue {(shown / n_all).item():.4f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    run()
    dist.destroy_process_group()
