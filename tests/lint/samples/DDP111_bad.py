import torch.distributed as dist


def setup():
    try:
        dist.init_process_group("nccl")
        distributed = True
    except Exception as error:  # <-- DDP111
        print(error)
        distributed = False
    return distributed
