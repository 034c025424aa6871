import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

PARAMS = {"feat": 12, "dim": 32, "vocab": 9, "epochs": 3, "batch_size": 8, "att_rate": 0.7, "lr": 3e-3}


class AsrModel(nn.Module):
    def __init__(self, feat, dim, vocab):
        super().__init__()
        self.encoder = nn.GRU(feat, dim, batch_first=True)
        self.frame_out = nn.Linear(dim, vocab)
        self.token_emb = nn.Embedding(vocab, dim)
        self.decoder = nn.GRU(dim, dim, batch_first=True)
        self.token_out = nn.Linear(dim, vocab)

    def forward_encoder(self, x):
        memory, last = self.encoder(x)
        return self.frame_out(memory), last

    def forward_decoder(self, last, tokens):
        inp = F.pad(tokens[:, :-1], (1, 0))
        h, _ = self.decoder(self.token_emb(inp), last)
        return self.token_out(h)

    def forward(self, x, tokens):
        frame_logits, last = self.forward_encoder(x)
        return frame_logits, self.forward_decoder(last, tokens)


def make_dataset(n=192, length=10):
    g = torch.Generator().manual_seed(0)
    tokens = torch.randint(1, PARAMS["vocab"], (n, length), generator=g)
    feats = F.one_hot(tokens, PARAMS["feat"]).float() + 0.3 * torch.randn(n, length, PARAMS["feat"], generator=g)
    return TensorDataset(feats, tokens)


def compute_loss(model, batch):
    feats, tokens = batch
    frame_logits, token_logits = model(feats, tokens)
    frame_loss = F.cross_entropy(frame_logits.flatten(0, 1), tokens.flatten())
    att_loss = F.cross_entropy(token_logits.flatten(0, 1), tokens.flatten())
    return (1.0 - PARAMS["att_rate"]) * frame_loss + PARAMS["att_rate"] * att_loss


def train_one_epoch(model, optimizer, loader):
    model.train()
    total = 0.0
    for batch in loader:
        loss = compute_loss(model, batch)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        total += loss.item()
    return total / len(loader)


def run(rank, world_size, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    torch.manual_seed(20)
    dataset = make_dataset()
    sampler = DistributedSampler(dataset, shuffle=True)
    loader = DataLoader(dataset, batch_size=PARAMS["batch_size"], sampler=sampler)
    model = DDP(AsrModel(PARAMS["feat"], PARAMS["dim"], PARAMS["vocab"]))
    optimizer = torch.optim.Adam(model.parameters(), lr=PARAMS["lr"])
    for epoch in range(PARAMS["epochs"]):
        sampler.set_epoch(epoch)
        loss = torch.tensor(train_one_epoch(model, optimizer, loader))
        dist.all_reduce(loss)
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item() / world_size:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(run, args=(2, port), nprocs=2)
