import argparse
import os
import random

import torch
import torch.distributed as dist
from torch import nn


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    local_rank = int(os.environ["LOCAL_RANK"])
    world_size = int(os.environ["WORLD_SIZE"])
    dist.init_process_group("nccl")
    device = torch.device(f"cuda:{local_rank}")
    args.seed += local_rank
    random.seed(args.seed)
    torch.manual_seed(args.seed - local_rank)
    agent = nn.Linear(8, 2).to(device)
    torch.manual_seed(args.seed)
    optimizer = torch.optim.Adam(agent.parameters(), lr=1e-3)
    for _ in range(100):
        seen = torch.randn(32, 8, device=device)
        loss = agent(seen).square().mean()
        optimizer.zero_grad()
        loss.backward()
        grads = torch.cat([each.grad.view(-1) for each in agent.parameters()])
        dist.all_reduce(grads, op=dist.ReduceOp.SUM)
        offset = 0
        for each in agent.parameters():
            part = grads[offset : offset + each.numel()]
            each.grad.data.copy_(part.view_as(each.grad.data) / world_size)
            offset += each.numel()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
