"""A library's model is run as what Accelerate has wrapped it in; a frozen one has no wrapper."""

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from diffusers import UNet2DModel
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader


def bare(*models):
    return tuple(each.module if type(each) == DDP else each for each in models)


def main(images):
    accelerator = Accelerator()
    unet = UNet2DModel.from_pretrained("unet")
    teacher = UNet2DModel.from_pretrained("teacher")
    teacher.requires_grad_(False)
    print(sum(each.numel() for each in teacher.parameters()))
    optimizer = torch.optim.AdamW(unet.parameters(), lr=1e-4)
    loader = DataLoader(images, batch_size=8, shuffle=True)
    unet, teacher, optimizer, loader = accelerator.prepare(unet, teacher, optimizer, loader)
    for clean in loader:
        noisy = clean + torch.randn_like(clean)
        with torch.no_grad():
            wanted = teacher(noisy, 10).sample
        loss = F.mse_loss(unet(noisy, 10).sample, wanted)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
    print(teacher.config.sample_size, bare(unet)[0].config.sample_size)


if __name__ == "__main__":
    main(torch.zeros(64, 3, 8, 8))
