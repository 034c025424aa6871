"""Train a multi-position draft head; per-position losses and accuracies are logged for the whole job."""
import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Draft(nn.Module):
    def __init__(self, vocab=40, dim=24, positions=12):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.heads = nn.ModuleList(nn.Linear(dim, vocab) for _ in range(positions))

    def forward(self, tok):
        h = self.emb(tok).tanh()
        return [head(h) for head in self.heads]


def compute_metrics(outputs, tok, vocab=40):
    losses, metrics = [], {}
    for k, logits in enumerate(outputs):
        target = (tok + k + 1) % vocab
        losses.append(F.cross_entropy(logits, target))
        hits = (logits.argmax(-1) == target).sum()
        metrics[f"position_{k}/loss"] = losses[-1].detach() * len(tok)
        metrics[f"position_{k}/hits"] = hits.float()
        metrics[f"position_{k}/count"] = torch.tensor(float(len(tok)))
    return torch.stack(losses).mean(), metrics


class Trainer:
    def __init__(self, args):
        self.args = args
        self.rank = int(os.environ["RANK"])
        torch.manual_seed(0)
        self.model = DistributedDataParallel(Draft())
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=5e-3)
        self.gen = torch.Generator().manual_seed(self.rank)

    def reduce_metrics(self, metrics):
        table = torch.stack(list(metrics.values()))
        dist.all_reduce(table, op=dist.ReduceOp.SUM)
        return dict(zip(metrics, table.tolist()))

    def log(self, step, m):
        if self.rank == 0 and step % self.args.log_freq == 0:
            acc = [m[f"position_{k}/hits"] / m[f"position_{k}/count"] for k in range(12)]
            print(f"step {step} accuracy " + " ".join(f"{a:.2f}" for a in acc), flush=True)

    def train(self):
        start = time.perf_counter()
        for step in range(1, self.args.steps + 1):
            tok = torch.randint(0, 40, (32,), generator=self.gen)
            loss, metrics = compute_metrics(self.model(tok), tok)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            if step % self.args.log_freq == 0:
                self.log(step, self.reduce_metrics(metrics))
        if self.rank == 0:
            print(f"{self.args.steps / (time.perf_counter() - start):.1f} steps/s", flush=True)


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=100)
    p.add_argument("--log-freq", type=int, default=50)
    dist.init_process_group("gloo")
    Trainer(p.parse_args()).train()
    dist.destroy_process_group()
