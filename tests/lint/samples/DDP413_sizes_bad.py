"""Evaluation in several ways, each of them once, as image tokenizers are evaluated."""

import argparse

import torch.distributed as dist


def accuracy(model, images, way):
    hits = model(images, way).sum()
    dist.all_reduce(hits)
    return hits / dist.get_world_size()


def main(model, images):
    parser = argparse.ArgumentParser()
    parser.add_argument("--ways", default="full-crop", type=str)
    options = parser.parse_args()
    dist.init_process_group("nccl")
    for way in {each.strip() for each in options.ways.split("-")}:  # <-- DDP413
        print(way, accuracy(model, images, way))
    for way in set([*options.ways.split("-"), "full"]):  # <-- DDP413
        print(way, accuracy(model, images, way))
