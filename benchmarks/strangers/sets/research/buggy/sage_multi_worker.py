"""Node classification with sampled neighbourhoods, one process per device."""
import argparse
import math
import os
import time

import torch as th
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel


class SAGEConv(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.self_fc, self.neigh_fc = nn.Linear(n_in, n_out), nn.Linear(n_in, n_out, bias=False)

    def forward(self, h_self, h_neigh):
        return self.self_fc(h_self) + self.neigh_fc(h_neigh.mean(1))


class SAGE(nn.Module):
    def __init__(self, n_in, n_hidden, n_classes):
        super().__init__()
        self.l1, self.l2 = SAGEConv(n_in, n_hidden), SAGEConv(n_hidden, n_classes)

    def forward(self, blocks):
        x0, x1, x2 = blocks
        h1 = F.relu(self.l1(x1.flatten(0, 1), x2.flatten(0, 1)))
        h0 = F.relu(self.l1(x0, x1))
        return self.l2(h0, h1.view(x1.shape[0], x1.shape[1], -1))


class NeighborSampler:
    def __init__(self, nbrs, feats, fanout, seed):
        self.nbrs, self.feats, self.fanout = nbrs, feats, fanout
        self.gen = th.Generator().manual_seed(seed)

    def pick(self, nodes):
        cols = th.randint(self.nbrs.shape[1], (*nodes.shape, self.fanout), generator=self.gen)
        return self.nbrs[nodes].gather(-1, cols)

    def sample(self, seeds):
        n1 = self.pick(seeds)
        n2 = self.pick(n1)
        return self.feats[seeds], self.feats[n1], self.feats[n2]


def batches(nids, size, gen):
    order = nids[th.randperm(len(nids), generator=gen)]
    for start in range(0, len(order), size):
        yield order[start:start + size]


def load_graph():
    g = th.Generator().manual_seed(11)
    n, classes = 400, 4
    label = th.randint(classes, (n,), generator=g)
    feats = F.one_hot(label, 12).float() + th.randn(n, 12, generator=g)
    same = th.stack([th.where(label == label[i])[0][th.randint(60, (8,), generator=g)] for i in range(n)])
    perm = th.randperm(n, generator=g)
    return feats, label, same, perm[:130], classes


def train(proc_id, n_procs, args, data):
    feats, label, nbrs, train_nid, n_classes = data
    train_nid = th.split(train_nid, math.ceil(len(train_nid) / n_procs))[proc_id]
    sampler = NeighborSampler(nbrs, feats, args.fan_out, 100 + proc_id)
    order_gen = th.Generator().manual_seed(200 + proc_id)
    th.manual_seed(0)
    model = DistributedDataParallel(SAGE(feats.shape[1], args.num_hidden, n_classes))
    optimizer = th.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.num_epochs):
        tic = time.time()
        for step, seeds in enumerate(batches(train_nid, args.batch_size, order_gen)):
            pred = model(sampler.sample(seeds))
            loss = F.cross_entropy(pred, label[seeds])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if proc_id == 0 and step % args.log_every == 0:
                print(f"Epoch {epoch:03d} | Step {step:03d} | local loss {loss.item():.4f}", flush=True)
        dist.barrier()
        if proc_id == 0:
            print(f"Epoch time {time.time() - tic:.3f}s", flush=True)


def run(proc_id, n_procs, args, data):
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "12391")
    dist.init_process_group("gloo", world_size=n_procs, rank=proc_id)
    train(proc_id, n_procs, args, data)
    dist.destroy_process_group()


if __name__ == "__main__":
    argparser = argparse.ArgumentParser("multi-worker training")
    argparser.add_argument("--workers", type=int, default=4)
    argparser.add_argument("--num-epochs", type=int, default=3)
    argparser.add_argument("--num-hidden", type=int, default=16)
    argparser.add_argument("--fan-out", type=int, default=4)
    argparser.add_argument("--batch-size", type=int, default=16)
    argparser.add_argument("--log-every", type=int, default=2)
    argparser.add_argument("--lr", type=float, default=0.01)
    args = argparser.parse_args()
    mp.spawn(run, args=(args.workers, args, load_graph()), nprocs=args.workers)
