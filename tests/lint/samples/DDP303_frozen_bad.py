import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    maker = DDP(nn.Linear(8, 16))
    judge = DDP(nn.Linear(16, 1))
    for_maker = torch.optim.Adam(maker.parameters(), lr=1e-3)
    for_judge = torch.optim.Adam(judge.parameters(), lr=1e-3)
    for _ in range(20):
        real = torch.randn(4, 16)
        with torch.no_grad():
            made = maker.module(torch.randn(4, 8))
        judge(torch.cat([real, made])).mean().backward()
        for_judge.step()
        for_judge.zero_grad()
        judge.requires_grad_(True)
        (-judge.module(maker(torch.randn(4, 8))).mean()).backward()  # <-- DDP303
        for_maker.step()
        for_maker.zero_grad()


if __name__ == "__main__":
    main()
