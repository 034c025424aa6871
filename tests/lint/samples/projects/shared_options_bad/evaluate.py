import torch
import torch.distributed as dist
from options import parser_of_all
from torch.nn.parallel import DistributedDataParallel as DDP


def main(options):
    dist.init_process_group("nccl")
    torch.cuda.set_device(options.local_rank)
    model = DDP(torch.nn.Linear(4, 1).cuda())
    print(model(torch.randn(2, 4).cuda()))


if __name__ == "__main__":
    main(parser_of_all().parse_args())
