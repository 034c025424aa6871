import argparse
import os
from multiprocessing import Process

import torch
import torch.distributed as dist


def main(options):
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(100):
        optimizer.zero_grad()
        loss = model(torch.rand(4, 4)).mean()
        loss.backward()
        for each in model.parameters():
            dist.all_reduce(each.grad)
            each.grad /= dist.get_world_size()
        optimizer.step()
        if step % 10 == 0 and options.nth == 0:
            shown = loss.detach()
            dist.all_reduce(shown)  # <-- DDP401
            print(shown / options.size)


def begin(number, size, what, options):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "6020"  # <- DDP104
    dist.init_process_group("gloo", rank=number, world_size=size)
    what(options)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=1)
    options = parser.parse_args()
    if options.size > 1:
        started = []
        for number in range(options.size):
            options.nth = number
            each = Process(target=begin, args=(number, options.size, main, options))
            each.start()
            started.append(each)
        for each in started:
            each.join()
    else:
        options.nth = 0
        begin(0, 1, main, options)
