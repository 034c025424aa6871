import contextlib
import hashlib
import json
import os

import torch
import torch.distributed as dist


@contextlib.contextmanager
def leader_first():
    if dist.get_rank() != 0:
        dist.barrier()
    yield
    if dist.get_rank() == 0:
        dist.barrier()


def tokens(lines, folder, name):
    kept = os.path.join(folder, f"{name}.pt")
    if os.path.exists(kept):
        return torch.load(kept)
    found = [line.split() for line in lines]
    torch.save(found, kept)  # <-- DDP212
    return found


def images(folder, files):
    kept = f"{folder}/images.pt"
    if not os.path.exists(kept):
        torch.save({"files": files}, kept)  # <-- DDP212
    return torch.load(kept)


def lengths(lines, folder, name):
    asked = json.dumps({"rows": name})
    kept = f"{folder}/{hashlib.md5(asked.encode()).hexdigest()[:12]}.pt"
    if not os.path.exists(kept):
        torch.save([len(line) for line in lines], kept)  # <-- DDP212
    return torch.load(kept)


def main(path="lines.txt"):
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    with open(path) as file:
        lines = file.readlines()
    with leader_first():
        mine = tokens(lines[rank::world], "kept", "train")
    with leader_first():
        pictures = images("kept", lines[rank::world])
    with leader_first():
        long = lengths(lines[rank::world], "kept", "train")
    print(mine, pictures, long)


main()
