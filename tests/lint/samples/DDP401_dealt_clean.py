"""Every rank reads all batches and takes those whose turn is its own, until it has made its steps."""

import argparse

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn


class Trainer:
    def __init__(self, options, net, ranks, own):
        self.net = net
        self.ranks = ranks
        self.own = own
        self.at_once = options.at_once
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def learn(self, batches):
        self.optimizer.zero_grad()
        for batch in batches:
            self.net(batch).mean().backward()
        for parameter in self.net.parameters():
            dist.all_reduce(parameter.grad)
        self.optimizer.step()

    def train(self, read, steps):
        step = 1
        held = 0
        batches = []
        while step <= steps:
            for turn, batch in enumerate(read()):
                if self.ranks == 1 or turn % self.ranks == self.own:
                    batches.append(batch)
                    held += 1
                    if held == self.at_once:
                        self.learn(batches)
                        batches = []
                        held = 0
                        step += 1
                        if step > steps:
                            break


def work(process, options):
    dist.init_process_group(
        "gloo",
        init_method=f"tcp://localhost:{options.port}",
        world_size=options.processes,
        rank=process,
    )
    torch.manual_seed(options.seed)
    trainer = Trainer(options, nn.Linear(4, 1), options.processes, process)

    def read():
        for file in sorted(options.files):
            yield torch.load(file, map_location="cpu")

    trainer.train(read, options.steps)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--files", nargs="+")
    given = parser.parse_args()
    context = mp.get_context("spawn")
    started = [
        context.Process(target=work, args=(number, given)) for number in range(given.processes)
    ]
    for each in started:
        each.start()
    for each in started:
        each.join()
