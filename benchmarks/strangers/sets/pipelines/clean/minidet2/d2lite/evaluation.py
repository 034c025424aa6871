import itertools
from collections import OrderedDict

from . import comm


class DatasetEvaluator:
    def reset(self):
        raise NotImplementedError

    def process(self, inputs, outputs):
        raise NotImplementedError

    def evaluate(self):
        raise NotImplementedError


class RecallEvaluator(DatasetEvaluator):
    def __init__(self, thresh=0.5):
        self.thresh = thresh

    def reset(self):
        self._predictions = []

    def process(self, inputs, outputs):
        for image_id, scores, gt in zip(inputs["image_id"], outputs, inputs["gt"]):
            kept = (scores.sigmoid() > self.thresh).nonzero().flatten().tolist()
            if kept:
                self._predictions.append({"image_id": image_id, "hits": len(set(kept) & gt), "kept": len(kept)})

    def evaluate(self):
        predictions = list(itertools.chain(*comm.all_gather(self._predictions)))
        if not comm.is_main_process():
            return {}
        if len(predictions) == 0:
            return OrderedDict(precision=float("nan"))
        hits = sum(p["hits"] for p in predictions)
        return OrderedDict(precision=hits / sum(p["kept"] for p in predictions))


def inference_on_dataset(model, data_loader, evaluator):
    evaluator.reset()
    for inputs in data_loader:
        evaluator.process(inputs, model(inputs["image"]))
    results = evaluator.evaluate()
    comm.synchronize()
    return results
