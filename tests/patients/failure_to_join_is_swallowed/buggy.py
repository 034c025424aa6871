# style: functions, try/except around the set-up
# nproc: 2
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

CONFIG = """
backend = gloo  # nccl on the cluster
lr = 0.05
"""


def parse(text):
    pairs = (line.split("=") for line in text.strip().splitlines())
    return {name.strip(): value for name, value in pairs}


def init_distributed(config):
    try:
        dist.init_process_group(config["backend"])  # <-- DDP111
        return True
    except Exception:  # <-- DDP111
        print("running without distributed training")
        return False


def train(model, rank, lr, steps=6):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    generator = torch.Generator().manual_seed(rank)
    for _ in range(steps):
        x = torch.randn(16, 4, generator=generator)
        optimizer.zero_grad()
        loss = (model(x) - x.prod(1, keepdim=True)).pow(2).mean()
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    config = parse(CONFIG)
    distributed = init_distributed(config)
    rank = dist.get_rank() if distributed else 0
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
    if distributed:
        model = DDP(model)
    loss = train(model, rank, float(config["lr"]))
    if rank == 0:
        print(f"loss {loss:.4f}")
    if distributed:
        dist.barrier()
        del model
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
