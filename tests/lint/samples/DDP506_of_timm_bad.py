import torch
import torch.distributed as dist
from timm.models import create_model
from timm.utils import ModelEma
from torch.nn.parallel import DistributedDataParallel


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(3 + dist.get_rank())
    model = create_model("resnet50", pretrained=False)
    average = ModelEma(model, decay=0.99, device="")  # <-- DDP506
    wrapped = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.1)
    for _ in range(10):
        optimizer.zero_grad()
        wrapped(torch.ones(2, 3, 64, 64)).sum().backward()
        optimizer.step()
        average.update(model)


main()
