"""Language-model loss normalised with the number of tokens in the global batch."""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def ragged_batch(gen, n=6, longest=12, vocab=20):
    ids = torch.randint(1, vocab, (n, longest), generator=gen)
    lens = torch.randint(2, longest + 1, (n,), generator=gen)
    ids[torch.arange(longest)[None] >= lens[:, None]] = 0
    return ids


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Embedding(20, 16), nn.Linear(16, 20)))
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    gen = torch.Generator().manual_seed(rank)
    for it in range(15):
        ids = ragged_batch(gen)
        x, y = ids[:, :-1], ids[:, 1:]
        loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten(), ignore_index=0, reduction="sum")
        tokens = (y != 0).sum()
        dist.all_reduce(tokens)
        loss = loss * world / tokens
        opt.zero_grad()
        loss.backward()
        opt.step()
    dist.all_reduce(loss := loss.detach())
    if rank == 0:
        print(f"loss per token {loss.item() / world:.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
