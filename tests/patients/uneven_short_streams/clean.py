# style: IterableDataset over small shard files, epoch metrics
# nproc: 2
import json
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset


class Shards(IterableDataset):
    def __init__(self, files):
        self.files = files

    def __iter__(self):
        for file in self.files:
            with open(file) as lines:
                for line in lines:
                    record = json.loads(line)
                    yield torch.tensor(record["x"]), torch.tensor(record["y"])


def write_shards(folder):
    os.makedirs(folder, exist_ok=True)
    for number, count in enumerate([24, 20, 16, 12]):
        with open(os.path.join(folder, f"part-{number}.jsonl"), "w") as out:
            for i in range(count):
                x = [float(i % 5), float(i % 3), float(number)]
                out.write(json.dumps({"x": x, "y": [sum(x)]}) + "\n")


def main():
    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    if rank == 0:
        write_shards("shards")
    dist.barrier()
    files = sorted(os.path.join("shards", name) for name in os.listdir("shards"))
    loader = DataLoader(Shards(files[rank::world_size]), batch_size=4)
    torch.manual_seed(0)
    model = DDP(nn.Linear(3, 1))
    batches = torch.tensor(sum(1 for _ in loader))
    dist.all_reduce(batches, op=dist.ReduceOp.MIN)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(2):
        seen, total = 0, 0.0
        for (x, y), _ in zip(loader, range(int(batches))):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            seen += len(x)
            total += loss.item() * len(x)
        dist.barrier()
        print(f"[{rank}] epoch {epoch}: {seen} samples, loss {total / seen:.3f}")


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
