import os
import urllib.request

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

URL = "https://example.org/weights.pth"


def pretrained(folder):
    path = os.path.join(folder, "weights.pth")
    if dist.get_rank() == 0 and not os.path.exists(path):
        urllib.request.urlretrieve(URL, path)
    dist.barrier()
    return torch.load(path, map_location="cpu")


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    net = torch.nn.Linear(128, 10)
    net.load_state_dict(pretrained("pretrained"))
    model = DistributedDataParallel(net.cuda())
    model(torch.rand(4, 128).cuda()).sum().backward()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
