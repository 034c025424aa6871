from contextlib import contextmanager

import torch


class SemSegEvaluator:
    def __init__(self, num_classes):
        self.k, self.conf = num_classes, torch.zeros(num_classes, num_classes)

    def process(self, target, output):
        pair = target.flatten() * self.k + output.argmax(1).flatten()
        self.conf += torch.bincount(pair, minlength=self.k ** 2).view(self.k, self.k)

    def evaluate(self):
        tp = self.conf.diag()
        return {"mIoU": (100 * tp / (self.conf.sum(0) + self.conf.sum(1) - tp)).mean().item()}


@contextmanager
def inference_context(model):
    training_mode = model.training
    model.eval()
    yield
    model.train(training_mode)


def inference_on_dataset(model, data_loader, evaluator):
    with inference_context(model), torch.no_grad():
        for image, mask in data_loader:
            evaluator.process(mask, model(image))
    return evaluator.evaluate()
