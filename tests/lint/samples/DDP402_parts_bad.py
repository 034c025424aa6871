import torch
import torch.distributed as dist
from mmcv.parallel import MMDistributedDataParallel
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def test(model, loader):
    model.eval()
    boxes, masks, has_masks = [], [], False
    for images in loader:
        with torch.no_grad():
            found = model(rescale=True, images=images)
        boxes.extend(found["boxes"])
        if found["scores"].max() > 0.5:
            masks.extend(found["masks"])
            has_masks = True
    everything = [None] * dist.get_world_size()
    dist.all_gather_object(everything, boxes)
    if has_masks:  # <-- DDP402
        dist.all_gather_object(everything, masks)
    return everything


def main():
    dist.init_process_group("gloo")
    data = TensorDataset(torch.load("images.pt"))
    loader = DataLoader(data, sampler=DistributedSampler(data, shuffle=False))
    model = MMDistributedDataParallel(nn.Conv2d(3, 8, 3))
    print(len(test(model, loader)))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
