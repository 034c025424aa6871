"""Click prediction with sparse and dense features; a day of the log for each process to test on (DLRM script)."""
import argparse
import sys

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from sklearn import metrics
from torch.nn.parallel import DistributedDataParallel as DDP

SHARED = np.random.RandomState(0)
TABLES = [30, 50, 20]
EFFECT = [SHARED.normal(0, 0.8, n) for n in TABLES]
DENSE_W = SHARED.normal(0, 0.5, 4)


def dash_separated_ints(value):
    return [int(v) for v in value.split("-")]


def make_log(n, seed, base_rate):
    """Clicks of one day; some days have far more clicks than others."""
    rng = np.random.RandomState(seed)
    x = rng.normal(size=(n, 4)) + [base_rate / 2, 0, 0, 0]
    idx = np.stack([rng.randint(0, size, n) for size in TABLES])
    logit = x @ DENSE_W + sum(e[i] for e, i in zip(EFFECT, idx)) + base_rate
    y = (rng.uniform(size=n) < 1 / (1 + np.exp(-logit))).astype(np.float32)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(idx), torch.tensor(y)


class DLRM_Net(nn.Module):
    def __init__(self, m_spa, ln_bot, ln_top):
        super().__init__()
        self.emb_l = nn.ModuleList(nn.Embedding(n, m_spa) for n in TABLES)
        for e in self.emb_l:
            nn.init.uniform_(e.weight, -0.1, 0.1)
        self.bot_l, self.top_l = self.create_mlp(ln_bot), self.create_mlp(ln_top)

    @staticmethod
    def create_mlp(ln):
        layers = nn.ModuleList()
        for i, (n, m) in enumerate(zip(ln, ln[1:])):
            layers.append(nn.Linear(n, m))
            if i < len(ln) - 2:
                layers.append(nn.ReLU())
        return nn.Sequential(*layers)

    def interact_features(self, x, ly):
        t = torch.stack([x] + ly, 1)
        z = t @ t.transpose(1, 2)
        li, lj = torch.tril_indices(t.shape[1], t.shape[1], -1)
        return torch.cat([x, z[:, li, lj]], 1)

    def forward(self, dense_x, lS_i):
        ly = [e(i) for e, i in zip(self.emb_l, lS_i)]
        return self.top_l(self.interact_features(self.bot_l(dense_x), ly)).squeeze(1)


def all_gather_rows(value):
    """Rows of all processes, which have the same number of them."""
    parts = [torch.empty_like(value) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, value.contiguous())
    return torch.cat(parts)


@torch.no_grad()
def inference(args, dlrm, test_ld):
    """Accuracy and area under the curve on the test days."""
    scores, targets, correct = [], [], torch.zeros(2)
    for X, lS_i, T in test_ld:
        Z = torch.sigmoid(dlrm(X, lS_i))
        correct += torch.tensor([((Z > 0.5).float() == T).sum(), len(T)])
        scores.append(Z)
        targets.append(T)
    dist.all_reduce(correct)
    scores, targets = all_gather_rows(torch.cat(scores)), all_gather_rows(torch.cat(targets))
    auc = metrics.roc_auc_score(targets.numpy(), scores.numpy())
    return (correct[0] / correct[1]).item(), auc


def batches(log, size, order=None):
    X, lS_i, T = log
    order = torch.arange(len(T)) if order is None else order
    return [(X[i], lS_i[:, i], T[i]) for i in order.split(size)]


def run():
    parser = argparse.ArgumentParser(description="Train a small recommendation model")
    parser.add_argument("--arch-sparse-feature-size", type=int, default=8)
    parser.add_argument("--arch-mlp-bot", type=dash_separated_ints, default="4-16-8")
    parser.add_argument("--arch-mlp-top", type=dash_separated_ints, default="14-16-1")
    parser.add_argument("--mini-batch-size", type=int, default=64)
    parser.add_argument("--learning-rate", type=float, default=0.01)
    parser.add_argument("--nepochs", type=int, default=4)
    parser.add_argument("--auc-threshold", type=float, default=0.9)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(123)
    dlrm = DLRM_Net(args.arch_sparse_feature_size, args.arch_mlp_bot, args.arch_mlp_top)
    dlrm_wrap = DDP(dlrm)
    optimizer = torch.optim.Adagrad(dlrm_wrap.parameters(), lr=args.learning_rate)
    loss_fn = nn.BCEWithLogitsLoss()
    days = [make_log(1600, 10 + d, base_rate=(-1.5, 1.5)[d % 2]) for d in range(size)]
    log = [torch.cat(p, -1 if p[0].dtype == torch.int64 else 0) for p in zip(*days)]
    test_ld = batches(make_log(512, 90 + rank, base_rate=(-1.5, 1.5)[rank % 2]), 128)
    best_auc = 0.0
    for k in range(args.nepochs):
        order = torch.randperm(len(log[2]), generator=torch.Generator().manual_seed(k))[rank::size]
        total = torch.zeros(2)
        for X, lS_i, T in batches(log, args.mini_batch_size, order):
            E = loss_fn(dlrm_wrap(X, lS_i), T)
            optimizer.zero_grad()
            E.backward()
            optimizer.step()
            total += torch.tensor([E.item() * len(T), len(T)])
        dist.all_reduce(total)
        acc, auc = inference(args, dlrm, test_ld)
        best_auc = max(best_auc, auc)
        if rank == 0:
            print(f"epoch {k} loss {total[0] / total[1]:.4f} accuracy {acc * 100:.2f} % auc {auc:.4f} best {best_auc:.4f}",
                  flush=True)
        if auc > args.auc_threshold:
            if rank == 0:
                print(f"AUC threshold {args.auc_threshold} reached", file=sys.stderr)
            break
    dist.barrier()
    del dlrm_wrap
    dist.destroy_process_group()


if __name__ == "__main__":
    run()
