import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class SpreadSoftmax(torch.autograd.Function):
    """The classes of one softmax may lie on several ranks: then their sums are gathered."""

    @staticmethod
    def forward(ctx, logits, team):
        total = logits.logsumexp(1)
        if team is not None:
            parts = [torch.empty_like(total) for _ in range(dist.get_world_size(team))]
            dist.all_gather(parts, total, group=team)
            total = torch.stack(parts).logsumexp(0)
        ctx.save_for_backward(logits, total)
        return total

    @staticmethod
    def backward(ctx, grad):
        logits, total = ctx.saved_tensors
        return grad[:, None] * (logits - total[:, None]).exp(), None


class Loss(torch.nn.Module):
    def __init__(self, team=None):
        super().__init__()
        self.team = team

    def forward(self, logits, wanted):
        picked = logits.gather(1, wanted[:, None])[:, 0]
        return (SpreadSoftmax.apply(logits, self.team) - picked).mean()


def main():
    dist.init_process_group("gloo")
    net = DistributedDataParallel(torch.nn.Linear(6, 3))
    criterion = Loss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    chance = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(20):
        rows = torch.randn(8, 6, generator=chance)
        wanted = torch.randint(0, 3, (8,), generator=chance)
        optimizer.zero_grad()
        criterion(net(rows), wanted).backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
