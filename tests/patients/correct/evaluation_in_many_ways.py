# style: Trainer class; whole set on every rank, bare module on rank 0, gathered uneven shards
# nproc: 3
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, Subset, TensorDataset


def make_data(n, seed):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 6, generator=generator)
    return TensorDataset(x, (x[:, 0] > x[:, 1]).long())


class Trainer:
    def __init__(self):
        self.rank, self.world_size = dist.get_rank(), dist.get_world_size()
        torch.manual_seed(0)
        train, self.valid = make_data(60, 0), make_data(31, 1)
        self.sampler = DistributedSampler(train, drop_last=True)
        self.train_loader = DataLoader(train, batch_size=5, sampler=self.sampler)
        self.model = DDP(nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 2)))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-2)
        self.best = 0.0

    def train_epoch(self, epoch):
        self.sampler.set_epoch(epoch)
        self.model.train()
        for x, y in self.train_loader:
            self.optimizer.zero_grad()
            nn.functional.cross_entropy(self.model(x), y).backward()
            self.optimizer.step()

    @torch.no_grad()
    def predict(self, loader):
        self.model.eval()
        return [(self.model.module(x).argmax(dim=1) == y).float() for x, y in loader]

    def accuracy_on_every_rank(self):
        hits = torch.cat(self.predict(DataLoader(self.valid, batch_size=8)))
        return hits.mean().item()

    def accuracy_on_rank_0(self):
        if self.rank != 0:
            return None
        return torch.cat(self.predict(DataLoader(self.valid, batch_size=16))).mean().item()

    def accuracy_of_uneven_shards(self):
        own = Subset(self.valid, range(self.rank, len(self.valid), self.world_size))
        local = torch.cat(self.predict(DataLoader(own, batch_size=2))).tolist()
        gathered = [None] * self.world_size
        dist.all_gather_object(gathered, local)
        hits = [hit for part in gathered for hit in part]
        assert len(hits) == len(self.valid)
        return sum(hits) / len(hits)

    def fit(self, epochs):
        for epoch in range(epochs):
            self.train_epoch(epoch)
            everywhere = self.accuracy_on_every_rank()
            alone = self.accuracy_on_rank_0()
            together = self.accuracy_of_uneven_shards()
            if alone is not None:
                assert abs(alone - together) < 1e-6
                print(f"epoch {epoch}: {everywhere:.3f} {alone:.3f} {together:.3f}")
                if together >= self.best:
                    self.best = together
                    torch.save(self.model.module.state_dict(), "best.pt")
        dist.barrier()


def main():
    dist.init_process_group("gloo")
    Trainer().fit(epochs=3)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
