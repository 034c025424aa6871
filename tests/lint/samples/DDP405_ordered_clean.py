import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def work(net, host, workers):
    model = DistributedDataParallel(net, process_group=workers)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    while True:
        order = [None]
        dist.scatter_object_list(order, [None] * (host + 1), src=host)
        if order[0] == "stop":
            break
        if order[0] == "wait":
            continue
        batch = [None]
        dist.scatter_object_list(batch, [None] * (host + 1), src=host)
        if order[0] == "train":
            optimizer.zero_grad()
            model(batch[0]).mean().backward()
            optimizer.step()
        else:
            with torch.no_grad():
                loss = model(batch[0]).mean()
            dist.gather_object(float(loss), None, dst=host)


def tell(host, orders):
    dist.scatter_object_list([None], orders, src=host)


def lead(host, batches, held_out):
    for batch in batches:
        tell(host, ["train"] * (host + 1))
        tell(host, [*batch, None])
    for batch in held_out:
        tell(host, ["evaluate"] * (host + 1))
        tell(host, [*batch, None])
        losses = [None] * (host + 1)
        dist.gather_object(0.0, losses, dst=host)
        print(losses)
    tell(host, ["stop"] * (host + 1))


def main(net, batches, held_out):
    dist.init_process_group("gloo")
    host = dist.get_world_size() - 1
    workers = dist.new_group(list(range(host)))
    if dist.get_rank() < host:
        work(net, host, workers)
    else:
        lead(host, batches, held_out)
    dist.destroy_process_group()


main(torch.nn.Linear(4, 1), *torch.load(sys.argv[1]))
