"""The wrappers of those models that there are, as a generator gives them, are taken off."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def bare(*models):
    return (each.module if type(each) == DDP else each for each in models if each is not None)


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    body, head = DDP(torch.nn.Linear(4, 4)), DDP(torch.nn.Linear(4, 1))
    body, head = bare(body, head, None)
    optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
    for _ in range(10):
        x = torch.randn(8, 4)
        y = body(x)  # <-- DDP303
        loss = head(y).square().mean()  # <-- DDP303
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
