# style: pipeline parallelism, point to point
# nproc: 3
import torch
import torch.distributed as dist
from torch import nn

WIDTH = 6
MICRO_BATCHES = 4


class Stage(nn.Module):
    def __init__(self, index, count):
        super().__init__()
        self.index, self.last = index, count - 1
        torch.manual_seed(index)
        self.layer = nn.Linear(WIDTH, WIDTH if index < self.last else 1)

    def receive(self, like):
        tensor = torch.empty_like(like)
        dist.recv(tensor, src=self.index - 1)
        return tensor.requires_grad_()

    def forward(self, x):
        return torch.tanh(self.layer(x)) if self.index < self.last else self.layer(x)


def run(stage, optimizer, data):
    inputs, outputs, sends = [], [], []
    optimizer.zero_grad()
    for micro in data:
        x = micro if stage.index == 0 else stage.receive(micro)
        y = stage(x)
        inputs.append(x)
        outputs.append(y)
        if stage.index < stage.last:
            sends.append(dist.isend(y.detach(), dst=stage.index + 1))
    for work in sends:
        work.wait()
    total = 0.0
    for x, y in zip(inputs, outputs):
        if stage.index == stage.last:
            loss = y.pow(2).mean() / MICRO_BATCHES
            loss.backward()
            total += loss.item()
        else:
            gradient = torch.empty_like(y)
            dist.recv(gradient, src=stage.index + 1)
            y.backward(gradient)
        if stage.index > 0:
            dist.send(x.grad, dst=stage.index - 1)
    optimizer.step()
    return total


def main():
    dist.init_process_group("gloo")
    rank, count = dist.get_rank(), dist.get_world_size()
    stage = Stage(rank, count)
    optimizer = torch.optim.SGD(stage.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(0)
    for _ in range(5):
        data = torch.randn(MICRO_BATCHES, 4, WIDTH, generator=generator)
        loss = run(stage, optimizer, data)
    everybody = [None] * count
    dist.all_gather_object(everybody, round(loss, 4))
    if rank == 0:
        print(everybody)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
