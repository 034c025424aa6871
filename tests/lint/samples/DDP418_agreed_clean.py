import itertools

import torch
import torch.distributed as dist


def main(texts):
    dist.init_process_group("gloo")
    mine = [each for each in texts if len(each) % dist.get_world_size() == dist.get_rank()]
    steps = torch.tensor(len(mine))
    dist.all_reduce(steps, dist.ReduceOp.MIN)
    for text in itertools.islice(mine, int(steps)):
        total = torch.tensor(float(len(text)))
        dist.all_reduce(total)


main(open("texts.txt").readlines())
