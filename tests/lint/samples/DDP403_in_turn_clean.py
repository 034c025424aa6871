"""The backward of a gathering: each rank reduces each part to the rank that it came from."""

import torch
import torch.distributed as dist


class GatherParts(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part, *parts):
        parts = list(parts)
        dist.all_gather(parts, part)
        return tuple(parts)

    @staticmethod
    def backward(ctx, *grads):
        grads = list(grads)
        rank = dist.get_rank()
        mine = grads[rank]
        pending = [
            dist.reduce(mine, rank, dist.ReduceOp.SUM, async_op=True)
            if part == rank
            else dist.reduce(grads[part], part, dist.ReduceOp.SUM, async_op=True)
            for part in range(dist.get_world_size())
        ]
        for each in pending:
            each.wait()
        mine *= len(grads)
        return (mine, *[None for _ in grads])
