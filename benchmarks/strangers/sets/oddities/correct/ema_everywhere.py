"""Averaged weights kept on all processes (they see the same weights), written by one, scored in shards."""
import copy

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Averager:
    def __init__(self, net, decay):
        self.net = copy.deepcopy(net).eval()
        self.decay = decay

    @torch.no_grad()
    def step(self, net):
        for a, b in zip(self.net.parameters(), net.parameters()):
            a.lerp_(b, 1 - self.decay)
        for a, b in zip(self.net.buffers(), net.buffers()):
            a.copy_(b)


def blobs(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 3, (n,), generator=g)
    return torch.randn(n, 2, generator=g) + 2.5 * torch.stack([y == 1, y == 2], 1).float(), y


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(5)
    net = DDP(nn.Sequential(nn.Linear(2, 24), nn.ReLU(), nn.Linear(24, 3)))
    avg = Averager(net.module, 0.95)
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    x, y = (t[rank::world] for t in blobs(400, 0))
    for epoch in range(3):
        for i in range(0, len(x), 20):
            loss = nn.functional.cross_entropy(net(x[i:i + 20]), y[i:i + 20])
            opt.zero_grad()
            loss.backward()
            opt.step()
            avg.step(net.module)
    vx, vy = (t[rank::world] for t in blobs(150, 1))
    with torch.no_grad():
        count = torch.tensor([(avg.net(vx).argmax(1) == vy).sum().item(), len(vy)])
    dist.all_reduce(count)
    if rank == 0:
        torch.save(avg.net.state_dict(), "/dev/null")
        print(f"accuracy {count[0].item() / count[1].item():.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
