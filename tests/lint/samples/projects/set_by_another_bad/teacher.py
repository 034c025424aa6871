import torch
from talk import number
from torch.nn.parallel import DistributedDataParallel


class Teacher:
    def __init__(self, net):
        self.device = f"cuda:{number()}"
        torch.cuda.set_device(self.device)  # <-- DDP106
        place = net.to(self.device)
        self.model = DistributedDataParallel(place, device_ids=[number()])  # <-- DDP106

    def teach(self, batches, optimizer):
        for x, y in batches:
            loss = (self.model(x.to(self.device)) - y.to(self.device)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
