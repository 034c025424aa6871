import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Twins(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(6, 4)

    def forward(self, one, other):
        both = self.body(one).T @ self.body(other) / len(one)
        dist.all_reduce(both)  # <- DDP316
        return (torch.diagonal(both) - 1).square().sum()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    net = DDP(Twins())
    steps = torch.optim.SGD(net.parameters(), 0.1)
    noise = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(9):
        seen = torch.randn(8, 6, generator=noise)
        loss = net(seen, seen + 0.1)
        steps.zero_grad()
        loss.backward()
        steps.step()
        told = loss.detach().clone()
        dist.all_reduce(told)
        if dist.get_rank() == 0:
            print(told.sqrt())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
