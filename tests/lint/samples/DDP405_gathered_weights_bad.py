import torch
import torch.distributed as dist
from torch import nn


class Whole(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part):
        parts = [torch.empty_like(part) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, part.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx, grad):
        grad = grad.contiguous()
        dist.all_reduce(grad)
        return grad.chunk(dist.get_world_size())[dist.get_rank()]


class Writer(nn.Module):
    def __init__(self):
        super().__init__()
        whole = torch.randn(32, 8, generator=torch.Generator().manual_seed(3))
        self.part = nn.Parameter(whole.chunk(dist.get_world_size())[dist.get_rank()])

    def forward(self, rows):
        return rows @ Whole.apply(self.part).t()


def write(net, rows):
    for _ in range(40):
        scores = net(rows)
        ended = scores.argmax(1) == 0
        if ended.all():  # <-- DDP405
            break
        rows = rows + 0.1 * scores[:, :8]
    return rows


def main():
    dist.init_process_group("gloo")
    noise = torch.Generator().manual_seed(dist.get_rank())
    net = Writer()
    for _ in range(5):
        print(write(net, torch.randn(4, 8, generator=noise)).mean().item())


if __name__ == "__main__":
    main()
