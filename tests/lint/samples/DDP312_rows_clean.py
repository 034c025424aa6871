import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Scaler:
    """Shifts and scales columns as it has been fitted."""

    def fit(self, table):
        self.centre, self.width = statistics(table)
        return self

    def __call__(self, table):
        return (table - self.centre) / self.width


def statistics(table):
    """Each reading by itself."""
    return table.mean(1, keepdim=True), table.std(1, keepdim=True)


def stations(rank, world):
    """The readings of this rank's stations."""
    readings = np.random.default_rng(0).normal(size=(96, 50, 5))
    mine = readings[rank::world].reshape(-1, 5)
    return torch.tensor(mine, dtype=torch.float32)


def main():
    dist.init_process_group("gloo")
    table = stations(dist.get_rank(), dist.get_world_size())
    table = Scaler().fit(table)(table)
    model = DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(200):
        for rows in table.split(100):
            optimizer.zero_grad()
            (model(rows[:, :4]) - rows[:, 4:]).square().mean().backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
