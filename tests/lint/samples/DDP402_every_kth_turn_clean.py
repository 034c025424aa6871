"""Batches are dealt out by turns, and every tenth of a rank's own steps is reported together."""

import os

import torch
import torch.distributed as dist


def batches(count):
    generator = torch.Generator().manual_seed(1)
    for _ in range(count):
        yield torch.randn(8, 4, generator=generator)


def report(step, every, loss):
    if step % every == 0:
        total = loss.detach().clone()
        dist.all_reduce(total)
        print(step, total.item() / dist.get_world_size())


def main(steps=500, every=10):
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(int(os.environ.get("SEED", "1")))
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    step = 1
    while step <= steps:
        for number, batch in enumerate(batches(103)):
            if number % world == rank:
                model.zero_grad()
                loss = model(batch).square().mean()
                loss.backward()
                for weight in model.parameters():
                    dist.all_reduce(weight.grad)
                    weight.grad.div_(world)
                optimizer.step()
                report(step, every, loss)
                step += 1
                if step > steps:
                    break
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
