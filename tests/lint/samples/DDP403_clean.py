import torch.distributed as dist


def share(tensor, rank):
    dist.broadcast(tensor, src=rank)


def everyone_in_turn(tensors):
    for rank in range(dist.get_world_size()):
        dist.broadcast(tensors[rank], src=rank)


def main(tensor):
    dist.init_process_group("gloo")
    for rank in range(dist.get_world_size()):
        share(tensor, rank)
    everyone_in_turn([tensor])
    chosen = choose(dist.get_rank())
    dist.broadcast(tensor, src=chosen)


def choose(rank):
    return 0


if __name__ == "__main__":
    main([])
