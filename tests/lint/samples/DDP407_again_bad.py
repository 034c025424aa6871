import pickle
import time

import torch
import torch.distributed as dist


def share(rank, world, number, found):
    with open(f"part-{rank}-{number}.pkl", "wb") as file:
        pickle.dump(found, file)
    every = {each: None for each in range(world)}
    for each in every:
        try:
            with open(f"part-{each}-{number}.pkl", "rb") as file:  # <-- DDP407
                every[each] = pickle.load(file)
        except EOFError:
            raise SystemExit(f"part {each} is not whole") from None
    return sum(every.values())


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    for number in range(3):
        print(share(rank, dist.get_world_size(), number, torch.rand(1)), time.time())


if __name__ == "__main__":
    main()
