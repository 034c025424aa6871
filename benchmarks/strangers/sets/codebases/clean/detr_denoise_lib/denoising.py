import torch


def get_contrastive_denoising_training_group(targets, num_classes, num_denoising, class_embed, box_embed,
                                             label_noise_ratio=0.5, box_noise_scale=0.4):
    """Noised copies of the true boxes as extra queries, padded to the most objects of any picture."""
    num_gts = [len(t["labels"]) for t in targets]
    max_gt_num = max(num_gts)
    if max_gt_num == 0:
        max_gt_num = num_denoising = 1  # one query that is masked, so that the embeddings are always used
    num_group = max(num_denoising // max_gt_num, 1)
    bs, size = len(targets), max_gt_num * num_group
    query_class = torch.full((bs, max_gt_num), num_classes, dtype=torch.long)
    query_bbox = torch.zeros(bs, max_gt_num, 4)
    pad_gt_mask = torch.zeros(bs, max_gt_num, dtype=torch.bool)
    for i, t in enumerate(targets):
        n = num_gts[i]
        query_class[i, :n], query_bbox[i, :n], pad_gt_mask[i, :n] = t["labels"], t["boxes"], True
    target_class, target_bbox = query_class.tile(1, num_group), query_bbox.tile(1, num_group, 1)
    mask = pad_gt_mask.tile(1, num_group)
    flip = torch.rand(bs, size) < label_noise_ratio * 0.5
    noised = torch.where(flip & mask, torch.randint(0, num_classes, (bs, size)), target_class)
    jitter = (torch.rand(bs, size, 4) * 2 - 1) * box_noise_scale * target_bbox[..., 2:].repeat(1, 1, 2) / 2
    query = class_embed(noised) + box_embed((target_bbox + jitter).clamp(0, 1))
    return query, {"mask": mask, "labels": target_class, "boxes": target_bbox, "size": size}
