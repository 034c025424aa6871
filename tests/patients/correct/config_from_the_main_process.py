# style: configuration broadcast, main process first
# nproc: 3
import contextlib
import json
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


@contextlib.contextmanager
def main_process_first(rank):
    if rank > 0:
        dist.barrier()
    yield
    if rank == 0:
        dist.barrier()


def read_config(rank):
    holder = [None]
    if rank == 0:
        Path("config.json").write_text(json.dumps({"lr": 0.1, "width": 12, "epochs": 2}))
        holder = [json.loads(Path("config.json").read_text())]
    dist.broadcast_object_list(holder, src=0)
    return holder[0]


def vocabulary(rank):
    path = Path("vocabulary.pt")
    with main_process_first(rank):
        if not path.exists():
            torch.save(torch.arange(20).reshape(4, 5).float(), path)
        return torch.load(path, weights_only=True)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    config = read_config(rank)
    table = vocabulary(rank)
    torch.manual_seed(0)
    width = config["width"]
    model = DDP(nn.Sequential(nn.Linear(5, width), nn.ReLU(), nn.Linear(width, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"])
    generator = torch.Generator().manual_seed(rank)
    for epoch in range(config["epochs"]):
        for _ in range(4):
            x = table[torch.randint(0, 4, (6,), generator=generator)] / 20
            optimizer.zero_grad()
            loss = (model(x) - x.mean(1, keepdim=True)).pow(2).mean()
            loss.backward()
            optimizer.step()
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}")
    results = [None] * dist.get_world_size() if rank == 0 else None
    dist.gather_object({"rank": rank, "loss": loss.item()}, results, dst=0)
    if rank == 0:
        print(max(results, key=lambda each: each["loss"]))
    dist.barrier()
    del model, optimizer
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
