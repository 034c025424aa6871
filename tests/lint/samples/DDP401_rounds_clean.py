import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Callback:
    collective = False

    def on_epoch_end(self, state):
        pass


class MeanLoss(Callback):
    collective = True

    def on_epoch_end(self, state):
        dist.all_reduce(state["loss"])


class Printer(Callback):
    def on_epoch_end(self, state):
        print(state["loss"])


def main():
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    model = DistributedDataParallel(nn.Linear(4, 1))
    callbacks = [MeanLoss()]
    if rank == 0:
        callbacks.append(Printer())
    for epoch in range(3):
        loss = model(torch.ones(2, 4)).sum()
        loss.backward()
        state = {"loss": loss.detach()}
        for callback in callbacks:
            if not callback.collective:
                callback.on_epoch_end(state)
                continue
            callback.on_epoch_end(state)
            dist.barrier()


if __name__ == "__main__":
    main()
