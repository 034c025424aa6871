# style: a frozen recurrent front carries its state from one piece of each rank's streams to the next
# nproc: 2
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Front(nn.Module):
    def __init__(self, batch):
        super().__init__()
        self.cell = nn.GRUCell(8, 8).requires_grad_(False)
        self.register_buffer("state", torch.zeros(batch, 8))

    def forward(self, x):
        self.state = self.cell(x, self.state)
        return self.state


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    front = Front(16)
    model = DDP(nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    stream = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(20):
        x = torch.randn(16, 8, generator=stream)
        optimizer.zero_grad()
        model(front(x)).square().mean().backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
