"""Which scale counts how much in which epoch."""


class ScalePlan:
    def __init__(self, scales=3, decay=0.5, fade_epochs=3):
        self.base = [decay ** k for k in range(scales)]
        self.fade = fade_epochs

    def at(self, epoch):
        keep = max(0.0, 1.0 - epoch / self.fade)
        w = [self.base[0]] + [round(b * keep, 3) for b in self.base[1:]]
        s = sum(w)
        return [v / s for v in w]
