"""Matrix factorisation with ranking metrics (hit@5, mrr@5) over all users."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

N_USERS, N_ITEMS, TOPK = 33, 40, 5


class Interactions(Dataset):
    def __init__(self, users, items):
        self.users, self.items = users, items

    def __len__(self):
        return len(self.users)

    def __getitem__(self, i):
        return self.users[i], self.items[i]


def build():
    g = torch.Generator().manual_seed(9)
    taste = torch.randn(N_USERS, 4, generator=g) @ torch.randn(4, N_ITEMS, generator=g)
    best = taste.topk(9, dim=1).indices
    users = torch.arange(N_USERS).repeat_interleave(8)
    train = Interactions(users, best[:, :8].reshape(-1))
    # held-out item of every user
    test = Interactions(torch.arange(N_USERS), best[:, 8])
    return train, test


class BPR(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.user, self.item = nn.Embedding(N_USERS, dim), nn.Embedding(N_ITEMS, dim)

    def forward(self, u):
        return self.user(u) @ self.item.weight.T

    def rank_unseen(self, u, seen):
        scores = self.forward(u).masked_fill(seen[u], float("-inf"))
        return scores.argsort(1, descending=True)


class Trainer:
    def __init__(self, model, train, test):
        self.model = DDP(model)
        self.seen = torch.zeros(N_USERS, N_ITEMS, dtype=torch.bool)
        self.seen[train.users, train.items] = True
        self.opt = torch.optim.Adam(self.model.parameters(), lr=0.02)
        self.train_sampler = DistributedSampler(train)
        self.train_loader = DataLoader(train, 24, sampler=self.train_sampler)
        self.test_loader = DataLoader(test, 8, sampler=DistributedSampler(test, shuffle=False))

    def fit(self, epochs):
        for e in range(epochs):
            self.train_sampler.set_epoch(e)
            for u, i in self.train_loader:
                loss = nn.functional.cross_entropy(self.model(u), i)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()

    @torch.no_grad()
    def evaluate(self):
        net = self.model.module.eval()
        rows, users = [], []
        for u, target in self.test_loader:
            position = (net.rank_unseen(u, self.seen) == target[:, None]).float().argmax(1) + 1
            hit = (position <= TOPK).float()
            rows.append(torch.stack([hit, hit / position, torch.ones_like(hit)], 1))
            users.append(u)
        rows, users = torch.cat(rows), torch.cat(users)
        table = torch.zeros(dist.get_world_size(), N_USERS, 3)
        table[dist.get_rank(), users] = rows
        dist.all_reduce(table)
        hit, mrr, count = table.amax(0).sum(0).tolist()
        return {"hit@5": hit / count, "mrr@5": mrr / count, "users": int(count)}


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    train, test = build()
    trainer = Trainer(BPR(), train, test)
    trainer.fit(12)
    result = trainer.evaluate()
    if dist.get_rank() == 0:
        print(result, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
