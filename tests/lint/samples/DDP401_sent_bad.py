import os

import torch
import torch.distributed as dist


def spread(path):
    whole = {}
    if dist.get_rank() == 0:
        for part in ("first", "second"):
            whole.update(torch.load(f"{path}/{part}.pt", map_location="cpu"))
        shapes = dict((name, each.shape) for name, each in whole.items())
        kinds = {name: each.dtype for name, each in whole.items()}
        dist.broadcast_object_list([shapes, kinds], src=0)
    else:
        parcel = [None, None]
        dist.broadcast_object_list(parcel, src=0)
        shapes, kinds = parcel
    mine = {}
    for name in sorted(shapes.keys()):
        if dist.get_rank() == 0:
            weight = whole[name].cuda()
            dist.broadcast(weight, src=0)  # <-- DDP401
        else:
            weight = torch.empty(shapes[name], dtype=kinds[name], device="cuda")
        mine[name] = weight.cpu()
    return mine


def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    weights = spread("weights")
    print(len(weights))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
