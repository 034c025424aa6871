import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Error(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 1)

    def forward(self, pair):
        x, y = pair
        return (self.layer(x) - y).square().mean()


class Pool:
    def __init__(self, x, y, size):
        self.x, self.y, self.size, self.at = x, y, size, 0
        self.order = torch.randperm(len(x), generator=torch.Generator().manual_seed(5))

    def draw(self):
        first = self.at
        rows = self.order[first : first + self.size]
        self.at += self.size
        return self.x[rows], self.y[rows]  # <-- DDP202


def main():
    dist.init_process_group("gloo")
    make = torch.Generator().manual_seed(1)
    pool = Pool(torch.randn(256, 3, generator=make), torch.randn(256, 1, generator=make), 16)
    net = DDP(Error())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(4):
        pair = pool.draw()
        optimizer.zero_grad()
        net(pair).backward()
        optimizer.step()


if __name__ == "__main__":
    main()
