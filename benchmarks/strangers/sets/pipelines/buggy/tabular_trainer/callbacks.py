class Callback:
    def on_train_start(self, trainer): ...

    def on_validation_end(self, trainer, metrics): ...

    def on_train_end(self, trainer): ...


class LossHistory(Callback):
    def on_train_start(self, trainer):
        self.values = []

    def on_validation_end(self, trainer, metrics):
        self.values.append(metrics["val_loss"])

    def on_train_end(self, trainer):
        if trainer.rank == 0:
            print("val losses:", " ".join(f"{v:.3f}" for v in self.values), flush=True)


class EarlyStopping(Callback):
    def __init__(self, patience=3, min_delta=0.0, monitor="val_loss"):
        self.patience, self.min_delta, self.monitor = patience, min_delta, monitor
        self.best, self.wait = float("inf"), 0

    def on_validation_end(self, trainer, metrics):
        current = metrics[self.monitor]
        if current < self.best - self.min_delta:
            self.best, self.wait = current, 0
        else:
            self.wait += 1
            if self.wait >= self.patience:
                trainer.should_stop = True
