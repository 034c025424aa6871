import torch.distributed as dist


def share(tensor, rank):
    dist.broadcast(tensor, src=rank)  # <-- DDP403


def main(tensor):
    dist.init_process_group("gloo")
    share(tensor, dist.get_rank())


if __name__ == "__main__":
    main([])
