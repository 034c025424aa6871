"""Sequence tagging with ragged sentences."""
import argparse

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from corpus import TagCorpus, pad_batch
from losses import tagging_loss


class Tagger(torch.nn.Module):
    def __init__(self, vocab, tags, dim=32):
        super().__init__()
        self.emb = torch.nn.Embedding(vocab, dim, padding_idx=0)
        self.enc = torch.nn.GRU(dim, dim, batch_first=True, bidirectional=True)
        self.out = torch.nn.Linear(2 * dim, tags)

    def forward(self, tokens):
        return self.out(self.enc(self.emb(tokens))[0])


def train(args):
    rank = dist.get_rank()
    torch.manual_seed(args.seed)
    corpus = TagCorpus(args.n_sents)
    sampler = DistributedSampler(corpus, seed=args.seed)
    loader = DataLoader(corpus, args.batch_size, sampler=sampler, collate_fn=pad_batch, drop_last=True)
    model = DDP(Tagger(corpus.vocab, corpus.n_tags))
    opt = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        nll = torch.zeros(2)
        for step, (tokens, tags, mask) in enumerate(loader):
            loss, loss_sum = tagging_loss(model(tokens), tags, mask)
            opt.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
            opt.step()
            nll += torch.stack([loss_sum.detach(), mask.sum()])
        dist.all_reduce(nll)
        if rank == 0:
            print(f"epoch {epoch} token nll {nll[0] / nll[1]:.4f} over {int(nll[1])} tokens")
    if rank == 0:
        torch.save(model.module.state_dict(), "tagger.pt")


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--n-sents", type=int, default=256)
    ap.add_argument("--batch-size", type=int, default=4)
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--lr", type=float, default=0.1)
    ap.add_argument("--clip", type=float, default=5.0)
    ap.add_argument("--seed", type=int, default=3)
    dist.init_process_group("gloo")
    train(ap.parse_args())
    dist.barrier()
    dist.destroy_process_group()
