"""Scores documents of very different length; whoever is free takes the next one."""
import os
import socket
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn

N_DOCS = 40


def document(k):
    g = torch.Generator().manual_seed(k)
    return torch.randint(0, 90, (20 + (k * 37) % 400,), generator=g)


def counter(rank):
    box = [None]
    if rank == 0:
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            box = [s.getsockname()[1]]
    dist.broadcast_object_list(box, src=0)
    host = os.environ.get("MASTER_ADDR", "127.0.0.1")
    return dist.TCPStore(host, box[0], is_master=rank == 0, timeout=timedelta(seconds=60), wait_for_workers=False)


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(90, 32)
        self.rnn = nn.GRU(32, 32, batch_first=True)
        self.out = nn.Linear(32, 1)

    def forward(self, ids):
        _, h = self.rnn(self.emb(ids[None]))
        return self.out(h[-1]).sigmoid().item()


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    scorer = Scorer().eval()
    store = counter(rank)
    done = {}
    with torch.no_grad():
        while True:
            k = store.add("next", 1) - 1
            if k >= N_DOCS:
                break
            done[k] = scorer(document(k))
    every = [None] * world if rank == 0 else None
    dist.gather_object(done, every, dst=0)
    if rank == 0:
        merged = {}
        for part in every:
            merged.update(part)
        print(f"{len(merged)} documents, {sum(map(len, every))} scored, mean {sum(merged.values()) / len(merged):.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
