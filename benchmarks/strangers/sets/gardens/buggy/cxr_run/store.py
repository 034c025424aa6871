import os

import torch
import torch.distributed as dist


class BestKeeper:
    """Keeps the weights with the highest validation score."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "best.pt")
        self.score = float("-inf")
        if dist.get_rank() == 0:
            os.makedirs(folder, exist_ok=True)

    def offer(self, net, score):
        if score <= self.score:
            return
        self.score = score
        if dist.get_rank() == 0:
            torch.save(net.state_dict(), self.path)

    def restore(self, net):
        dist.barrier()
        net.load_state_dict(torch.load(self.path))
        dist.barrier()
