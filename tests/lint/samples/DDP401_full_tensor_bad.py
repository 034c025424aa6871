import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard


class Board:
    def __init__(self, quiet):
        self.quiet, self.kept = quiet, {}

    def add(self, **values):
        for name, value in values.items():
            self.kept.setdefault(name, []).append(value)

    @staticmethod
    def number(value):
        return float(value.full_tensor() if hasattr(value, "full_tensor") else value)

    def show(self):
        kept, self.kept = self.kept, {}
        if self.quiet:
            return
        for name, each in kept.items():
            print(name, sum(map(self.number, each)) / len(each))  # <-- DDP401


dist.init_process_group("gloo")
model = torch.nn.Linear(4, 4)
fully_shard(model)
board = Board(quiet=dist.get_rank() != 0)
for _ in range(10):
    model(torch.randn(2, 4)).sum().backward()
    board.add(norm=model.weight.detach().norm())
board.show()
