"""Masked language model on protein sequences, batches by token budget."""
import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

from protein_tokens_lib.batching import TokenBatchSampler

PAD, MASK, VOCAB = 0, 1, 22


class Sequences(Dataset):
    def __init__(self, count):
        g = torch.Generator().manual_seed(17)
        self.lengths = (10 + 60 * torch.rand(count, generator=g) ** 3).int().tolist()
        self.items = [torch.randint(2, VOCAB, (n,), generator=g) for n in self.lengths]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(seqs):
    target = pad_sequence(seqs, batch_first=True, padding_value=PAD)
    src = target.clone()
    src[:, ::7] = MASK
    return src, target


class ByteNet(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim)
        self.conv1 = nn.Conv1d(dim, dim, 5, padding=2)
        self.conv2 = nn.Conv1d(dim, dim, 5, padding=4, dilation=2)
        self.head = nn.Linear(dim, VOCAB)

    def forward(self, x):
        h = self.emb(x).transpose(1, 2)
        h = h + torch.relu(self.conv1(h))
        h = h + torch.relu(self.conv2(h))
        return self.head(h.transpose(1, 2))


def run_epoch(model, loader, optimizer):
    world = dist.get_world_size()
    for src, target in loader:
        masked = torch.zeros_like(target, dtype=torch.bool)
        masked[:, ::7] = True
        masked &= target != PAD
        count = masked.sum().float()
        dist.all_reduce(count)
        logits = model(src)
        loss = nn.functional.cross_entropy(logits[masked], target[masked], reduction="sum") * world / count
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.barrier()


def train(args):
    rank, world = dist.get_rank(), dist.get_world_size()
    data = Sequences(args.num_seqs)
    sampler = TokenBatchSampler(data.lengths, args.max_tokens, rank, world, seed=args.seed)
    loader = DataLoader(data, batch_sampler=sampler, collate_fn=collate)
    torch.manual_seed(args.seed)
    model = DDP(ByteNet(args.dim))
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        run_epoch(model, loader, optimizer)
        if rank == 0:
            print(f"epoch {epoch} finished", flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--num-seqs", type=int, default=240)
    p.add_argument("--max-tokens", type=int, default=160)
    p.add_argument("--dim", type=int, default=16)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--seed", type=int, default=5)
    args = p.parse_args()
    dist.init_process_group("gloo")
    train(args)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
