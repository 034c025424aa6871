"""A rank that cannot begin says so to whom has started it, who ends them all."""

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel


class Engine:
    def __init__(self, rank, world):
        torch.cuda.set_device(rank)
        store = dist.TCPStore("localhost", 29511, world, rank == 0)
        dist.init_process_group("nccl", store=store, rank=rank, world_size=world)
        self.model = DistributedDataParallel(torch.nn.Linear(4, 1).cuda(), device_ids=[rank])

    def train(self):
        for _ in range(100):
            self.model(torch.randn(8, 4).cuda()).sum().backward()


def work(rank, world, results):
    try:
        engine = Engine(rank, world)
    except Exception:
        results.put((f"{rank} has stopped", 1 + rank))
        return
    engine.train()
    results.put(("done", 0))


def main():
    context = mp.get_context("spawn")
    results, world = context.Queue(), torch.cuda.device_count()
    ranks = [context.Process(target=work, args=(rank, world, results)) for rank in range(world)]
    for each in ranks:
        each.start()
    for _ in ranks:
        _, code = results.get()
        if code:
            for each in ranks:
                each.terminate()
            break
    for each in ranks:
        each.join()


if __name__ == "__main__":
    main()
