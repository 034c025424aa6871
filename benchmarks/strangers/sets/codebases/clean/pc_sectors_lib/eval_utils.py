import torch
import torch.distributed as dist

from . import common_utils


@torch.no_grad()
def eval_one_epoch(model, loader, dataset, result_dir):
    model.eval()
    annos, seen = [], torch.zeros(1)
    for batch in loader:
        centers, heat = model(batch)
        annos += dataset.generate_prediction_dicts(batch, centers, heat)
        seen += len(batch["frame_id"])
    dist.all_reduce(seen)
    assert seen.item() >= len(dataset)
    det_annos = common_utils.merge_results_dist(annos, len(dataset), tmpdir=result_dir)
    return {} if det_annos is None else dataset.evaluation(det_annos)
