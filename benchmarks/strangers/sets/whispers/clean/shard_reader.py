"""Pre-training from shards: the order of the documents depends on seed, epoch, rank and worker."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class ShardedDocuments(IterableDataset):
    def __init__(self, n_docs, dp_rank, dp_size, seed=0):
        self.n_docs, self.dp_rank, self.dp_size, self.seed = n_docs, dp_rank, dp_size, seed
        self._epoch = 0
        table = torch.randn(n_docs, 12, generator=torch.Generator().manual_seed(1))
        self.docs = table

    def set_epoch(self, epoch):
        self._epoch = epoch

    def __iter__(self):
        info = get_worker_info()
        workers, wid = (info.num_workers, info.id) if info else (1, 0)
        g = torch.Generator().manual_seed(self.seed * 1_000_003 + self._epoch)
        order = torch.randperm(self.n_docs, generator=g)
        mine = order[self.dp_rank * workers + wid::self.dp_size * workers]
        for i in mine.tolist():
            yield i, self.docs[i]


class DistributedLoader:
    def __init__(self, dataset, batch_size, num_workers):
        self.dataset = dataset
        self.loader = DataLoader(dataset, batch_size, num_workers=num_workers, drop_last=True,
                                 prefetch_factor=2)

    def set_epoch(self, epoch):
        self.dataset.set_epoch(epoch)

    def __iter__(self):
        return iter(self.loader)


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(12, 6), nn.Tanh(), nn.Linear(6, 12))

    def forward(self, x):
        return nn.functional.mse_loss(self.net(x), x)


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    loader = DistributedLoader(ShardedDocuments(128, rank, world), batch_size=8, num_workers=2)
    model = DDP(Autoencoder())
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(4):
        loader.set_epoch(epoch)
        seen, total = [], 0.0
        for ids, docs in loader:
            seen += ids.tolist()
            loss = model(docs)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        if rank == 0:
            print(f"epoch {epoch} loss {total / 8:.4f} documents {seen[:6]} ...", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
