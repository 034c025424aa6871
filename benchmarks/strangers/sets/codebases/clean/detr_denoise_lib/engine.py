import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F


class SetCriterion(nn.Module):
    def __init__(self, weight_dict):
        super().__init__()
        self.weight_dict = weight_dict

    @torch.no_grad()
    def match(self, out, targets):
        rows = []
        for logits, boxes, t in zip(out["pred_logits"], out["pred_boxes"], targets):
            if len(t["labels"]) == 0:
                rows.append(torch.empty(0, dtype=torch.long))
                continue
            cost = torch.cdist(boxes, t["boxes"], p=1) - logits.softmax(-1)[:, t["labels"]]
            taken = []
            for j in range(cost.shape[1]):
                column = cost[:, j].clone()
                column[taken] = float("inf")
                taken.append(int(column.argmin()))
            rows.append(torch.tensor(taken))
        return rows

    def forward(self, out, targets):
        num_boxes = torch.tensor([float(sum(len(t["labels"]) for t in targets))])
        dist.all_reduce(num_boxes)
        num_boxes = (num_boxes / dist.get_world_size()).clamp(min=1).item()
        logits, boxes = out["pred_logits"], out["pred_boxes"]
        wanted = torch.full(logits.shape[:2], logits.shape[-1] - 1)
        loss_bbox = boxes.sum() * 0
        for i, rows in enumerate(self.match(out, targets)):
            wanted[i, rows] = targets[i]["labels"]
            loss_bbox = loss_bbox + F.l1_loss(boxes[i, rows], targets[i]["boxes"], reduction="sum")
        losses = {"loss_ce": F.cross_entropy(logits.flatten(0, 1), wanted.flatten()),
                  "loss_bbox": loss_bbox / num_boxes}
        if "dn" in out:
            dn, meta = out["dn"], out["dn"]["meta"]
            m = meta["mask"].float()
            ce = F.cross_entropy(dn["pred_logits"].transpose(1, 2), meta["labels"], reduction="none")
            losses["loss_ce_dn"] = (ce * m).sum() / num_boxes
            l1 = (dn["pred_boxes"] - meta["boxes"]).abs().sum(-1)
            losses["loss_bbox_dn"] = (l1 * m).sum() / num_boxes
        return losses


def train_one_epoch(model, criterion, loader, optimizer, max_norm):
    model.train()
    total = torch.zeros(2)
    for images, targets in loader:
        losses = criterion(model(images, targets), targets)
        loss = sum(v * criterion.weight_dict[k] for k, v in losses.items())
        optimizer.zero_grad()
        loss.backward()
        grad_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        total += torch.stack([loss.detach(), grad_norm])
    dist.all_reduce(total)
    total /= dist.get_world_size() * len(loader)
    return {"loss": total[0].item(), "grad_norm": total[1].item()}
