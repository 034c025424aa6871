import torch.distributed as dist


def join(host, port, rank, world_size):
    store = dist.TCPStore(host, port, world_size, is_master=True)  # <-- DDP104
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world_size)
