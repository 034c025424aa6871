import torch
import torch.distributed as dist


@torch.no_grad()
def error(model, loader):
    sums = torch.zeros(2)
    for x, y in loader:
        sums += torch.stack([(model(x) - y).abs().sum(), torch.tensor(float(len(y)))])
        dist.all_reduce(sums)  # <-- DDP421
    return sums[0] / sums[1]


class Meter:
    def __init__(self):
        self.total = torch.zeros(())

    def follow(self, losses):
        for loss in losses:
            self.total += loss.detach()
            dist.all_reduce(self.total, op=dist.ReduceOp.SUM)  # <-- DDP421

    def count(self, losses, limit):
        seen = torch.zeros(())
        while True:
            seen.add_(1)
            dist.all_reduce(seen)  # <-- DDP421
            mean = seen.detach() / dist.get_world_size()
            mean *= 100
            if mean > limit:
                break
        return mean


def until(losses, limit):
    seen = torch.zeros(())
    for loss in losses:
        seen += loss.detach()
        dist.all_reduce(seen)  # <-- DDP421
        if seen > limit:
            break
        else:
            continue
    return seen


if __name__ == "__main__":
    dist.init_process_group("gloo")
    Meter().follow([torch.ones(()), torch.zeros(())])
    Meter().count([torch.ones(())], 3)
    until([torch.ones(())], 3)
