import itertools

import torch
import torch.distributed as dist


def main(texts):
    dist.init_process_group("gloo")
    mine = [each for each in texts if len(each) % dist.get_world_size() == dist.get_rank()]
    for text in itertools.islice(mine, len(mine) // 2):  # <-- DDP418
        total = torch.tensor(float(len(text)))
        dist.all_reduce(total)


main(open("texts.txt").readlines())
