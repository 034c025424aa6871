"""Toy captioner; greedy decoding on the validation set after every epoch."""
import os
import socket
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

VOCAB, LENGTH, WORLD, EPOCHS = 40, 12, 2, 2


class Captioner(nn.Module):
    def __init__(self, d=64):
        super().__init__()
        self.img = nn.Linear(20, d)
        self.tok = nn.Embedding(VOCAB, d)
        self.cell = nn.GRUCell(d, d)
        self.out = nn.Linear(d, VOCAB)

    def forward(self, image, caption):
        h, logits = torch.tanh(self.img(image)), []
        for t in range(LENGTH):
            inp = self.tok(caption[:, t - 1]) if t else torch.zeros_like(h)
            h = self.cell(inp, h)
            logits.append(self.out(h))
        return torch.stack(logits, 1)

    @torch.no_grad()
    def greedy(self, image):
        h, inp, words = torch.tanh(self.img(image)), None, []
        for t in range(LENGTH):
            h = self.cell(torch.zeros_like(h) if inp is None else self.tok(inp), h)
            inp = self.out(h).argmax(-1)
            words.append(inp)
        return torch.stack(words, 1)


def captions(n, seed):
    g = torch.Generator().manual_seed(seed)
    key = torch.randint(0, 8, (n,), generator=g)
    image = nn.functional.one_hot(key, 20).float() + 0.1 * torch.randn(n, 20, generator=g)
    return TensorDataset(image, (key[:, None] * 5 + torch.arange(LENGTH)) % VOCAB)


def evaluate(net, val_set, rank):
    result = torch.zeros(2)
    if rank == 0:
        net.eval()
        for image, caption in DataLoader(val_set, batch_size=1):
            result += torch.tensor([(net.greedy(image) == caption).sum().item(), caption.numel()])
    dist.barrier()
    dist.broadcast(result, src=0)
    return (result[0] / result[1]).item()


def worker(rank, port):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(port)
    dist.init_process_group("gloo", rank=rank, world_size=WORLD)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    train_set, val_set = captions(320, 1), captions(1200, 2)
    sampler = DistributedSampler(train_set, WORLD, rank)
    loader = DataLoader(train_set, 16, sampler=sampler)
    model = DDP(Captioner())
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        model.train()
        t0 = time.time()
        for image, caption in loader:
            loss = nn.functional.cross_entropy(model(image, caption).flatten(0, 1), caption.flatten())
            opt.zero_grad()
            loss.backward()
            opt.step()
        t1 = time.time()
        acc = evaluate(model.module, val_set, rank)
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.3f} word_acc {acc:.3f} "
                  f"train {t1 - t0:.1f}s eval {time.time() - t1:.1f}s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    mp.spawn(worker, args=(port,), nprocs=WORLD)
