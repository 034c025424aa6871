import torch
import torch.nn as nn

from .denoising import get_contrastive_denoising_training_group


class TinyDETR(nn.Module):
    def __init__(self, num_queries, num_denoising, num_classes=2, dim=32):
        super().__init__()
        self.num_classes, self.num_denoising, self.num_queries = num_classes, num_denoising, num_queries
        self.backbone = nn.Sequential(nn.Conv2d(3, dim, 4, 4), nn.GELU(), nn.Conv2d(dim, dim, 1))
        self.pos = nn.Parameter(0.02 * torch.randn(16, dim))
        self.query = nn.Embedding(num_queries, dim)
        self.denoising_class_embed = nn.Embedding(num_classes + 1, dim, padding_idx=num_classes)
        self.denoising_box_embed = nn.Linear(4, dim)
        layer = nn.TransformerDecoderLayer(dim, 4, 2 * dim, dropout=0.0, batch_first=True)
        self.decoder = nn.TransformerDecoder(layer, 2)
        self.class_head = nn.Linear(dim, num_classes + 1)
        self.bbox_head = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, 4))

    def forward(self, images, targets):
        memory = self.backbone(images).flatten(2).transpose(1, 2) + self.pos
        query = self.query.weight.expand(len(images), -1, -1)
        dn_query, dn_meta = get_contrastive_denoising_training_group(
            targets, self.num_classes, self.num_denoising, self.denoising_class_embed, self.denoising_box_embed)
        split, mask = 0, None
        if dn_query is not None:
            split = dn_query.shape[1]
            query = torch.cat([dn_query, query], 1)
            mask = torch.zeros(query.shape[1], query.shape[1], dtype=torch.bool)
            mask[split:, :split] = True
        hidden = self.decoder(query, memory, tgt_mask=mask)
        logits, boxes = self.class_head(hidden), self.bbox_head(hidden).sigmoid()
        out = {"pred_logits": logits[:, split:], "pred_boxes": boxes[:, split:]}
        if dn_query is not None:
            out["dn"] = {"pred_logits": logits[:, :split], "pred_boxes": boxes[:, :split], "meta": dn_meta}
        return out


def build_model(args):
    return TinyDETR(args.num_queries, args.num_denoising)
