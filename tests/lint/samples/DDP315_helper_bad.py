from contextlib import nullcontext

from torch.nn.parallel import DistributedDataParallel


def synchronises(number, window):
    return number % window == 0


def is_complete(number, window):
    return number % window == window - 1


class Loop:
    def __init__(self, net, optimizer, window=8):
        self.wrapper = DistributedDataParallel(net)
        self.optimizer, self.window = optimizer, window

    def context(self, number):
        if synchronises(number, self.window):
            return nullcontext()
        return self.wrapper.no_sync()

    def run(self, batches):
        for number, batch in enumerate(batches):
            with self.context(number):
                self.wrapper(batch).mean().backward()
            if is_complete(number, self.window):  # <-- DDP315
                self.optimizer.step()
                self.optimizer.zero_grad()
