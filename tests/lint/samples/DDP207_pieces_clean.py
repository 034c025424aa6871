"""Each rank trains on its piece of the nodes of a graph, which a library samples."""

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from graph_things import Sampler, open_graph
from torch.nn.parallel import DistributedDataParallel


def work(rank, size, graph, masks):
    dist.init_process_group(
        "nccl",
        init_method="tcp://localhost:29412",  # <- DDP104
        world_size=size,
        rank=rank,
    )
    train, _ = masks
    nodes = train.nonzero().view(-1)
    nodes = nodes.split(nodes.size(0) // size)[rank]
    loader = Sampler(graph, nodes=nodes, sizes=[10, 5], batch_size=256)
    model = DistributedDataParallel(torch.nn.Linear(64, 8).to(rank), device_ids=[rank])
    optimizer = torch.optim.Adam(model.parameters())
    for batch in loader:
        optimizer.zero_grad()
        model(batch.to(rank)).sum().backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    graph = open_graph("products")
    devices = torch.cuda.device_count()
    mp.spawn(work, args=(devices, graph, (graph.train, graph.test)), nprocs=devices)
