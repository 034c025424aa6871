"""Chord progression model; pieces differ in length, the loss counts every chord alike."""
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.nn.utils.rnn import pad_sequence

CHORDS, PAD = 24, -1


def pieces(rank, step, n=6):
    g = torch.Generator().manual_seed(1_000 * step + rank)
    out = []
    for _ in range(n):
        length = int(torch.randint(5, 20, (1,), generator=g))
        start = int(torch.randint(0, CHORDS, (1,), generator=g))
        hop = torch.randint(0, 2, (length,), generator=g) * 2 + 5
        out.append((start + hop.cumsum(0)) % CHORDS)
    return pad_sequence(out, batch_first=True, padding_value=PAD)


class ChordNet(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.emb = nn.Embedding(CHORDS, d)
        self.rnn = nn.GRU(d, d, batch_first=True)
        self.out = nn.Linear(d, CHORDS)

    def forward(self, ids):
        return self.out(self.rnn(self.emb(ids.clamp(min=0)))[0])


def reduce_metrics(**values):
    names = sorted(values)
    flat = torch.stack([values[k].detach().float() for k in names])
    dist.all_reduce(flat)
    return dict(zip(names, flat))


def training_step(model, batch):
    logits = model(batch[:, :-1])
    target = batch[:, 1:]
    nll = F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=PAD, reduction="sum")
    totals = reduce_metrics(nll=nll, tokens=(target != PAD).sum())
    if totals["tokens"] == 0:
        return None, totals
    loss = nll * dist.get_world_size() / totals["tokens"]
    return loss, totals


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(ChordNet())
    opt = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    for step in range(60):
        loss, totals = training_step(model, pieces(rank, step))
        if loss is None:
            continue
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0 and step % 15 == 14:
            print(f"step {step + 1} nll per chord {(totals['nll'] / totals['tokens']).item():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
