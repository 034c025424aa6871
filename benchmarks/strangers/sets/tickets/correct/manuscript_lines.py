"""Line recogniser for manuscripts: frozen language head, checkpointed blocks, ragged outputs."""
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.checkpoint import checkpoint

WORLD, ACCUM = 2, 3


class Recogniser(nn.Module):
    def __init__(self, width=32, letters=20):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(3))
        self.letters = nn.Linear(width, letters)
        self.language = nn.Linear(width, 4).requires_grad_(False)

    def forward(self, x, with_language=False):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        if with_language:
            return self.letters(x), self.language(x)
        return self.letters(x)


def lines(g, n=8):
    length = int(torch.randint(5, 20, (1,), generator=g))
    y = torch.randint(0, 20, (n, length), generator=g)
    codes = torch.eye(20)[y] @ torch.randn(20, 32, generator=torch.Generator().manual_seed(0))
    return codes + 0.3 * torch.randn(codes.shape, generator=g), y


def gather_ragged(rows):
    """All ranks get the rows of all ranks, which may differ in number and length."""
    size = torch.tensor([rows.shape[0], rows.shape[1]])
    sizes = [torch.empty_like(size) for _ in range(WORLD)]
    dist.all_gather(sizes, size)
    top = torch.stack(sizes).amax(0).tolist()
    padded = torch.full(top, -1)
    padded[:rows.shape[0], :rows.shape[1]] = rows
    parts = [torch.empty_like(padded) for _ in range(WORLD)]
    dist.all_gather(parts, padded)
    return [p[:s[0], :s[1]] for p, s in zip(parts, sizes)]


def worker(rank, port):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", port
    dist.init_process_group("gloo", rank=rank, world_size=WORLD)
    torch.manual_seed(rank)
    net = DDP(Recogniser())
    opt = torch.optim.Adam([p for p in net.parameters() if p.requires_grad], lr=3e-3)
    g = torch.Generator().manual_seed(rank + 1)
    for step in range(40):
        opt.zero_grad()
        for k in range(ACCUM):
            x, y = lines(g)
            net.require_backward_grad_sync = k == ACCUM - 1
            loss = nn.functional.cross_entropy(net(x).flatten(0, 1), y.flatten())
            (loss / ACCUM).backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        x, y = lines(g, n=4 + 3 * rank)
        read = gather_ragged(net.module(x, with_language=True)[0].argmax(-1))
    if rank == 0:
        print(f"loss {loss.item():.3f}, read {[tuple(r.shape) for r in read]}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = str(s.getsockname()[1])
    mp.spawn(worker, args=(port,), nprocs=WORLD)
