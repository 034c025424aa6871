import contextlib
import os
import pickle

import torch.distributed as dist

_KEPT = {}


def opened(path):
    return open(path, "rb")


@contextlib.contextmanager
def leader_first(rank, world):
    leads = rank == 0
    if not leads and world > 1:
        dist.barrier()
    yield
    if leads and world > 1:
        dist.barrier()


def detector(path, rank, world):
    if path not in _KEPT:
        leads = rank == 0
        if not leads and world > 1:
            dist.barrier()
        with opened(path) as file:
            _KEPT[path] = pickle.load(file)
        if leads and world > 1:
            dist.barrier()
    return _KEPT[path]


def build(folder, rank, world):
    first, second = os.path.join(folder, "mean.pkl"), os.path.join(folder, "table.pkl")
    if not os.path.exists(first) and rank == 0:
        with open(first, "wb") as file:
            pickle.dump({"mean": 0.5}, file)
    if not os.path.exists(second) and rank == 0:
        with open(second, "wb") as file:
            pickle.dump([0.0] * 8, file)
    found = detector(first, rank, world)
    with leader_first(rank, world):
        with open(second, "rb") as file:
            table = pickle.load(file)
    return found, table


def main():
    dist.init_process_group("gloo")
    print(build("kept", dist.get_rank(), dist.get_world_size()))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
