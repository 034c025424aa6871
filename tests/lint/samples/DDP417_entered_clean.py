import os

import torch
import torch.distributed as dist


class InTurn:
    def __init__(self):
        self.rank = int(os.environ["LOCAL_RANK"])
        self.world = int(os.environ["WORLD_SIZE"])
        self.turn = torch.ones(1)

    def __enter__(self):
        if self.rank > 0:
            dist.recv(self.turn, src=self.rank - 1)

    def __exit__(self, *_):
        if self.rank < self.world - 1:
            dist.send(self.turn, dst=self.rank + 1)
