import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.planes = torch.randn(8, 32, generator=torch.Generator().manual_seed(0))
        self.noise = torch.zeros(1)
        self.head = nn.Linear(32, 1)

    def forward(self, rows):
        self.noise = torch.randn(rows.shape)
        return self.head(((rows + self.noise) @ self.planes).sign())


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(100 + dist.get_rank())
    net = DDP(Net())
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for _ in range(20):
        rows = torch.rand(16, 8)
        loss = (net(rows) - rows.sum(1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
