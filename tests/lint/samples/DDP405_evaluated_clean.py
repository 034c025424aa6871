import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main(images):
    """Without buffers to share a forward that keeps no gradient waits for nobody."""
    dist.init_process_group("gloo")
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4))
    net = DistributedDataParallel(net, broadcast_buffers=False)
    net.eval()
    with torch.no_grad():
        for image in images[dist.get_rank() :: dist.get_world_size()]:
            row = 0
            while row < image.shape[-1]:
                net(image[..., row : row + 8])
                row += 8
    dist.destroy_process_group()


main([torch.randn(1, 3, 16, 16)])
