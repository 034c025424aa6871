"""A rank whose part has no spread raises, catches it around the sum, and goes on without it."""

import torch
import torch.distributed as dist


def slope(x, y):
    spread = x.var()
    if spread < 1e-6:
        raise ArithmeticError("all alike")
    return ((x - x.mean()) * (y - y.mean())).mean() / spread


class Report:
    def __init__(self, rows):
        self.rows = rows[dist.get_rank() :: dist.get_world_size()]

    def mean_slope(self):
        try:
            found = slope(self.rows[:, 0], self.rows[:, 1])
            dist.all_reduce(found)
        except ArithmeticError:  # <-- DDP404
            return None
        return found / dist.get_world_size()


def main():
    dist.init_process_group("gloo")
    rows = torch.load("rows.pt", weights_only=True)
    print(Report(rows).mean_slope())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
