"""Block-draft training: anchors are drawn inside each sequence, a block follows each anchor."""
import functools

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

BLOCK, VOCAB, WIDTH = 6, 18, 32


class NoValidAnchorsError(ValueError):
    """Every sequence of the micro-batch is too short for one block."""


class BlockDrafter(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, WIDTH)
        self.mix = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.SiLU())
        self.heads = nn.Linear(WIDTH, BLOCK * VOCAB)

    def forward(self, anchors):
        return self.heads(self.mix(self.tok(anchors))).view(-1, BLOCK, VOCAB)


def corpus(rank, n_batches):
    g = torch.Generator().manual_seed(77 + rank)
    for b in range(n_batches):
        lengths = torch.randint(3, 30, (4,), generator=g)
        if rank == 1 and b == 4:
            lengths = lengths.clamp(max=BLOCK)
        yield [(torch.arange(int(n)) * 2 + int(torch.randint(0, VOCAB, (1,), generator=g))) % VOCAB for n in lengths]


def pick_anchors(seqs, per_seq=3):
    ctx, blocks = [], []
    for s in seqs:
        room = len(s) - BLOCK
        for a in range(0, max(room, 0), max(room // per_seq, 1)):
            ctx.append(s[a])
            blocks.append(s[a + 1:a + 1 + BLOCK])
    if not ctx:
        raise NoValidAnchorsError("no sequence is longer than a block")
    return torch.stack(ctx), torch.stack(blocks)


def usable_everywhere(seqs):
    ok = torch.tensor(int(any(len(s) > BLOCK for s in seqs)))
    dist.all_reduce(ok, op=dist.ReduceOp.MIN)
    return bool(ok.item())


def block_loss(model, seqs):
    anchors, targets = pick_anchors(seqs)
    logits = model(anchors)
    per_token = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
    n = torch.tensor(float(per_token.numel()))
    dist.all_reduce(n)
    return per_token.sum() * dist.get_world_size() / n


def optimizer_step(opt, value):
    opt.zero_grad(set_to_none=True)
    value.backward()
    opt.step()


def fit(n_batches=10):
    rank = dist.get_rank()
    torch.manual_seed(5)
    model = DDP(BlockDrafter())
    step = functools.partial(optimizer_step, torch.optim.AdamW(model.parameters(), lr=5e-3))
    done = skipped = 0
    for seqs in corpus(rank, n_batches):
        if not usable_everywhere(seqs):
            skipped += 1
            continue
        step(block_loss(model, seqs))
        done += 1
    dist.barrier()
    print(f"rank {rank}: {done} steps, {skipped} skipped", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    fit()
    dist.destroy_process_group()
