import torch
import torch.nn as nn
import torch.nn.functional as F

MODULES = {}
GRID, CELL = 16, 1.0


def register(cls):
    MODULES[cls.__name__] = cls
    return cls


@register
class PillarVFE(nn.Module):
    def __init__(self, cfg, channels):
        super().__init__()
        self.linear, self.num_features = nn.Linear(4, cfg["NUM_FILTERS"]), cfg["NUM_FILTERS"]

    def forward(self, batch):
        pts = batch["points"]
        cell = ((pts + GRID * CELL / 2) / CELL).long().clamp(0, GRID - 1)
        feat = F.relu(self.linear(torch.cat([pts / 8, pts - cell.float() * CELL + GRID * CELL / 2], -1)))
        flat = cell[..., 1] * GRID + cell[..., 0]
        canvas = feat.new_zeros(len(pts), GRID * GRID, self.num_features)
        canvas = canvas.scatter_add(1, flat.unsqueeze(-1).expand_as(feat), feat)
        batch["spatial_features"] = canvas.transpose(1, 2).view(len(pts), -1, GRID, GRID) / 30
        return batch


@register
class BaseBEVBackbone(nn.Module):
    def __init__(self, cfg, channels):
        super().__init__()
        n = self.num_features = cfg["NUM_FILTERS"]
        self.block = nn.Sequential(nn.Conv2d(channels, n, 3, 1, 1, bias=False), nn.GroupNorm(4, n), nn.ReLU())

    def forward(self, batch):
        batch["spatial_features_2d"] = self.block(batch["spatial_features"])
        return batch


@register
class CenterHead(nn.Module):
    def __init__(self, cfg, channels):
        super().__init__()
        self.hm, self.reg, self.weights = nn.Conv2d(channels, 1, 1), nn.Conv2d(channels, 2, 1), cfg["LOSS_WEIGHTS"]
        self.num_features = channels

    def forward(self, batch):
        x = batch["spatial_features_2d"]
        batch["hm"], batch["reg"] = self.hm(x).flatten(1), self.reg(x).flatten(2)
        return batch

    def get_loss(self, batch):
        gt = batch["gt"] + GRID * CELL / 2
        cell = (gt / CELL).long().clamp(0, GRID - 1)
        flat = cell[:, 1] * GRID + cell[:, 0]
        loss_hm = F.cross_entropy(batch["hm"], flat)
        offset = batch["reg"][torch.arange(len(flat)), :, flat]
        loss_reg = F.l1_loss(offset, gt - cell.float() * CELL)
        tb_dict = {"hm": loss_hm.item(), "reg": loss_reg.item()}
        return self.weights["hm"] * loss_hm + self.weights["reg"] * loss_reg, tb_dict

    def decode(self, batch):
        flat = batch["hm"].argmax(1)
        offset = batch["reg"][torch.arange(len(flat)), :, flat]
        cell = torch.stack([flat % GRID, flat // GRID], 1).float() * CELL
        return cell + offset - GRID * CELL / 2, batch["hm"].softmax(1)


class Detector3D(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.module_list, channels = nn.ModuleList(), 2
        for key in ("VFE", "BACKBONE_2D", "DENSE_HEAD"):
            module = MODULES[cfg[key]["NAME"]](cfg[key], channels)
            self.module_list.append(module)
            channels = module.num_features

    def forward(self, batch):
        for module in self.module_list:
            batch = module(batch)
        head = self.module_list[-1]
        return head.get_loss(batch) if self.training else head.decode(batch)


def build_network(cfg):
    return Detector3D(cfg)
