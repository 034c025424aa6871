import torch
import torch.distributed as dist
from torch.nn import DataParallel
from torch.nn.parallel import DistributedDataParallel


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.head = torch.nn.Linear(2, 2)

    def forward(self, x):
        return self.head(x)

    def begin(self, centers):
        self.head.weight.data.copy_(centers)


def main(centers):
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    student, teacher = Net().cuda(), Net().cuda()
    models = [DistributedDataParallel(student), DistributedDataParallel(teacher)]
    for number, center in enumerate(centers):
        model = models[number % 2]
        if isinstance(model, (DataParallel, DistributedDataParallel)):
            model = model.module
        model.begin(center)
    models[0](torch.rand(2, 2).cuda()).sum().backward()


main(torch.load("centers.pt"))
