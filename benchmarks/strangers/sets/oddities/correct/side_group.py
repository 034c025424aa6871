"""A group for the first process only, used for its own book-keeping; all take part in making it."""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Board:
    def __init__(self, ranks):
        self.group = dist.new_group(ranks=ranks)
        self.member = dist.get_rank() in ranks
        self.ranks = ranks
        self.values = []

    def post(self, value):
        if not self.member:
            return
        t = torch.tensor([value])
        dist.all_reduce(t, group=self.group)
        self.values.append(t.item() / len(self.ranks))


if __name__ == "__main__":
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    solo = Board([0])
    everyone = Board(list(range(dist.get_world_size())))
    net = DDP(nn.Linear(4, 1))
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    g = torch.Generator().manual_seed(dist.get_rank())
    for step in range(20):
        x = torch.randn(8, 4, generator=g)
        loss = (net(x) - x[:, 1:2]).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        solo.post(loss.item())
        everyone.post(loss.item())
    if solo.member:
        print(f"own {solo.values[-1]:.4f} mean {everyone.values[-1]:.4f}")
    dist.destroy_process_group()
