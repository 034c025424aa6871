import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(8, 32), torch.nn.Linear(32, 1)

    def forward(self, seen):
        return self.last(torch.nn.functional.dropout(self.first(seen), 0.3, self.training))


class Best:
    mark = 9.0

    def judge(self, net, seen):
        if dist.get_rank() > 0:
            return
        net.eval()  # <-- DDP310
        with torch.no_grad():
            mark = net(seen).mean().item()
        if mark > self.mark:
            print("worse")
            return
        self.mark = mark
        net.train()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    model = DDP(Net())
    steps = torch.optim.SGD(model.parameters(), 0.1)
    best = Best()
    for _ in range(9):
        seen = torch.randn(4, 8)
        model(seen).mean().backward()
        steps.step()
        steps.zero_grad()
        best.judge(model.module, seen)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
