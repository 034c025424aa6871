"""A small Trainer with callbacks; samples of like length are batched together by a batch sampler."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset


class Variants(Dataset):
    def __init__(self, n=120):
        g = torch.Generator().manual_seed(8)
        self.lengths = torch.randint(1, 4, (n,), generator=g).tolist()
        self.x = [torch.randn(k * 4, 6, generator=g) for k in self.lengths]
        self.y = [v.mean() for v in self.x]

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class SameLengthBatchSampler:
    """Shuffles, groups by length, deals whole batches to the replicas."""

    def __init__(self, lengths, batch_size, num_replicas, rank, seed=0):
        self.lengths, self.batch_size = lengths, batch_size
        self.num_replicas, self.rank = num_replicas, rank
        self.seed, self.epoch = seed, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed + self.epoch)
        groups = {}
        for i in torch.randperm(len(self.lengths), generator=g).tolist():
            groups.setdefault(self.lengths[i], []).append(i)
        batches = []
        for key in sorted(groups):
            ids = groups[key]
            batches += [ids[k:k + self.batch_size] for k in range(0, len(ids) - self.batch_size + 1, self.batch_size)]
        order = torch.randperm(len(batches), generator=g).tolist()
        usable = len(order) - len(order) % self.num_replicas
        for k in order[self.rank:usable:self.num_replicas]:
            yield batches[k]


class Callback:
    def on_epoch_start(self, trainer):
        pass

    def on_step_end(self, trainer, loss):
        pass

    def on_epoch_end(self, trainer):
        pass


class ShuffleEachEpoch(Callback):
    def on_epoch_start(self, trainer):
        sampler = trainer.loader.sampler
        if hasattr(sampler, "set_epoch"):
            sampler.set_epoch(trainer.epoch)


class LossMeter(Callback):
    def on_epoch_start(self, trainer):
        self.total = torch.zeros(2)

    def on_step_end(self, trainer, loss):
        self.total += torch.tensor([loss.item(), 1.0])

    def on_epoch_end(self, trainer):
        dist.all_reduce(self.total)
        if trainer.rank == 0:
            print(f"epoch {trainer.epoch}: {(self.total[0] / self.total[1]).item():.4f}", flush=True)


class Trainer:
    def __init__(self, net, loader, callbacks, max_epochs, lr):
        self.rank = dist.get_rank()
        self.net, self.loader, self.callbacks = DDP(net), loader, callbacks
        self.max_epochs, self.epoch = max_epochs, 0
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=lr)

    def call(self, hook, *args):
        for cb in self.callbacks:
            getattr(cb, hook)(self, *args)

    def fit(self):
        for self.epoch in range(self.max_epochs):
            self.call("on_epoch_start")
            for x, y in self.loader:
                loss = nn.functional.mse_loss(self.net(x).mean(1).squeeze(-1), y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                self.call("on_step_end", loss.detach())
            self.call("on_epoch_end")


def run():
    torch.manual_seed(0)
    data = Variants()
    batches = SameLengthBatchSampler(data.lengths, 6, dist.get_world_size(), dist.get_rank(), seed=4)
    loader = DataLoader(data, batch_sampler=batches)
    net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
    Trainer(net, loader, [ShuffleEachEpoch(), LossMeter()], max_epochs=3, lr=0.05).fit()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    run()
    dist.destroy_process_group()
