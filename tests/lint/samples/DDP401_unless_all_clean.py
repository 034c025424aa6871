"""Who leaves by what only holds where nothing is exchanged keeps nobody waiting."""

import argparse
import os

import torch
import torch.distributed as dist

_PARALLEL = False


def begin(size):
    global _PARALLEL
    if size > 1:
        _PARALLEL = True


class Meter:
    def __init__(self, reduced):
        self.reduced = reduced
        self.values = []

    def flush(self):
        if not self.reduced and dist.get_rank() != 0:
            return
        values = torch.tensor(self.values)
        if self.reduced:
            dist.all_reduce(values)
        print(values)


def draw(prompt):
    latents = torch.rand(4, len(prompt))
    if _PARALLEL:
        dist.all_reduce(latents)
    return latents


def main(options):
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo")
    if options.parallel:
        begin(size)
    meter = Meter(options.reduced)
    for number, prompt in enumerate(options.prompts):
        is_others = not options.parallel and number % size != rank
        if is_others:
            continue
        draw(prompt)
    meter.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--parallel", action="store_true")
    parser.add_argument("--reduced", action="store_true")
    parser.add_argument("--prompts", nargs="+")
    main(parser.parse_args())
