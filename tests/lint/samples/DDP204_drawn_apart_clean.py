import random

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def portions(stock, size, part, parts):
    random.shuffle(stock)
    crates = [stock[at : at + size] for at in range(0, len(stock), size)]
    return crates[part::parts]


def rows(number, evening, part, parts):
    np.random.seed(evening)
    return np.random.permutation(number)[part::parts]


def encore(melodies, taste):
    before = random.getstate()
    heard = random.choice(melodies)
    random.setstate(before)
    return heard + torch.rand(88) + taste.choice(melodies) + np.random.rand()


def main(melodies, notes=88, evenings=9):
    dist.init_process_group("gloo")
    part, parts = dist.get_rank(), dist.get_world_size()
    random.seed(5)
    composer = DistributedDataParallel(nn.Linear(notes, notes))
    pen = torch.optim.Adam(composer.parameters(), lr=1e-3)
    stock = list(range(len(melodies)))
    taste = random.Random(3)
    for evening in range(evenings):
        for crate in portions(stock, 16, part, parts):
            heard = torch.stack([melodies[each] for each in crate])
            loss = nn.functional.mse_loss(composer(heard), heard.roll(1, 0))
            pen.zero_grad()
            loss.backward()
            pen.step()
        for row in rows(len(melodies), evening, part, parts):
            loss = nn.functional.mse_loss(composer(melodies[row]), melodies[row])
            pen.zero_grad()
            loss.backward()
            pen.step()
        if part == 0:
            print(composer.module(encore(melodies, taste)).argmax())
    dist.destroy_process_group()


if __name__ == "__main__":
    main(torch.rand(900, 88, generator=torch.Generator().manual_seed(1)))
