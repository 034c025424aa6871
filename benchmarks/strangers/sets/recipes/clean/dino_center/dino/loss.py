import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn


class DINOLoss(nn.Module):
    def __init__(self, out_dim, teacher_temp=0.07, student_temp=0.1, center_momentum=0.9):
        super().__init__()
        self.teacher_temp, self.student_temp, self.m = teacher_temp, student_temp, center_momentum
        self.register_buffer("center", torch.zeros(1, out_dim))

    def forward(self, student, teacher):
        target = ((teacher - self.center) / self.teacher_temp).softmax(-1).detach()
        loss = -(target * F.log_softmax(student / self.student_temp, -1)).sum(-1).mean()
        self.update_center(teacher)
        return loss

    @torch.no_grad()
    def update_center(self, teacher):
        batch_center = teacher.sum(0, keepdim=True)
        dist.all_reduce(batch_center)
        batch_center /= len(teacher) * dist.get_world_size()
        self.center.mul_(self.m).add_(batch_center, alpha=1 - self.m)
