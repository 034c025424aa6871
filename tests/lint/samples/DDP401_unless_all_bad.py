"""Who leaves though all are waited for keeps the others waiting."""

import argparse

import torch
import torch.distributed as dist


class Meter:
    def __init__(self, reduced):
        self.reduced = reduced
        self.values = []

    def flush(self):
        if not self.reduced and dist.get_rank() != 0:
            return
        values = torch.tensor(self.values)
        if self.values:
            dist.all_reduce(values)  # <-- DDP401
        print(values)


def main(options):
    dist.init_process_group("gloo")
    meter = Meter(options.reduced)
    for number in range(options.number):
        meter.values.append(float(number))
        meter.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--reduced", action="store_true")
    parser.add_argument("--number", type=int)
    main(parser.parse_args())
