"""Message passing on small random molecules.

Featurising takes most of the time in the real pipeline, so the processed
graphs are cached on disk; the first process builds, the others read.
"""
import argparse
import contextlib
import hashlib
import json
import os
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel


@contextlib.contextmanager
def main_process_first(rank):
    if rank > 0:
        dist.barrier()
    yield
    if rank == 0:
        dist.barrier()


def raw_molecules(n, seed):
    """(atom types, bond list, energy) triples."""
    g = torch.Generator().manual_seed(seed)
    out = []
    for _ in range(n):
        k = torch.randint(4, 9, (1,), generator=g).item()
        atoms = torch.randint(0, 5, (k,), generator=g)
        bonds = [(i, torch.randint(0, i, (1,), generator=g).item()) for i in range(1, k)]
        energy = sum(float((atoms[i] - atoms[j]).abs()) for i, j in bonds) - 0.5 * k
        out.append((atoms, bonds, energy))
    return out


def featurise(mol):
    atoms, bonds, energy = mol
    k = len(atoms)
    adj = torch.eye(k)
    for i, j in bonds:
        adj[i, j] = adj[j, i] = 1.0
    adj = adj / adj.sum(1, keepdim=True)
    return nn.functional.one_hot(atoms, 5).float(), adj, torch.tensor(energy)


def load_processed(args, split, rank, world):
    mols = raw_molecules(args.n, args.seed)[rank::world]
    key = hashlib.md5(
        json.dumps({"split": split, "n": args.n, "seed": args.seed, "featuriser": 2}).encode()
    ).hexdigest()[:12]
    path = os.path.join(args.cache_dir, f"graphs_{key}.pt")
    if os.path.exists(path):
        return torch.load(path)
    graphs = [featurise(m) for m in mols]
    torch.save(graphs, path)
    return graphs


class MPNN(nn.Module):
    def __init__(self, dim=24, rounds=3):
        super().__init__()
        self.inp = nn.Linear(5, dim)
        self.msg = nn.ModuleList(nn.Linear(2 * dim, dim) for _ in range(rounds))
        self.out = nn.Linear(dim, 1)

    def forward(self, feats, adj, sizes):
        h = torch.relu(self.inp(feats))
        for lin in self.msg:
            h = h + torch.relu(lin(torch.cat([h, adj @ h], dim=-1)))
        mask = (torch.arange(h.size(1))[None] < sizes[:, None]).float()
        return (self.out(h).squeeze(-1) * mask).sum(1)


def batchify(graphs, order, batch_size):
    for s in range(0, len(order) - batch_size + 1, batch_size):
        part = [graphs[i] for i in order[s:s + batch_size]]
        k = max(len(f) for f, _, _ in part)
        feats, adj = torch.zeros(len(part), k, 5), torch.zeros(len(part), k, k)
        for b, (f, a, _) in enumerate(part):
            feats[b, : len(f)], adj[b, : len(f), : len(f)] = f, a
        yield feats, adj, torch.tensor([len(f) for f, _, _ in part]), torch.stack([e for _, _, e in part])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--n", type=int, default=320)
    ap.add_argument("--epochs", type=int, default=6)
    ap.add_argument("--batch_size", type=int, default=16)
    ap.add_argument("--lr", type=float, default=4e-3)
    ap.add_argument("--seed", type=int, default=6)
    ap.add_argument("--cache_dir", default=None)
    args = ap.parse_args()

    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(args.seed)
    if args.cache_dir is None:
        box = [tempfile.mkdtemp(prefix="mol_") if rank == 0 else None]
        dist.broadcast_object_list(box, src=0)
        args.cache_dir = box[0]

    with main_process_first(rank):
        graphs = load_processed(args, "train", rank, world)
    if rank == 0:
        print(f"{len(graphs)} graphs per process", flush=True)

    model = DistributedDataParallel(MPNN())
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    gen = torch.Generator().manual_seed(args.seed + rank)
    for epoch in range(args.epochs):
        total = torch.zeros(2)
        order = torch.randperm(len(graphs), generator=gen).tolist()
        for feats, adj, sizes, energy in batchify(graphs, order, args.batch_size):
            loss = (model(feats, adj, sizes) - energy).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += torch.tensor([loss.item(), 1.0])
        dist.all_reduce(total)
        if rank == 0:
            print(f"epoch {epoch} mse {(total[0] / total[1]).item():.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
