"""Evaluation at several sizes, each of them once, as image tokenizers are evaluated."""

import argparse

import torch.distributed as dist


def accuracy(model, images, size):
    hits = model(images, size).sum()
    dist.all_reduce(hits)
    return hits / dist.get_world_size()


def main(model, images):
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", default="224-256", type=str)
    parser.add_argument("--smallest", default=64, type=int)
    parser.add_argument("--largest", default=512, type=int)
    options = parser.parse_args()
    dist.init_process_group("nccl")
    trained_on = list(range(options.smallest, options.largest + 32, 32))
    for size in {int(each) for each in options.sizes.split("-")}:
        print(size, accuracy(model, images, size))
    if isinstance(options.sizes, str):
        options.sizes = [int(each) for each in options.sizes.split("-")]
    for size in set([*options.sizes, trained_on[0], trained_on[-1]]):
        print(size, accuracy(model, images, size))
