import os
import pickle

import torch.distributed as dist

CACHE = "cache/words.pkl"


def build():
    with open(CACHE, "wb") as file:
        pickle.dump({}, file)


def main():
    dist.init_process_group("gloo")
    if dist.get_rank() == 0 and not os.path.exists(CACHE):
        build()
    dist.barrier()
    own = f"log-{dist.get_rank()}.txt"
    if not os.path.exists("marker"):
        with open(own, "w") as file:
            file.write("new")


if __name__ == "__main__":
    main()
