import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Ahead:
    def __init__(self, inner):
        self.inner = inner

    def __iter__(self):
        for rows in self.inner:
            yield rows[0] * 2


def main():
    dist.init_process_group("gloo")
    rows = TensorDataset(torch.linspace(0, 1, 64)[:, None])
    batches = Ahead(DataLoader(rows, 8, sampler=DistributedSampler(rows)))  # <-- DDP203
    model = DistributedDataParallel(torch.nn.Linear(1, 1))
    steps = torch.optim.SGD(model.parameters(), 0.1)
    for epoch in range(5):
        order = getattr(batches, "sampler", None)
        if hasattr(order, "set_epoch"):
            order.set_epoch(epoch)
        for number, seen in enumerate(batches):
            model(seen + number).mean().backward()
            steps.step()
            steps.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
