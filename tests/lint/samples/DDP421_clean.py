import torch
import torch.distributed as dist


@torch.no_grad()
def error(model, loader):
    sums = torch.zeros(2)
    for x, y in loader:
        part = torch.zeros(2)
        part += torch.stack([(model(x) - y).abs().sum(), torch.tensor(float(len(y)))])
        dist.all_reduce(part)
        sums += part
    return sums[0] / sums[1]


class Meter:
    def __init__(self):
        self.total = torch.zeros(())
        self.worst = torch.zeros(())

    def follow(self, losses):
        for step, loss in enumerate(losses):
            self.total += loss.detach()
            self.worst += loss.detach()
            dist.all_reduce(self.worst, op=dist.ReduceOp.MAX)
            if step % 100 == 99:
                dist.all_reduce(self.total)
                print(self.total / 100)
                self.total = torch.zeros(())

    def restart(self, losses):
        for loss in losses:
            self.total += loss.detach()
            dist.all_reduce(self.total)
            print(self.total)
            self.total.zero_()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    Meter().follow([torch.ones(()), torch.zeros(())])
