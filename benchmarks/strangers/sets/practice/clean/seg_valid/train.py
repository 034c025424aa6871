from runner import Runner
from unet import TinyUNet
import torch
import torch.distributed as dist


def blobs(n, seed):
    g = torch.Generator().manual_seed(seed)
    img = torch.randn(n, 1, 16, 16, generator=g)
    mask = (torch.nn.functional.avg_pool2d(img, 3, 1, 1) > 0).long().squeeze(1)
    return torch.utils.data.TensorDataset(img, mask)


if __name__ == "__main__":
    dist.init_process_group(backend="gloo")
    torch.manual_seed(3)
    runner = Runner(TinyUNet(), blobs(64, 0), blobs(24, 1), dict(epochs=3, bs=8, lr=1e-2))
    runner.run()
    dist.destroy_process_group()
