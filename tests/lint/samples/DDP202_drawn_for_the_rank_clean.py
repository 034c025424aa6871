import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset


class Table(Dataset):
    """The rows of one site, as a simulation gives them."""

    def __init__(self, site, rows=80):
        generator = torch.Generator().manual_seed(site)
        self.x = torch.randn(rows, 7, generator=generator)
        self.y = self.x.sum(1, keepdim=True)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


def main():
    dist.init_process_group("gloo")
    loader = DataLoader(Table(dist.get_rank()), batch_size=16, shuffle=True)
    model = DistributedDataParallel(torch.nn.Linear(7, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        (model(x) - y).square().mean().backward()
        optimizer.step()


if __name__ == "__main__":
    main()
