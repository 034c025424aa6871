# style: Trainer class with resume(), no hang
# nproc: 2
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Trainer:
    def __init__(self, folder):
        self.rank = dist.get_rank()
        self.path = Path(folder) / "state.pt"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        torch.manual_seed(0)
        self.net = nn.Linear(4, 4)
        self.model = DDP(self.net)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.05)
        data = TensorDataset(torch.eye(4).repeat(8, 1), torch.eye(4).flip(0).repeat(8, 1))
        self.loader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data))

    def save(self):
        if self.rank == 0:
            state = {"net": self.net.state_dict(), "optimizer": self.optimizer.state_dict()}
            torch.save(state, self.path)
        dist.barrier()

    def resume(self):
        state = torch.load(self.path, map_location="cpu")
        self.net.load_state_dict(state["net"])
        if self.rank == 0:
            self.optimizer.load_state_dict(state["optimizer"])  # <-- DDP513

    def fit(self, epochs, first=0):
        for epoch in range(first, first + epochs):
            self.loader.sampler.set_epoch(epoch)
            for x, y in self.loader:
                self.optimizer.zero_grad()
                loss = nn.functional.cross_entropy(self.model(x), y)
                loss.backward()
                self.optimizer.step()
        return loss.item()


def main():
    dist.init_process_group("gloo")
    first = Trainer("run")
    first.fit(epochs=2)
    first.save()
    second = Trainer("run")
    second.resume()
    loss = second.fit(epochs=2, first=2)
    print(f"rank {second.rank}: {loss:.4f} {second.net.weight.sum().item():.6f}")
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
