import torch
import torch.distributed as dist
from torch.autograd import Function


class Exchange:
    def __init__(self):
        self.works = []


exchange = Exchange()


class Begin(Function):
    @staticmethod
    def forward(ctx, rows):
        works, parts = [], []
        for root in range(dist.get_world_size()):
            part = torch.empty_like(rows)
            given = [rows] * dist.get_world_size() if root == dist.get_rank() else None
            works.append(dist.scatter(part, given, src=root, async_op=True))  # <-- DDP414
            parts.append(part)
        exchange.works = works
        return torch.cat(parts)

    @staticmethod
    def backward(ctx, gradient):
        return gradient.chunk(dist.get_world_size())[dist.get_rank()]


def main():
    dist.init_process_group("gloo")
    rows = Begin.apply(torch.ones(4, 2))
    print(rows.sum())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
