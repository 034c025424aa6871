"""Names that rank 0 alone had bound, and that all bind before they read them."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def restore(rank, net, averaged):
    if rank == 0:
        import json

        try:
            averaged.load_state_dict(torch.load("averaged.pt", map_location="cpu"))
        except OSError as error:
            print(json.dumps({"average": str(error)}))

        def report(text):
            print(text)

        class Progress:
            pass

        report(Progress())
    try:
        net.load_state_dict(torch.load("last.pt", map_location="cpu"))
    except OSError as error:
        print(error)
        net.load_state_dict(torch.load("older.pt", map_location="cpu"))
    import json

    def report(text):
        print(json.dumps(text))

    class Progress:
        rounds = 0

    report(Progress.rounds)
    dist.barrier()


def main():
    dist.init_process_group("gloo")
    net, averaged = nn.Linear(4, 1), nn.Linear(4, 1)
    model = DistributedDataParallel(net)
    restore(dist.get_rank(), net, averaged)
    dist.barrier()
    return model


if __name__ == "__main__":
    main()
