import os

import torch
import torch.distributed as dist
from ruamel.yaml import YAML
from torch.nn.parallel import DistributedDataParallel as DDP


class Settings:
    def __init__(self, filename, section):
        self.table = {}
        with open(filename) as file:
            for key, value in YAML().load(file)[section].items():
                self[key] = value

    def __getitem__(self, key):
        return self.table[key]

    def __setitem__(self, key, value):
        self.table[key] = value
        self.__setattr__(key, value)


class Trainer:
    def __init__(self, settings, device):
        self.settings = settings
        self.model = DDP(torch.nn.Linear(20, 20).to(device), device_ids=[device])
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=settings.lr)

    def train(self, batches):
        for epoch in range(self.settings.max_epochs):
            for batch in batches:
                self.optimizer.zero_grad()
                self.model(batch).square().mean().backward()
                self.optimizer.step()
            if self.settings.save_checkpoints:
                self.save(self.settings.checkpoint_path, epoch)

    def save(self, path, epoch):
        state = {"epoch": epoch, "model": self.model.module.state_dict()}
        if dist.get_rank() == 0:
            torch.save(state, f"{path}.new")
            os.replace(f"{path}.new", path)


if __name__ == "__main__":
    dist.init_process_group("nccl")
    device = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(device)
    settings = Settings("config.yaml", "train")
    settings["checkpoint_path"] = os.path.join(settings.exp_dir, "checkpoint.tar")
    generator = torch.Generator().manual_seed(dist.get_rank())
    Trainer(settings, device).train([torch.randn(4, 20, generator=generator).to(device)])
