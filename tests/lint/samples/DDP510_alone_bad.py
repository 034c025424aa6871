import lightning as L
import torch


def main(path, samples):
    fabric = L.Fabric(accelerator="cuda", devices=4)
    model = torch.nn.Linear(8, 8)
    checkpoint = torch.load(path)  # <-- DDP510
    model.load_state_dict(checkpoint)
    model = fabric.setup_module(model)
    print(model(samples))
