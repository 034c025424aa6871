"""Caption scoring: rank 0 plans who scores which captions, the scores come back as plain Python objects."""
import random

import torch
import torch.distributed as dist
import torch.nn as nn

WORDS = "cat dog tree boat sun rain hill road bird fish".split()


def make_captions(n=24):
    rng = random.Random(1)
    return {f"img{i:03d}": " ".join(rng.sample(WORDS, rng.randint(3, 6))) for i in range(n)}


def plan(captions, world):
    loads = [[] for _ in range(world)]
    for name, text in sorted(captions.items(), key=lambda kv: -len(kv[1])):
        min(loads, key=lambda l: sum(len(t) for _, t in l)).append((name, text))
    return loads


def scorer():
    torch.manual_seed(4)
    return nn.Sequential(nn.Linear(len(WORDS), 8), nn.Tanh(), nn.Linear(8, 1)).eval()


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    loads = None
    if rank == 0:
        loads = plan(make_captions(), world)
    mine = [None]
    dist.scatter_object_list(mine, loads if rank == 0 else None, src=0)
    net, results = scorer(), {}
    with torch.no_grad():
        for name, text in mine[0]:
            bag = torch.tensor([float(w in text.split()) for w in WORDS])
            results[name] = round(net(bag).item(), 4)
    everything = [None] * world if rank == 0 else None
    dist.gather_object(results, everything, dst=0)
    if rank == 0:
        merged = {k: v for part in everything for k, v in part.items()}
        best = max(merged, key=merged.get)
        verdict = [best, merged[best], len(merged)]
    else:
        verdict = [None, None, None]
    dist.broadcast_object_list(verdict, src=0)
    print(f"[{rank}] scored {len(results)}, best of all {verdict}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
