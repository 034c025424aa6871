import os
import random

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Sampler


class Buckets(Sampler):
    def __init__(self, lengths, size):
        self.lengths, self.size = lengths, size

    def __iter__(self):
        rows = list(range(len(self.lengths)))
        batches = [rows[i : i + self.size] for i in range(0, len(rows), self.size)]
        random.shuffle(batches)
        return iter(batches)


def main(every=4, last=500):
    dist.init_process_group("nccl")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    model = torch.nn.Linear(4, 1).to(device)
    for p in model.parameters():
        dist.broadcast(p.data, 0)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    data = torch.randn(1000, 4)[dist.get_rank() :: dist.get_world_size()]
    loader = DataLoader(data, batch_sampler=Buckets([1] * len(data), 8))
    step = updates = passes = 0
    while True:
        for batch in loader:  # <-- DDP418
            model(batch.to(device)).sum().backward()
            step += 1
            if step % every == 0:  # <-- DDP402
                for p in model.parameters():
                    dist.all_reduce(p.grad)
                optimizer.step()
                optimizer.zero_grad()
                updates += 1
            if updates >= last:  # <-- DDP405
                break
        passes += 1
        if passes >= last:
            break
    print(passes)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
