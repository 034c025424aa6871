"""Each rank samples the neighbours of nodes by a library that puts them on its device."""

import os

import graph_things
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main():
    dist.init_process_group("nccl")
    devices = [int(each) for each in os.environ["DEVICES"].split(",")]
    number = devices[dist.get_rank() % len(devices)]
    graph, nodes = torch.load("graph.pt"), torch.load("nodes.pt")
    loader = graph_things.NodeLoader(graph, nodes, device=number, batch_size=1024)
    model = DistributedDataParallel(torch.nn.Linear(64, 8).to(number), device_ids=[number])
    optimizer = torch.optim.Adam(model.parameters())
    for batch in loader:
        optimizer.zero_grad()
        model(batch.to(number)).sum().backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
