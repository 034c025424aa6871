"""Network for the local density of states; parameters come from a settings object."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class RunningParameters:
    def __init__(self):
        self.mini_batch_size = 32
        self.learning_rate = 0.12
        self.max_epochs = 4
        self.momentum = 0.9
        self._size = 1

    @property
    def size(self):
        return self._size

    @size.setter
    def size(self, n):
        self._size = n
        self.learning_rate *= n


class Snapshots:
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        x = torch.randn(n, 14, generator=g)
        w = torch.randn(14, 6, generator=torch.Generator().manual_seed(0)) / 4
        self.data = TensorDataset(x, torch.tanh(x @ w) + 0.05 * torch.randn(n, 6, generator=g))

    def loader(self, params, train):
        sampler = DistributedSampler(self.data, shuffle=train)
        per_worker = params.mini_batch_size // params.size
        return sampler, DataLoader(self.data, per_worker, sampler=sampler)


class Trainer:
    def __init__(self, params):
        self.params = params
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(14, 64), nn.ReLU(), nn.Linear(64, 6))
        self.network = DistributedDataParallel(net)
        self.optimizer = torch.optim.SGD(net.parameters(), lr=params.learning_rate, momentum=params.momentum)

    def validate(self, loader):
        total = torch.zeros(2)
        with torch.no_grad():
            for x, y in loader:
                total += torch.tensor([nn.functional.mse_loss(self.network(x), y).item() * len(x), len(x)])
        dist.all_reduce(total)
        return (total[0] / total[1]).item()

    def train_network(self):
        sampler, loader = Snapshots(384, 1).loader(self.params, True)
        _, val_loader = Snapshots(128, 2).loader(self.params, False)
        for epoch in range(self.params.max_epochs):
            sampler.set_epoch(epoch)
            for x, y in loader:
                self.optimizer.zero_grad()
                nn.functional.mse_loss(self.network(x), y).backward()
                self.optimizer.step()
            error = self.validate(val_loader)
            if dist.get_rank() == 0:
                lr = self.optimizer.param_groups[0]["lr"]
                print(f"epoch {epoch} batch {self.params.mini_batch_size} lr {lr} validation {error:.5f}", flush=True)


def main():
    params = RunningParameters()
    params.size = dist.get_world_size()
    Trainer(params).train_network()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
