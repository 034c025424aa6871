"""A sampler that goes on behind what is consumed, as far as all ranks have come."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset


class InOrder:
    def __init__(self, number, consumed, batch, rank, ranks):
        self.number, self.consumed = number, consumed
        self.batch, self.rank = batch, rank
        self.of_all = batch * ranks

    def __len__(self):
        return (self.number - self.consumed) // self.of_all

    def __iter__(self):
        for first in range(self.consumed, self.number - self.of_all + 1, self.of_all):
            mine = first + self.rank * self.batch
            yield list(range(mine, mine + self.batch))


class Progress:
    def __init__(self, batch):
        self.batch, self.step, self.consumed = batch, 0, 0

    def advance(self):
        self.step += 1
        self.consumed += self.batch * dist.get_world_size()

    def state_dict(self):
        return {"step": self.step, "consumed": self.consumed}

    def load_state_dict(self, state):
        self.step, self.consumed = state["step"], state["consumed"]


def main(batch, path, begins):
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(4096, 8))
    net = DDP(nn.Linear(8, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    progress = Progress(batch)
    if not begins:
        state = torch.load(path, map_location="cpu")
        net.module.load_state_dict(state["net"])
        optimizer.load_state_dict(state["optimizer"])
        progress.load_state_dict(state["progress"])
    ranks = dist.get_world_size()
    sampler = InOrder(len(data), progress.consumed, batch, dist.get_rank(), ranks)
    for (rows,) in DataLoader(data, batch_sampler=sampler):
        optimizer.zero_grad()
        net(rows).square().mean().backward()
        optimizer.step()
        progress.advance()
    if dist.get_rank() == 0:
        state = {
            "net": net.module.state_dict(),
            "optimizer": optimizer.state_dict(),
            "progress": progress.state_dict(),
        }
        torch.save(state, path)
    dist.barrier()


if __name__ == "__main__":
    main(16, "state.pt", begins=False)
