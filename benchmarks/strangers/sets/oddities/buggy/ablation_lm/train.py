import argparse
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from keeper import SnapshotKeeper


def char_data(n=4000, vocab=24, seed=17):
    g = torch.Generator().manual_seed(seed)
    table = torch.randint(0, vocab, (vocab,), generator=g)
    out = [0]
    coin = torch.rand(n, generator=g)
    for i in range(n - 1):
        out.append(int(table[out[-1]]) if coin[i] < 0.7 else int(coin[i] * 997) % vocab)
    return torch.tensor(out)


class CharLM(nn.Module):
    def __init__(self, vocab=24, dim=48):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.mix = nn.Linear(2 * dim, dim)
        self.out = nn.Linear(dim, vocab)

    def forward(self, tok):
        e = self.emb(tok)
        prev = torch.cat([torch.zeros_like(e[:, :1]), e[:, :-1]], 1)
        return self.out(torch.tanh(self.mix(torch.cat([e, prev], -1))))


def batches(stream, rank, steps, bs=8, ctx=16):
    g = torch.Generator().manual_seed(500 + rank)
    for _ in range(steps):
        at = torch.randint(0, len(stream) - ctx - 1, (bs,), generator=g)
        win = torch.stack([stream[a:a + ctx + 1] for a in at.tolist()])
        yield win[:, :-1], win[:, 1:]


def shared_dir():
    box = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(box, src=0)
    return box[0]


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--out")
    cli.add_argument("--steps", type=int, default=40)
    cli.add_argument("--save-every", type=int, default=5)
    cli.add_argument("--keep", type=int, default=2)
    opt = cli.parse_args()

    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DDP(CharLM())
    optim = torch.optim.Adam(model.parameters(), lr=5e-3)
    keeper = SnapshotKeeper(opt.out or shared_dir(), opt.keep)
    for step, (x, y) in enumerate(batches(char_data(), dist.get_rank(), opt.steps), start=1):
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        optim.zero_grad()
        loss.backward()
        optim.step()
        if step % opt.save_every == 0:
            keeper.write(step, model.module.state_dict())
            if dist.get_rank() == 0:
                print(step, round(loss.item(), 4), flush=True)
    dist.destroy_process_group()
