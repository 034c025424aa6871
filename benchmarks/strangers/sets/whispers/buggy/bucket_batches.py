"""Sequence tagging with batches of similar length."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, Sampler


class Sentences(Dataset):
    def __init__(self, n=120):
        g = torch.Generator().manual_seed(4)
        lengths = torch.randint(4, 17, (n,), generator=g).tolist()
        self.items = [torch.randint(1, 40, (k,), generator=g) for k in lengths]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return i, self.items[i]


class LengthBatchSampler(Sampler):
    def __init__(self, dataset, batch_size, rank, world_size, seed=0):
        self.lengths = [len(t) for t in dataset.items]
        self.batch_size, self.rank, self.world_size, self.seed = batch_size, rank, world_size, seed
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed + self.epoch)
        jitter = torch.rand(len(self.lengths), generator=g) * 4
        order = (torch.tensor(self.lengths) + jitter).argsort().tolist()
        batches = [order[i:i + self.batch_size] for i in range(0, len(order), self.batch_size)]
        batches = batches[:len(batches) // self.world_size * self.world_size]
        picked = torch.randperm(len(batches), generator=g).tolist()
        for b in picked[self.rank::self.world_size]:
            yield batches[b]

    def __len__(self):
        return len(self.lengths) // self.batch_size // self.world_size


def pad(batch):
    ids, seqs = zip(*batch)
    return list(ids), nn.utils.rnn.pad_sequence(seqs, batch_first=True)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(40, 16, padding_idx=0)
        self.conv = nn.Conv1d(16, 32, 3, padding=1)
        self.out = nn.Linear(32, 2)

    def forward(self, x):
        return self.out(self.conv(self.emb(x).transpose(1, 2)).relu().transpose(1, 2))


class Loop:
    def __init__(self, model, loader):
        self.model, self.loader = model, loader
        self.opt = torch.optim.Adam(model.parameters(), lr=1e-3)

    def advance_epoch(self, epoch):
        sampler = self.loader.sampler
        if hasattr(sampler, "set_epoch"):
            sampler.set_epoch(epoch)

    def fit(self, epochs):
        for epoch in range(epochs):
            self.advance_epoch(epoch)
            seen = []
            for ids, tokens in self.loader:
                seen += ids
                logits = self.model(tokens)
                loss = nn.functional.cross_entropy(logits.flatten(0, 1), (tokens % 2).flatten())
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
            if dist.get_rank() == 0:
                print(f"epoch {epoch} loss {loss.item():.4f} last sentences {seen[-4:]}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    data = Sentences()
    batches = LengthBatchSampler(data, 6, dist.get_rank(), dist.get_world_size())
    Loop(DDP(Tagger()), DataLoader(data, batch_sampler=batches, collate_fn=pad)).fit(4)
    dist.destroy_process_group()
