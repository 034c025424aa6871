import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

distiller_dict = {}


def register(name):
    def wrap(cls):
        distiller_dict[name] = cls
        return cls
    return wrap


class ConvReg(nn.Module):
    """From the width of a student's layer to that of the teacher's."""

    def __init__(self, s_channels, t_channels):
        super().__init__()
        self.conv, self.act = nn.Conv2d(s_channels, t_channels, 1), nn.ReLU()

    def forward(self, x):
        return self.act(self.conv(x))


class Distiller(nn.Module):
    def __init__(self, student, teacher):
        super().__init__()
        self.student, self.teacher = student, teacher
        for p in self.teacher.parameters():
            p.requires_grad = False

    def train(self, mode=True):
        super().train(mode)
        self.teacher.eval()
        return self

    def distribute(self):
        self.student = DistributedDataParallel(self.student)

    def get_learnable_parameters(self):
        return list(self.student.parameters())

    def forward(self, image):
        return self.student(image)[0]


@register("FITNET")
class FitNet(Distiller):
    """Hints for thin deep nets."""

    def __init__(self, student, teacher, cfg):
        super().__init__(student, teacher)
        self.cfg = cfg.FITNET
        with torch.no_grad():
            shapes = [m(torch.zeros(1, 3, 8, 8))[1]["feats"][self.cfg.HINT_LAYER].shape[1] for m in (student, teacher)]
        self.conv_reg = ConvReg(*shapes)

    def get_learnable_parameters(self):
        return super().get_learnable_parameters() + list(self.conv_reg.parameters())

    def forward_train(self, image, target):
        logits, feature = self.student(image)
        with torch.no_grad():
            _, feature_teacher = self.teacher(image)
        hint = self.conv_reg(feature["feats"][self.cfg.HINT_LAYER])
        loss_feat = F.mse_loss(hint, feature_teacher["feats"][self.cfg.HINT_LAYER])
        losses = {"loss_ce": self.cfg.CE_WEIGHT * F.cross_entropy(logits, target),
                  "loss_kd": self.cfg.FEAT_WEIGHT * loss_feat}
        return logits, losses
