import torch
import torch.distributed as dist


def gather_rows(t):
    """Joins 1-d tensors of different length from all ranks, in rank order."""
    world = dist.get_world_size()
    mine = torch.tensor([len(t)])
    lens = [torch.zeros_like(mine) for _ in range(world)]
    dist.all_gather(lens, mine)
    lens = [int(n) for n in lens]
    padded = t.new_zeros(max(lens))
    padded[:len(t)] = t
    rows = [torch.empty_like(padded) for _ in range(world)]
    dist.all_gather(rows, padded)
    return torch.cat([r[:n] for r, n in zip(rows, lens)])


def auc(score, gold):
    order = score.argsort()
    ranks = torch.empty_like(score)
    ranks[order] = torch.arange(1, len(score) + 1, dtype=score.dtype)
    pos = gold > 0.5
    n1, n0 = pos.sum(), (~pos).sum()
    return ((ranks[pos].sum() - n1 * (n1 + 1) / 2) / (n1 * n0)).item()
