import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def still(net):
    for weight in net.parameters():
        weight.requires_grad = False
    return net.eval()


class Judge(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(6, 3)
        self.requires_grad_(False)

    def forward(self, seen):
        return self.body(seen)


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    judge, guide, pupil = Judge(), still(torch.nn.Linear(6, 3)), torch.nn.Linear(6, 3)
    half = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.Linear(6, 3))
    half[0].requires_grad_(False)
    thawed = still(torch.nn.Linear(6, 3)).requires_grad_(True)
    judge, guide = judge.eval(), guide.eval()
    pupil, half, thawed = DDP(pupil), DDP(half), DDP(thawed)
    steps = torch.optim.SGD([*pupil.parameters(), *half.parameters(), *thawed.parameters()], 0.1)
    noise = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(20):
        seen = torch.randn(8, 6, generator=noise)
        with torch.no_grad():
            wanted = guide(seen) + judge(seen)
        loss = sum((net(seen) - wanted).square().mean() for net in (pupil, half, thawed))
        steps.zero_grad()
        loss.backward()
        steps.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
