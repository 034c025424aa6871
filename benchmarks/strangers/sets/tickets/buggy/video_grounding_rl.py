"""Advantage weighted regression on video clips and still images, token balanced micro batches."""
import torch
import torch.distributed as dist
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel as DDP

MAX_TOKENS = 128


def balanced_groups(lengths, k):
    groups, loads = [[] for _ in range(k)], [0] * k
    for i in sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True):
        j = min(range(k), key=loads.__getitem__)
        groups[j].append(i)
        loads[j] += lengths[i]
    return groups


def rearrange(samples):
    """Groups the samples of this worker such that each worker runs the same number of micro batches."""
    lengths = [len(s["tokens"]) for s in samples]
    count = torch.tensor([min(len(samples), -(-sum(lengths) // MAX_TOKENS))])
    dist.all_reduce(count, op=dist.ReduceOp.MAX)
    micro = []
    for group in balanced_groups(lengths, int(count)):
        tokens = torch.cat([samples[i]["tokens"] for i in group])
        owner = torch.cat([torch.full((lengths[i],), n) for n, i in enumerate(group)])
        adv = torch.stack([samples[i]["adv"] for i in group])
        span = torch.stack([samples[i]["span"] for i in group])
        micro.append((tokens, owner, adv, span))
    return micro


class Grounder(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(dim, 48), nn.GELU())
        self.span = nn.Linear(48, 2)

    def forward(self, tokens, owner, n):
        h = self.enc(tokens)
        size = torch.zeros(n).index_add(0, owner, torch.ones(len(owner))).clamp(min=1)
        return self.span(torch.zeros(n, h.shape[1]).index_add(0, owner, h) / size.unsqueeze(1))


class Worker:
    def __init__(self, dataset):
        self.rank = dist.get_rank()
        self.dataset = dataset
        torch.manual_seed(0)
        self.actor = DDP(Grounder())
        self.opt = optim.Adam(self.actor.parameters(), lr=2e-3)

    def update(self, step):
        samples = self.dataset(step, self.rank)
        self.opt.zero_grad()
        for tokens, owner, adv, span in rearrange(samples):
            pred = self.actor(tokens, owner, len(adv))
            loss = (adv.exp() * ((pred - span) ** 2).sum(1)).sum() / len(samples)
            loss.backward()
        self.opt.step()
        return loss.item()


def mixed_media(step, rank):
    g = torch.Generator().manual_seed(step * 7 + rank)
    out = []
    for _ in range(int(torch.randint(3, 10, (), generator=g))):
        is_video = torch.rand((), generator=g) < 0.25
        n = int(torch.randint(120, 260, (), generator=g)) if is_video else int(torch.randint(8, 24, (), generator=g))
        tokens = torch.randn(n, 16, generator=g)
        out.append({"tokens": tokens, "adv": torch.randn((), generator=g) * 0.3, "span": tokens[:, :2].mean(0)})
    return out


def main():
    dist.init_process_group("gloo")
    worker = Worker(mixed_media)
    for step in range(60):
        loss = worker.update(step)
        if worker.rank == 0 and step % 10 == 0:
            print(f"update {step} loss {loss:.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
