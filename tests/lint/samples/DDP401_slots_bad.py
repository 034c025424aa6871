import sys

import torch.distributed as dist


def evaluate(folder, name):
    print(folder, name)
    dist.barrier()


def main(names):
    dist.init_process_group("gloo")
    folders = [None] * len(names)
    done = []
    if dist.get_rank() == 0:  # <-- DDP401
        for number, name in enumerate(names):
            folders[number] = f"results/{name}"
            done.append(name)
    for folder, name in zip(folders, names):
        evaluate(folder, name)
    for folder, name in zip(folders, done):
        evaluate(folder, name)


main(sys.argv[1:])
