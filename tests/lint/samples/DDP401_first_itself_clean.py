import torch.distributed as dist
import torch.multiprocessing as mp


def is_first():
    if not dist.is_initialized():
        return True
    return dist.get_rank() == 0


def begin(work, cards, address):
    if cards == 1:
        work()
        return None
    others = mp.spawn(_as_other, nprocs=cards - 1, args=(work, cards, address), join=False)
    if is_first():
        _meet(0, cards, address)
        work()
    return others


def _as_other(number, work, cards, address):
    _meet(number + 1, cards, address)
    work()


def _meet(number, cards, address):
    dist.init_process_group("nccl", init_method=address, world_size=cards, rank=number)
    dist.barrier()
