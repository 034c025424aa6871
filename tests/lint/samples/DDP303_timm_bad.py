import torch
import torch.distributed as dist
from timm.utils.model import unwrap_model
from torch.nn.parallel import DistributedDataParallel as DDP


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(4, 4)
        self.head = torch.nn.Linear(4, 1)

    def forward(self, x):
        return self.head(self.body(x))


def main():
    dist.init_process_group("gloo")
    net = DDP(Net())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    bare = unwrap_model(net)
    noise = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(5):
        bare(torch.randn(4, 4, generator=noise)).mean().backward()  # <-- DDP303
        optimizer.step()
        optimizer.zero_grad()
    if dist.get_rank() == 0:
        torch.save(bare.state_dict(), "net.pt")


if __name__ == "__main__":
    main()
