import os
import pickle

import torch
import torch.distributed as dist


def score(model, rows):
    with torch.no_grad():
        return model(rows).flatten().tolist()


def merge(mine, folder):
    rank, world = dist.get_rank(), dist.get_world_size()
    with open(os.path.join(folder, f"part-{rank}.pkl"), "wb") as out:
        pickle.dump(mine, out)
    dist.barrier()
    if rank != 0:
        return None
    parts = []
    for number in range(world):
        with open(os.path.join(folder, f"part-{number}.pkl"), "rb") as part:
            parts += pickle.load(part)
    return parts


def listed(mine, folder):
    torch.save(mine, f"{folder}/rank{dist.get_rank()}.pt")
    dist.barrier()
    if dist.get_rank() == 0:
        found = []
        for name in os.listdir(folder):
            found.append(torch.load(os.path.join(folder, name)))
        return torch.cat(found)
    return mine


def main():
    dist.init_process_group("gloo")
    model = torch.nn.Linear(4, 1)
    mine = score(model, torch.randn(8, 4))
    for folder in ("first", "second"):
        os.makedirs(folder, exist_ok=True)
        dist.barrier()
        merge(mine, folder)
        dist.barrier()
    os.makedirs("third", exist_ok=True)
    dist.barrier()
    listed(torch.tensor(mine), "third")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
