import torch.distributed as dist


def join(host, port, rank, world_size):
    store = dist.TCPStore(host, port, world_size, is_master=rank == 0)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world_size)


def serve(host, port):
    return dist.TCPStore(host, port, is_master=True)


def alone(host, port):
    store = dist.TCPStore(host, port, 1, is_master=True)
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
