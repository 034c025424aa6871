import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def mean_of_all(count):
    total = torch.tensor(float(count))
    dist.all_reduce(total)
    return total.item() / dist.get_world_size()


def main():
    dist.init_process_group("gloo")
    net = DDP(torch.nn.Linear(3, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    noise = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(20):
        rows = torch.randn(16, 3, generator=noise)
        kept = rows[:, 0] > 0
        loss = (net(rows)[:, 0].pow(2) * kept).sum() / mean_of_all(int(kept.sum()))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
