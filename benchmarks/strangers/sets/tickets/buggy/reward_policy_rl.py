"""Policy gradient on a toy text task; responses are grouped into micro batches by tokens."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

VOCAB = 32
PAD = 0


# ---- sequence length balancing -------------------------------------------------

def ceil_div(a, b):
    return -(-a // b)


def get_partitions(lengths, k):
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    bins, load = [[] for _ in range(k)], [0] * k
    for i in order:
        j = load.index(min(load))
        bins[j].append(i)
        load[j] += lengths[i]
    return bins


def prepare_dynamic_batch(batch, max_token_len, group=None, same_num=True):
    """Splits a batch such that no part has (much) more than max_token_len tokens."""
    lengths = (batch["ids"] != PAD).sum(1).tolist()
    num = min(len(lengths), max(1, ceil_div(sum(lengths), max_token_len)))
    if dist.is_initialized() and same_num and group is not None:
        t = torch.tensor([num])
        dist.all_reduce(t, op=dist.ReduceOp.MAX, group=group)
        num = int(t)
    parts = get_partitions(lengths, num)
    return [{k: v[idx] for k, v in batch.items()} for idx in parts]


# ---- actor ----------------------------------------------------------------------

class Policy(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.lm = nn.Linear(dim, VOCAB)

    def forward(self, ids):
        logp = F.log_softmax(self.lm(self.rnn(self.emb(ids[:, :-1]))[0]), -1)
        return logp.gather(-1, ids[:, 1:].unsqueeze(-1)).squeeze(-1)


class Actor:
    def __init__(self, max_token_len):
        self.net = DDP(Policy())
        self.opt = torch.optim.Adam(self.net.parameters(), lr=3e-3)
        self.max_token_len = max_token_len

    def update(self, batch):
        micro_batches = prepare_dynamic_batch(batch, self.max_token_len)
        self.opt.zero_grad()
        total = len(batch["ids"])
        out = 0.0
        for mb in micro_batches:
            logp = self.net(mb["ids"])
            mask = (mb["ids"][:, 1:] != PAD).float()
            per_seq = (logp * mask).sum(1) / mask.sum(1).clamp(min=1)
            loss = -(per_seq * mb["adv"]).sum() / total
            loss.backward()
            out += loss.item()
        self.opt.step()
        return out


def rollout(step, rank, n=24, longest=40):
    g = torch.Generator().manual_seed(100 * step + rank)
    ids = torch.zeros(n, longest, dtype=torch.long)
    for row in range(n):
        length = int(4 + torch.randint(0, longest - 4, (1,), generator=g))
        ids[row, :length] = torch.randint(1, VOCAB, (length,), generator=g)
    reward = (ids % 2 == 0).float().mean(1)
    return {"ids": ids, "adv": (reward - reward.mean()) / (reward.std() + 1e-6)}


def main(steps=40):
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    actor = Actor(max_token_len=64)
    for step in range(steps):
        loss = actor.update(rollout(step, dist.get_rank()))
        dist.barrier()  # the next rollout reads the new weights
        if dist.get_rank() == 0 and step % 10 == 0:
            print(f"step {step} loss {loss:+.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
