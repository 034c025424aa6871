"""Document classifier where long documents are dealt out by total token count."""
import heapq
import random

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def documents(count, seed=0):
    rnd = random.Random(seed)
    docs = []
    for _ in range(count):
        label = rnd.randrange(4)
        length = int(rnd.lognormvariate(3.2, 0.8)) + 4
        docs.append(([rnd.randrange(100) if rnd.random() < 0.6 else 100 + label for _ in range(length)], label))
    return docs


def deal(lengths, world):
    """Longest first onto the lightest pile; the same result in every process."""
    piles = [(0, r, []) for r in range(world)]
    heapq.heapify(piles)
    for i in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        load, r, items = heapq.heappop(piles)
        items.append(i)
        heapq.heappush(piles, (load + lengths[i], r, items))
    return {r: items for _, r, items in piles}


class BagModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(104, 16)
        self.out = nn.Linear(16, 4)

    def forward(self, flat, offsets):
        return self.out(self.bag(flat, offsets))


def pack(docs):
    flat = torch.tensor([t for d, _ in docs for t in d])
    offsets = torch.tensor([0] + [len(d) for d, _ in docs[:-1]]).cumsum(0)
    return flat, offsets, torch.tensor([label for _, label in docs])


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    docs = documents(200)
    mine = deal([len(d) for d, _ in docs], world)[rank]
    size = torch.tensor(len(mine))
    most = size.clone()
    dist.all_reduce(most, op=dist.ReduceOp.MAX)
    total = size.clone()
    dist.all_reduce(total)
    batch = 10
    steps = -(-int(most) // batch)
    model = DDP(BagModel())
    opt = torch.optim.Adam(model.parameters(), lr=0.02)
    rnd = random.Random(rank)
    for epoch in range(4):
        order = mine[:]
        rnd.shuffle(order)
        shown = 0.0
        for s in range(steps):
            pick = order[s * batch : (s + 1) * batch]
            here = torch.tensor(float(len(pick)))
            world_docs = here.clone()
            dist.all_reduce(world_docs)
            flat, offsets, label = pack([docs[i] for i in (pick or order[:1])])
            loss = nn.functional.cross_entropy(model(flat, offsets), label, reduction="sum")
            weight = world / world_docs if pick else torch.zeros(())
            opt.zero_grad()
            (loss * weight).backward()
            opt.step()
            shown += loss.item() if pick else 0.0
        acc = torch.tensor(shown)
        dist.all_reduce(acc)
        if rank == 0:
            print(f"epoch {epoch} loss {acc.item() / int(total):.3f}", flush=True)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
