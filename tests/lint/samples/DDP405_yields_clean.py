import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Patience:
    """Gives out attempts until the solver is content."""

    def __init__(self, most, wanted):
        self.most, self.wanted, self.seen = most, wanted, []

    def heard(self, residual):
        self.seen.append(residual)

    def attempts(self):
        for number in range(self.most):
            yield number
            if self.seen and self.seen[-1] < self.wanted:
                break


def logged(steps, every=10):
    for number in steps:
        yield number
        if number % every == 0:
            print(number, flush=True)


dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
solver = DDP(torch.nn.Linear(3, 3))
opt = torch.optim.SGD(solver.parameters(), lr=0.1)
patience = Patience(50, 1e-3)
for turn, _ in enumerate(logged(patience.attempts())):
    x = torch.randn(16, 3)
    residual = (solver(x) - x).square().mean()
    opt.zero_grad()
    residual.backward()
    shared = residual.detach()
    dist.all_reduce(shared)
    opt.step()
    patience.heard(shared.item())
dist.destroy_process_group()
