import torch
import torch.distributed as dist

from apkit.dataset import ScenesDataset, build_val_loader
from apkit.meter import APMeter
from apkit.net import train_quickly

if __name__ == "__main__":
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    net = train_quickly()
    loader = build_val_loader(ScenesDataset(27), batch_size=4)
    meter = APMeter()
    with torch.no_grad():
        for image_id, x, y in loader:
            meter.add(image_id, net.module(x).squeeze(1).sigmoid(), y)
    summary = meter.summarize()
    if dist.get_rank() == 0:
        print(summary, flush=True)
    dist.barrier()
    dist.destroy_process_group()
