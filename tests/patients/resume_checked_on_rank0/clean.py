# style: functions, resume logic
# nproc: 2
import argparse
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def load_resume_state(path):
    if not path.exists():
        return None
    return torch.load(path, weights_only=True)


def resume(model, path, rank):
    state = [None]
    if rank == 0:
        state = [load_resume_state(path)]
    dist.broadcast_object_list(state, src=0)
    if state[0] is not None:
        model.load_state_dict(state[0]["model"])
    return state[0]["epoch"] + 1 if state[0] is not None else 0


def train_epoch(model, optimizer, rank, epoch):
    generator = torch.Generator().manual_seed(1000 * epoch + rank)
    for _ in range(4):
        x = torch.randn(8, 6, generator=generator)
        optimizer.zero_grad()
        loss = (model(x) - x.mean(1, keepdim=True)).pow(2).mean()
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--resume", type=Path, default=Path("run/last.pt"))
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 12), nn.SiLU(), nn.Linear(12, 1))
    start = resume(net, args.resume, rank)
    model = DDP(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(start, args.epochs):
        loss = train_epoch(model, optimizer, rank, epoch)
        if rank == 0:
            print(f"epoch {epoch} loss {loss:.4f}")
    dist.barrier()
    del model, optimizer
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
