import functools

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from speech import Utterances, pad


def tolerating(*kinds):
    def wrap(function):
        @functools.wraps(function)
        def call(*args):
            try:
                return function(*args)
            except kinds as error:
                print(error)
                return None

        return call

    return wrap


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Parameter(torch.zeros(80, 16))

    def forward(self, x):
        if x.shape[1] > self.table.shape[0]:
            raise ValueError("an utterance is too long")
        return x + self.table[: x.shape[1]]


def main():
    dist.init_process_group("gloo")
    data = Utterances()
    sampler = DistributedSampler(data)
    model = DistributedDataParallel(Encoder())
    optimizer = torch.optim.AdamW(model.parameters())

    @tolerating(ValueError)
    def step(x):
        return model(x).pow(2).mean()

    def train(x):
        loss = step(x)
        is_there = torch.tensor(float(loss is not None))
        dist.all_reduce(is_there, op=dist.ReduceOp.MIN)
        if not is_there:
            return
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x in DataLoader(data, 4, sampler=sampler, collate_fn=pad):
            train(x)
        dist.barrier()


if __name__ == "__main__":
    main()
