import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import normalize
from torch.nn.parallel import DistributedDataParallel as DDP


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 4)
        self.register_buffer("queue", torch.randn(4, 32))
        self.queue = normalize(self.queue, dim=0)

    def forward(self, rows):
        return self.body(rows) @ self.queue


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    net = DDP(Net())
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for _ in range(20):
        optimizer.zero_grad()
        net(torch.rand(16, 8)).logsumexp(1).mean().backward()
        optimizer.step()


if __name__ == "__main__":
    main()
