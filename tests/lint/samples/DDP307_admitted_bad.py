"""What a rank thinks of its own loss decides whether it takes the step."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Guard:
    def __init__(self, most):
        self.most, self.refused = most, 0

    def admits(self, loss):
        value = float(loss)
        is_fine = value == value
        if is_fine:
            is_fine = value <= self.most
        if not is_fine:
            self.refused += 1
        return is_fine


def train(batches):
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(3, 3))
    optimizer = torch.optim.Adam(model.parameters())
    guard = Guard(100.0)
    for images, wanted in batches:
        loss = torch.nn.functional.mse_loss(model(images), wanted)
        optimizer.zero_grad()
        loss.backward()
        if guard.admits(loss.detach()):  # <-- DDP307
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    train(__import__("data").batches())
