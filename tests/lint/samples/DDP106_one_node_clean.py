import torch
import torch.distributed as dist


def main(number):
    """As many ranks as this machine has devices: there is one node."""
    dist.init_process_group(
        "nccl",
        init_method="tcp://127.0.0.1:33271",  # <- DDP104
        world_size=torch.cuda.device_count(),
        rank=number,
    )
    torch.cuda.set_device(dist.get_rank())
    dist.all_reduce(torch.ones(1).cuda())
    dist.destroy_process_group()


main(int(input()))
